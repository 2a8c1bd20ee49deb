package dbusfront_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"mihf.dev/clients/broadcast"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front/dbusfront"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

var same = cmp.Comparer(func(a, b dbus.Variant) bool { return a.String() == b.String() })

// objects is the state that a listener keeps by the rules of ObjectManager and Properties.
type objects map[dbus.ObjectPath]map[string]map[string]dbus.Variant

func (o objects) apply(s *dbus.Signal) {
	switch s.Name {
	case dbusapi.ObjectManager + ".InterfacesAdded":
		o[s.Body[0].(dbus.ObjectPath)] = maps.Clone(s.Body[1].(map[string]map[string]dbus.Variant))
	case dbusapi.ObjectManager + ".InterfacesRemoved":
		for _, iface := range s.Body[1].([]string) {
			delete(o[s.Body[0].(dbus.ObjectPath)], iface)
		}
		if len(o[s.Body[0].(dbus.ObjectPath)]) == 0 {
			delete(o, s.Body[0].(dbus.ObjectPath))
		}
	case dbusapi.Properties + ".PropertiesChanged":
		props := maps.Clone(o[s.Path][s.Body[0].(string)])
		maps.Copy(props, s.Body[1].(map[string]dbus.Variant))
		for _, name := range s.Body[2].([]string) {
			delete(props, name)
		}
		o[s.Path][s.Body[0].(string)] = props
	}
}

// Who follows the signals has what GetManagedObjects gives, in the end.
func TestSignalsTellTheState(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial(everything)
	state := objects{}
	settled := func(what string, so func(objects) bool) {
		t.Helper()
		w.until(what, func() bool {
			body, err := p.at(dbusapi.Root, dbusapi.ObjectManager+".GetManagedObjects")
			if err != nil {
				t.Fatal(err)
			}
			for len(p.heard) > 0 {
				state.apply(<-p.heard)
			}
			now := objects(body[0].(map[dbus.ObjectPath]map[string]map[string]dbus.Variant))
			return so(now) && cmp.Equal(now, state, same)
		})
	}
	link := dbusapi.LinkPath(wlan)
	w.see(wlan, facts(true))
	settled("a link is added", func(o objects) bool { return o[link] != nil })
	if got := state[link][dbusapi.LinkInterface]; got["NameText"].Value() != `wl\xff` || string(got["Name"].Value().([]byte)) != name || got["Up"].Value() != true {
		t.Errorf("%v", got)
	}
	w.see(wlan, mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationAuthorised, PoA: "02:00:00:00:00:01", SSID: []byte("caf\xe9")}})
	settled("it is associated", func(o objects) bool { return o[link][dbusapi.LinkInterface]["SSIDText"].Value() == `caf\xe9` })
	w.see(wlan, mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationDisconnected}})
	w.see(wlan, facts(false))
	settled("it is down", func(o objects) bool { return o[link][dbusapi.LinkInterface]["Up"].Value() == false })
	reg := p.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)})[0].(map[string]dbus.Variant)
	flow := dbusapi.FlowPath(mihf.FlowID(reg["flow"].Value().(string)))
	settled("a flow is added", func(o objects) bool { return o[flow] != nil })
	p.must("UpdateFlow", map[string]dbus.Variant{"flow": reg["flow"], "rtt_ns": dbus.MakeVariant(int64(3e8))})
	settled("the flow's lead is longer", func(o objects) bool { return o[flow][dbusapi.FlowInterface]["LeadNs"].Value().(int64) > 3e8 })
	p.must("UnregisterFlow", reg["flow"].Value())
	settled("the flow is gone", func(o objects) bool { return o[flow] == nil })
	w.see(wlan, mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
	settled("the link is gone", func(o objects) bool { return len(o) == 0 })
}

// listener is a client of what is sent to all: it hears signals, catches up by Resume, and
// joins both.
func (p *peer) listener(req mihf.SubscribeRequest) *broadcast.Stream {
	p.Helper()
	body := p.must("Resume", variant.Encode(conv.EncodeSubscribe(&req)))
	boot, err := mihf.ParseBootID(body[1].(string))
	if err != nil {
		p.Fatal(err)
	}
	o := broadcast.Options{Request: req, Boot: boot, Reached: body[2].(uint64)}
	for _, item := range body[0].([]map[string]dbus.Variant) {
		var m mihv1.SubscribeResponse
		if err := variant.Decode(item, &m); err != nil {
			p.Fatal(err)
		}
		d := mihf.Delivery{Previous: m.GetPrevious(), Kind: mihf.DeliverEvent}
		if snap := m.GetSnapshot(); snap != nil {
			d.Kind = mihf.DeliverSnapshot
			d.Snapshot, err = conv.Decoder{Now: 1 << 40}.Snapshot(snap)
		} else {
			d.Event, err = conv.Decoder{Now: 1 << 40}.Event(m.GetEvent())
		}
		if err != nil {
			p.Fatal(err)
		}
		o.CaughtUp = append(o.CaughtUp, d)
	}
	live, ended := make(chan broadcast.Live), make(chan struct{})
	o.Live, o.Close = live, func() { close(ended) }
	p.run(func(ctx context.Context) error {
		for {
			select {
			case s := <-p.heard:
				l, ok := p.live(s)
				if !ok {
					continue
				}
				select {
				case live <- l:
				case <-ended:
					return nil
				case <-ctx.Done():
					return nil
				}
			case <-ended:
				return nil
			case <-ctx.Done():
				return nil
			}
		}
	})
	s := broadcast.New(o)
	p.Cleanup(s.Close)
	return s
}

// live reads the signal of an event.
func (p *peer) live(s *dbus.Signal) (l broadcast.Live, ok bool) {
	if len(s.Body) != 4 {
		return l, false
	}
	var m mihv1.Event
	err := variant.Decode(s.Body[2].(map[string]dbus.Variant), &m)
	if err == nil {
		l.Event, err = conv.Decoder{Now: 1 << 40}.Event(&m)
	}
	if err != nil {
		p.Error(err)
	}
	l.Kind, l.Chain, l.Conflated = mihf.DeliverEvent, s.Body[0].(uint64), s.Body[3].(uint32)
	return l, true
}

// An event's signal names the one before it on its link; who listens and catches up has all,
// in order.
func TestBroadcast(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial(everything)
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := p.call("GetParameters", string(wlan)); return err == nil })
	s := p.listener(mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.LinkUp, mihf.LinkDown, mihf.ResumedFromSuspend)})
	buf := make([]mihf.Delivery, 1)
	if n, err := s.Next(buf); n != 1 || err != nil || buf[0].Kind != mihf.DeliverSnapshot {
		t.Fatalf("%+v, %v", buf, err)
	}
	const many = 200
	other := mihf.LinkID("wifi-00000002")
	for i := range many {
		w.see(other, facts(i%2 == 0))
		w.mark(i + 1)
	}
	last, marks := buf[0].Sequence(), 0
	for marks < many {
		if _, err := s.Next(buf); err != nil {
			t.Fatal(err)
		}
		if buf[0].Previous != last || buf[0].Sequence() <= last {
			t.Fatalf("%d follows %d, by its own word %d", buf[0].Sequence(), last, buf[0].Previous)
		}
		last = buf[0].Sequence()
		if e := &buf[0].Event; e.Kind == mihf.ResumedFromSuspend {
			if marks++; int(e.Gap) != marks {
				t.Fatalf("mark %d in the place of %d", e.Gap, marks)
			}
		} else if e.Link != other {
			t.Errorf("%+v", e)
		}
	}
	s.Close()
	// Who was away gets what it missed.
	for i := range 3 {
		w.mark(1000 + i)
	}
	again := w.dial(everything).listener(mihf.SubscribeRequest{After: last, Boot: 0xb007})
	for i := range 3 {
		if _, err := again.Next(buf); err != nil || int(buf[0].Event.Gap) != 1000+i {
			t.Fatalf("%+v, %v, want mark %d", buf[0].Event, err, 1000+i)
		}
	}
}

// A hint goes to the connection that registered its flow and to nobody else; so do the
// changes of the flow.
func TestHintsAreForTheRegistrant(t *testing.T) {
	w := newBed(t, nil)
	mine, other := w.dial(), w.dial("type='signal'")
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := mine.call("GetParameters", string(wlan)); return err == nil })
	reg := mine.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)})[0].(map[string]dbus.Variant)
	id := reg["flow"].Value().(string)
	w.see(wlan, facts(false))
	freeze := mine.next(dbusapi.FlowInterface + ".Freeze")
	hint := freeze.Body[2].(map[string]dbus.Variant)
	if freeze.Path != dbusapi.FlowPath(mihf.FlowID(id)) || hint["flow"].Value() != id || hint["freeze"].Value().(map[string]dbus.Variant)["reason"].Value() != "link_down" {
		t.Errorf("%+v", freeze)
	}
	epoch := hint["epoch"].Value().(uint64)
	mine.must("Acknowledge", map[string]dbus.Variant{"flow": reg["flow"], "epoch": hint["epoch"], "result": dbus.MakeVariant("applied")})
	mine.next(dbusapi.Properties + ".PropertiesChanged")
	w.until("the flow shows it", func() bool {
		body, err := mine.at(dbusapi.FlowPath(mihf.FlowID(id)), dbusapi.Properties+".GetAll", dbusapi.FlowInterface)
		if err != nil {
			t.Fatal(err)
		}
		p := body[0].(map[string]dbus.Variant)
		return p["Frozen"].Value() == true && p["AcknowledgedEpoch"].Value().(uint64) >= epoch && p["LastAck"].Value() == "applied"
	})
	w.mark(1)
	for s := other.next(dbusapi.BrokerInterface + ".ResumedFromSuspend"); s != nil && len(other.heard) > 0; s = <-other.heard {
		if _, isFlow := dbusapi.ParseFlowPath(s.Path); isFlow {
			t.Errorf("somebody else heard %+v", s)
		}
	}
	if _, err := other.call("UnregisterFlow", id); err == nil {
		t.Error("somebody else's connection unregistered the flow")
	}
}

// "A hint waits for a few signals at most": what is sent to all waits in the broker while the
// bus does not read.
func TestHintsGoBeforeEvents(t *testing.T) {
	const events = 300
	w := newBed(t, nil)
	mine := w.dial(everything)
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := mine.call("GetParameters", string(wlan)); return err == nil })
	mine.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)})
	w.mark(1)
	mine.next(dbusapi.BrokerInterface + ".ResumedFromSuspend")
	w.bus.Stop()
	defer w.bus.Cont() // also where the test fails
	sent := w.server.Counts().Signals
	for i := range events {
		w.mark(i)
	}
	w.until("some are sent", func() bool { return w.server.Counts().Signals > sent })
	w.see(wlan, facts(false))
	w.until("the Freeze is there", func() bool {
		snap, err := w.broker.Snapshot(t.Context(), mihf.Caller{UID: mihf.Some(uint32(0))})
		return err == nil && len(snap.Flows) == 1 && snap.Flows[0].Frozen
	})
	w.bus.Cont()
	before := 0
	for frozen := false; !frozen; {
		select {
		case s := <-mine.heard:
			if frozen = s.Name == dbusapi.FlowInterface+".Freeze"; !frozen {
				before++
			}
		case <-time.After(patient):
			t.Fatalf("%d events and no Freeze came", before)
		}
	}
	if before > events/10 {
		t.Errorf("the Freeze came behind %d of %d events", before, events)
	}
}

// Signals that everybody sees are sent only while everybody has the role to see.
func TestNotPublic(t *testing.T) {
	w := newBed(t, func(o *dbusfront.Options) { o.Public = func() bool { return false } })
	p := w.dial("type='signal',sender='" + dbusapi.Name + "'")
	p.must("Subscribe", uint64(1), map[string]dbus.Variant{})
	w.see(wlan, facts(true))
	w.mark(1)
	for {
		s := p.next(dbusapi.BrokerInterface + ".Delivery")
		if _, ok := s.Body[1].(map[string]dbus.Variant)["event"]; ok {
			break
		}
	}
	w.until("the state was read for properties", func() bool {
		_, err := p.at(dbusapi.LinkPath(wlan), dbusapi.Properties+".GetAll", dbusapi.LinkInterface)
		return err == nil
	})
	for len(p.heard) > 0 {
		if s := <-p.heard; s.Name != dbusapi.BrokerInterface+".Delivery" {
			t.Errorf("heard %+v", s)
		}
	}
}

// What a subscription delivers is mih.v1.SubscribeResponse by the one marshalling.
func TestDeliveryIsASubscribeResponse(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial()
	p.must("Subscribe", uint64(7), map[string]dbus.Variant{"hints": dbus.MakeVariant(true)})
	w.see(wlan, facts(true))
	w.mark(1)
	kinds := map[string]bool{}
	for !kinds["resumed_from_suspend"] {
		s := p.next(dbusapi.BrokerInterface + ".Delivery")
		if s.Body[0] != uint64(7) {
			t.Errorf("stream %v", s.Body[0])
		}
		dict := s.Body[1].(map[string]dbus.Variant)
		var m mihv1.SubscribeResponse
		if err := variant.DecodeRequest(dict, &m); err != nil { // which passes nothing over
			t.Fatalf("%v: %v", dict, err)
		}
		if diff := cmp.Diff(dict, variant.Encode(&m), same); diff != "" {
			t.Errorf("(-sent +encoded again)\n%s", diff)
		}
		for _, k := range slices.Collect(maps.Keys(dict)) {
			kinds[k] = true
		}
		if m.GetEvent().GetResumedFromSuspend() != nil {
			kinds["resumed_from_suspend"] = true
		}
	}
	if !kinds["snapshot"] || !kinds["event"] || !kinds["previous"] {
		t.Errorf("only %v came", fmt.Sprint(kinds))
	}
}

// "The answer to a registration comes before the flow's first hint", however soon that is.
func TestAnswerComesBeforeTheHint(t *testing.T) {
	w := newBed(t, nil)
	w.see(wlan, facts(true))
	var sensor sync.WaitGroup
	defer sensor.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sensor.Go(func() {
		for up := false; ctx.Err() == nil; up = !up {
			w.see(wlan, facts(up))
			time.Sleep(200 * time.Microsecond)
		}
	})
	c := daemons.DialBus(t, w.bus, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	heard := make(chan *dbus.Signal, 1<<12)
	c.Signal(heard)
	call := func(method string, arg any) *dbus.Call {
		return c.Object(dbusapi.Name, dbusapi.Root).CallWithContext(t.Context(), dbusapi.BrokerInterface+"."+method, 0, arg)
	}
	spec := map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)}
	for range 50 {
		var reg map[string]dbus.Variant
		answer := call("RegisterFlow", spec)
		if err := answer.Store(&reg); err != nil {
			t.Fatal(err)
		}
		flow := reg["flow"].Value().(string)
		for first := (*dbus.Signal)(nil); first == nil; {
			select {
			case s := <-heard:
				if s.Path == dbusapi.FlowPath(mihf.FlowID(flow)) && s.Name == dbusapi.FlowInterface+".Freeze" {
					first = s
				}
			case <-time.After(patient):
				t.Fatal("the flow was not frozen")
			}
			if first != nil && first.Sequence < answer.ResponseSequence {
				t.Fatalf("the hint came as message %d, the answer as %d", first.Sequence, answer.ResponseSequence)
			}
		}
		if err := call("UnregisterFlow", flow).Err; err != nil {
			t.Fatal(err)
		}
	}
}
