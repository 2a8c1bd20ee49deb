package front

import (
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// A subscriber gets a snapshot and then everything after it.
func testSnapshotThenFollow(w *bed) {
	w.see(facts(true))
	c := w.dial(w.T, alice)
	w.until("the link is up", func() bool {
		s, err := c.Snapshot(w.ctx)
		w.must(err)
		return len(s.Links) == 1 && s.Links[0].Up
	})
	r := w.follow(c, mihf.SubscribeRequest{})
	s := r.snapshot()
	if s.Boot != boot || s.Node != "node" || s.Sequence == 0 {
		w.Errorf("snapshot %d of %v on %q", s.Sequence, s.Boot, s.Node)
	}
	l := linkOf(w, s)
	if !l.Up || !l.UsableIPv4 || l.UsableIPv6 || l.Facts == nil || l.Facts.MTUBytes != 1500 {
		w.Errorf("link %+v", l)
	}
	w.mark(1)
	if d := r.next(); !isMark(d, 1) || d.Previous != s.Sequence || d.Event.Boot != boot {
		w.Errorf("after snapshot %d: %+v", s.Sequence, d)
	}
}

// One order, strictly increasing, whoever publishes.
func testOrder(w *bed) {
	r := w.follow(w.dial(w.T, alice), mihf.SubscribeRequest{})
	r.snapshot()
	var sensors sync.WaitGroup
	for s := range 4 {
		sensors.Go(func() {
			for i := range 100 {
				w.mark(1 + s*100 + i)
			}
		})
	}
	newest := map[int]int{}
	for range 400 { // next checks the order
		n := int(r.event(mihf.ResumedFromSuspend).Gap) - 1
		if s := n / 100; n%100 != newest[s] {
			w.Fatalf("event %d of sensor %d, want %d", n%100, s, newest[s])
		}
		newest[n/100]++
	}
	sensors.Wait()
}

// Only the links and kinds that were asked for come.
func testFilter(w *bed) {
	c := w.dial(w.T, alice)
	kinds := w.follow(c, mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.LinkUp, mihf.ResumedFromSuspend)})
	links := w.follow(c, mihf.SubscribeRequest{Links: []mihf.LinkID{"wifi-00000002"}, Kinds: mihf.Kinds(mihf.LinkUp)})
	kinds.snapshot()
	links.snapshot()
	w.see(facts(true))
	w.mark(1)
	if d := kinds.next(); d.Event.Kind != mihf.LinkUp {
		w.Errorf("%v, want link_up", d.Event.Kind)
	}
	if d := kinds.next(); !isMark(d, 1) {
		w.Errorf("%v, want the mark", d.Event.Kind)
	}
	o := facts(true)
	o.At, o.Link = w.broker.Now(), "wifi-00000002"
	w.observe(&o)
	if d := links.next(); d.Event.Link != "wifi-00000002" {
		w.Errorf("event of %s", d.Event.Link)
	}
}

// Subscribe(after) gives exactly what followed, without a snapshot.
func testResume(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{})
	r.snapshot()
	for n := 1; n <= 6; n++ {
		w.mark(n)
	}
	for n := 1; n <= 3; n++ {
		if d := r.next(); !isMark(d, n) {
			w.Fatalf("%+v, want mark %d", d, n)
		}
	}
	r.feed.Close()
	again := w.follow(c, mihf.SubscribeRequest{After: r.last, Boot: boot})
	for n := 4; n <= 6; n++ {
		if d := again.next(); !isMark(d, n) {
			w.Fatalf("%+v, want mark %d", d, n)
		}
	}
}

// A place in another run: the gap is stated, and a snapshot follows.
func testResumeOtherRun(w *bed) {
	w.mark(1)
	r := w.follow(w.dial(w.T, alice), mihf.SubscribeRequest{After: 1 << 40, Boot: boot + 1})
	if d := r.next(); d.Kind != mihf.DeliverGap || d.Gap.Reason == "" {
		w.Fatalf("%+v, want a gap with its reason", d)
	}
	r.snapshot()
	w.mark(2)
	if d := r.next(); !isMark(d, 2) {
		w.Errorf("%+v, want mark 2", d)
	}
}

// The replay ring does not reach back so far.
func testResumeTooFarBack(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{})
	r.snapshot()
	w.mark(1)
	first := r.event(mihf.ResumedFromSuspend).Sequence
	r.feed.Close()
	for n := range 600 {
		w.mark(2 + n)
	}
	again := w.follow(c, mihf.SubscribeRequest{After: first, Boot: boot})
	d := again.next()
	if d.Kind != mihf.DeliverGap || d.Gap.From != first || d.Gap.To <= first {
		w.Fatalf("%+v, want a gap from %d", d, first)
	}
	if s := again.snapshot(); s.Sequence != d.Gap.To {
		w.Errorf("snapshot %d, want %d: the gap's end", s.Sequence, d.Gap.To)
	}
}

// A reader that stands still is closed as slow; coming back, it sees a gap and a snapshot,
// and loses nothing without one. Others are not held up.
func testSlowReader(w *bed) {
	slow := w.follow(w.dial(w.T, alice), mihf.SubscribeRequest{})
	slow.snapshot()
	quick := w.follow(w.dial(w.T, bob), mihf.SubscribeRequest{})
	quick.snapshot()
	const many = 6000 // more than the ring and what a connection holds on its way
	for n := 1; n <= many; n++ {
		w.mark(n)
		if d := quick.next(); !isMark(d, n) {
			w.Fatalf("the quick one: %+v, want mark %d", d, n)
		}
	}
	gaps, next := 0, 1
	for {
		d := slow.next()
		switch {
		case d.Kind == mihf.DeliverGap:
			gaps++
			if s := slow.snapshot(); s.Sequence < d.Gap.To {
				w.Errorf("snapshot %d behind the gap to %d", s.Sequence, d.Gap.To)
			}
			w.mark(many + 1)
			next = many + 1
		case isMark(d, next):
			next++
		default:
			w.Fatalf("%+v, want mark %d or a gap", d, next)
		}
		if next == many+2 {
			break
		}
	}
	if gaps != 1 {
		w.Errorf("%d gaps stated, want 1", gaps)
	}
}

// near compares the vocabulary's values; moments may differ by what clocks and encoding
// cost.
var near = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b mihf.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < 2*time.Second }),
}

// carried returns a delivery with nothing but what its kind says that it carries.
func carried(d *mihf.Delivery) mihf.Delivery {
	c := mihf.Delivery{Previous: d.Previous, Conflated: d.Conflated, Kind: d.Kind}
	switch d.Kind {
	case mihf.DeliverEvent:
		c.Event = d.Event
	case mihf.DeliverHint:
		c.Hint = d.Hint
		c.Hint.Owner = 0 // not sent
	case mihf.DeliverGap:
		c.Gap = d.Gap
	case mihf.DeliverSnapshot:
		c.Snapshot = d.Snapshot
	}
	return c
}

// The same event is equal, field by field, to what a caller in the process gets.
func testSameFieldByField(w *bed) {
	const last = 99
	there := w.follow(w.dial(w.T, alice), mihf.SubscribeRequest{Hints: true})
	here := w.follow(InProcess{w.broker, mihf.Caller{Front: "inproc", UID: mihf.Some(alice)}}, mihf.SubscribeRequest{Hints: true})
	there.snapshot()
	here.snapshot()
	w.walk()
	w.mark(last)
	kinds := mihf.KindSet(0)
	for {
		a, b := here.next(), there.next()
		if diff := cmp.Diff(carried(a), carried(b), near); diff != "" {
			w.Errorf("%v (-in process +here)\n%s", a.Event.Kind, diff)
		}
		kinds |= mihf.Kinds(a.Event.Kind)
		if isMark(a, last) {
			break
		}
	}
	want := mihf.Kinds(mihf.LinkUp, mihf.PathUsable, mihf.LinkGoingDown, mihf.LinkDown, mihf.LinkRenamed, mihf.AddressChanged,
		mihf.SensorConditionChanged, mihf.Resync, mihf.DefaultRouteChanged, mihf.LinkRemoved, mihf.LinkDetected, mihf.LinkParametersReport)
	if missing := want &^ kinds; missing != 0 {
		for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
			if missing.Has(k) {
				w.Errorf("the walk made no %v", k)
			}
		}
	}
}

// walk makes events of many kinds.
func (w *bed) walk() {
	w.see(facts(true))
	w.see(mihf.Observation{Kind: mihf.ObsDetected, Detected: &mihf.Detected{PoA: "02:00:00:00:00:02", SSID: []byte("\xff\x00")}})
	w.see(rssi(-60))
	w.see(rssi(-85))
	w.see(mihf.Observation{Kind: mihf.ObsEgress, Egress: &mihf.Egress{Link: wlan, Gateway: netip.MustParseAddr("192.0.2.1"), Table: 254}})
	w.see(mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Sensor: "test", Condition: mihf.ConditionDegraded, Text: "no permission"}})
	w.see(mihf.Observation{Kind: mihf.ObsResync, Lost: true})
	renamed := facts(true)
	renamed.Facts.Name = "wlan1"
	w.see(renamed)
	moved := facts(true)
	moved.Facts.Name = "wlan1"
	moved.Facts.Addresses = []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.3/24")}}
	w.see(moved)
	down := facts(false)
	down.Facts.Name = "wlan1"
	w.see(down)
	w.see(mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
}

// Octets that are not UTF-8 end no stream, and names pass as they are.
func testNotUTF8(w *bed) {
	r := w.follow(w.dial(w.T, alice), mihf.SubscribeRequest{})
	r.snapshot()
	w.see(mihf.Observation{Kind: mihf.ObsDetected, Detected: &mihf.Detected{PoA: "02:00:00:00:00:02", SSID: []byte("\xff\xfe\x00")}})
	if got := r.event(mihf.LinkDetected).Detected.SSID; string(got) != "\xff\xfe\x00" {
		w.Errorf("SSID %q", got)
	}
	w.see(facts(true))
	if got := r.event(mihf.LinkUp).Up.Facts; got == nil || got.Name != name {
		w.Errorf("facts %+v, want the name %q", got, name)
	}
	w.see(mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Sensor: "test", Condition: mihf.ConditionDenied, Text: "\xff"}})
	if got := r.event(mihf.SensorConditionChanged).Condition; got.Condition != mihf.ConditionDenied {
		w.Errorf("condition %+v", got)
	}
	w.mark(1)
	r.event(mihf.ResumedFromSuspend)
}

// What is not known is absent, not 0.
func testAbsentValues(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{})
	r.snapshot()
	o := mihf.Observation{Kind: mihf.ObsRadio}
	o.Values.Set(mihf.ParamBeaconLoss, 0)
	w.see(o)
	w.mark(1)
	r.event(mihf.ResumedFromSuspend)
	l, err := c.Parameters(w.ctx, wlan)
	w.must(err)
	if v, known := l.Values.Get(mihf.ParamBeaconLoss); !known || v != 0 || l.Values.Len() != 1 {
		w.Errorf("values %+v, want beacon_loss 0 and no other", l.Values)
	}
	if l.Facts != nil || l.SSID != nil || l.PoA != "" || l.Prediction.Known() {
		w.Errorf("link %+v, want what is not known absent", l)
	}
}
