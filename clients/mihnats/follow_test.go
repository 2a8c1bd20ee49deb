package mihnats

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/clients/broadcast"
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

func TestFollowOverRestarts(t *testing.T) {
	w := newBed(t)
	url, stopServer := w.outside(0, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "nats://"))
	w.must(err)
	b, stopBroker := w.broker(1, node)
	f, stopFront := w.front(b, url)
	c := w.dial(url, Options{})
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	mark(b, 1)
	want(mihf.DeliverEvent, 1)

	stopServer()
	w.until("the front sees it", func() bool { return !f.Counts().Connected })
	mark(b, 2) // while nobody hears
	w.outside(atoi(t, port), nil)
	want(mihf.DeliverEvent, 2)
	mark(b, 3)
	want(mihf.DeliverEvent, 3)

	stopBroker()
	stopFront()
	b, _ = w.broker(2, node)
	w.front(b, url)
	want(mihf.DeliverGap, 0)
	want(mihf.DeliverSnapshot, 0)
	mark(b, 4)
	want(mihf.DeliverEvent, 4)
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	for _, d := range s {
		n = 10*n + int(d-'0')
	}
	return n
}

func TestLostMessage(t *testing.T) {
	w := newBed(t)
	b, _ := w.broker(1, node)
	c := w.inside(w.embedded(b, nil))
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	c.mu.Lock()
	listening := c.take(nil)
	c.mu.Unlock()
	for _, l := range listening { // nothing is heard any more of what is published now
		for _, s := range l.subs {
			w.must(s.Unsubscribe())
		}
	}
	w.must(c.conn().FlushWithContext(w.ctx))
	mark(b, 1)
	for _, l := range listening {
		l.cut(errors.New("told so"))
	}
	want(mihf.DeliverEvent, 1)
	mark(b, 2)
	want(mihf.DeliverEvent, 2)
}

func TestUnreadable(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, nil)
	b, _ := w.broker(1, node)
	w.front(b, url)
	c := w.dial(url, Options{Node: node})
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	by, err := nats.Connect(url) // this server lets everyone publish
	w.must(err)
	t.Cleanup(by.Close)
	subject := natsproto.Event(node, "", mihf.ResumedFromSuspend)
	good := nats.Header{natsproto.HeaderPrevious: {"1"}}
	bad := []*nats.Msg{
		{Subject: subject, Data: []byte("x")},
		{Subject: subject, Header: nats.Header{natsproto.HeaderPrevious: {"x"}}},
		{Subject: subject, Header: nats.Header{natsproto.HeaderPrevious: {"1", "2"}}},
		{Subject: subject, Header: good, Data: []byte("\xff\xfe")},
		{Subject: natsproto.Sync(node), Header: nats.Header{natsproto.HeaderType: {"alive"}}},
		{Subject: "mih.v1.n.event.%zz.link_up", Header: good},
	}
	for _, m := range bad {
		skipped := c.Skipped()
		w.until("it is counted", func() bool { // the subscription may be catching up now
			w.must(by.PublishMsg(m))
			w.must(by.FlushWithContext(w.ctx))
			return c.Skipped() > skipped
		})
	}
	mark(b, 1)
	want(mihf.DeliverEvent, 1)
}

func TestUnknownKind(t *testing.T) {
	w := newBed(t)
	c := &Client{life: clients.NewLife(), listening: map[*listener]struct{}{}}
	h := newHearing(c)
	w.run(func(ctx context.Context) error { h.read(ctx); return nil })
	s := broadcast.New(broadcast.Options{Boot: 1, Reached: 5, Request: mihf.SubscribeRequest{After: 5}, Live: h.live, Lost: h.lost, Why: h.reason, Close: h.close})
	defer s.Close()
	for i, p := range []*mihv1.Event{{}, {Kind: &mihv1.Event_Resync{Resync: &mihv1.Resync{}}}} {
		p.Sequence, p.BootId = uint64(i)+6, mihf.BootID(1).String()
		data, err := proto.Marshal(p)
		w.must(err)
		e := natsproto.Envelope{Previous: uint64(i) + 5}
		h.heard <- &nats.Msg{Subject: natsproto.Event(node, "", mihf.Resync), Header: e.Header(), Data: data}
	}
	buf := make([]mihf.Delivery, 2)
	if n, err := s.Next(buf); n != 1 || err != nil || buf[0].Sequence() != 7 || buf[0].Previous != 5 || c.Skipped() != 1 {
		t.Errorf("%d, %v: %+v; %d skipped", n, err, buf[0], c.Skipped())
	}
	var p past
	p.add(&mihf.Delivery{Kind: mihf.DeliverHint, Previous: 3, Hint: mihf.Hint{Sequence: 4}})
	p.add(&mihf.Delivery{Kind: mihf.DeliverEvent, Previous: 4, Event: mihf.Event{Sequence: 5, Kind: mihf.Resync}})
	if len(p.items) != 1 || p.items[0].Previous != 3 {
		t.Errorf("caught up with %+v", p.items)
	}
}

func TestWay(t *testing.T) {
	second := mihf.Time(time.Second)
	var w way
	for _, c := range []struct {
		now, at mihf.Time
		want    time.Duration
	}{
		{100 * second, 0, 0},            // does not say
		{100 * second, 500 * second, 0}, // the first: nothing to compare with
		{101 * second, 501 * second, 0}, // as quick
		{103 * second, 502 * second, time.Second},
		{104 * second, 504*second + 1, 0},                // quicker still
		{164 * second, 504 * second, 60*time.Second + 1}, // a server that stood still for a minute
		{165 * second, 565 * second, 1},
		{196 * second, 596 * second, 0}, // what is older is forgotten: clocks drift
		{227 * second, 626 * second, time.Second},
	} {
		if got := w.late(c.now, c.at); got != c.want {
			t.Errorf("sent at %v, here at %v: %v late, want %v", c.at, c.now, got, c.want)
		}
	}
}

func TestLongSnapshot(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, func(o *server.Options) { o.MaxPayload = 32 << 10 })
	b, _ := w.broker(1, node)
	w.front(b, url)
	c := w.dial(url, Options{Node: node})
	at, err := c.Attach(w.ctx)
	w.must(err)
	defer at.Close()
	const flows = 600
	for range flows {
		_, err := at.Register(mihf.FlowSpec{Link: "wifi-00000001", Group: strings.Repeat("g", 60)})
		w.must(err)
	}
	s, err := c.Snapshot(w.ctx)
	w.must(err)
	if len(s.Flows) != flows {
		t.Errorf("%d flows", len(s.Flows))
	}
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
}

func FuzzMessages(f *testing.F) {
	good := (&natsproto.Envelope{Type: natsproto.TypeHint, Previous: 3}).Header()
	data, err := proto.Marshal(&mihv1.Hint{Flow: "F", Sequence: 4, BootId: "00000001", Kind: &mihv1.Hint_Freeze{Freeze: &mihv1.Freeze{}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("mih.v1.n.hint.F.freeze", "hint", good[natsproto.HeaderPrevious][0], "1/2", data)
	f.Add("mih.v1.n.sync", "hole", "1", "", []byte{})
	f.Add("mih.v1.n.event._.resync", "", "1", "", []byte("\x0a\x00"))
	f.Fuzz(func(t *testing.T, subject, kind, previous, part string, data []byte) {
		c := &Client{life: clients.NewLife(), listening: map[*listener]struct{}{}}
		h := newHearing(c)
		m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
			natsproto.HeaderType: {kind}, natsproto.HeaderPrevious: {previous}, natsproto.HeaderPart: {part},
		}}
		if part == "" {
			delete(m.Header, natsproto.HeaderPart)
		}
		h.take(t.Context(), m)
		a := &attachment{c: c, done: make(chan struct{})}
		var d mihf.Delivery
		a.take(m, &d)
		var p past
		_, _ = c.past(&p, &parts{}, m)
		r := recorder{c: c, write: func(*mihf.Observation) error { return nil }}
		_, _ = r.take(m)
		pr := pastReader{c: c}
		_, _ = pr.take(m)
	})
}
