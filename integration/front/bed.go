package front

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front"
)

// Front is what is tested.
type Front struct {
	Name string
	// Serve serves b until the test ends, and returns how to connect to it as a user.
	Serve func(t *testing.T, b front.Broker) (dial func(t *testing.T, uid uint32) clients.Client)
	// Grants are those that the front's callers need besides those of their uids, for
	// example NATSUsers.
	Grants []access.Grant
}

const (
	wlan    = mihf.LinkID("wifi-00000001")
	boot    = mihf.BootID(0xb007)
	patient = 20 * time.Second // only a failure takes so long
)

// inside is the daemon itself.
var inside = mihf.Caller{Front: "inproc", UID: mihf.Some(daemon)}

// bed is a broker with its front and a hand on its sensors.
type bed struct {
	*testing.T
	ctx    context.Context
	broker *broker.Broker
	stop   context.CancelFunc // ends the broker
	dial   func(*testing.T, uint32) clients.Client
	given  atomic.Uint64 // observations
}

// falling is a predictor that goes by the newest RSSI alone: at or below -80 dBm the link
// breaks within a second.
type falling struct{ low bool }

func (p *falling) Observe(_ mihf.Time, o *mihf.Observation) {
	if v, ok := o.Values.Get(mihf.ParamRSSI); ok {
		p.low = v <= -80
	}
}

func (p *falling) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now, Interval: 100 * time.Millisecond}
	if p.low {
		f.Loss.Set(func(s float64) float64 { return min(s, 1) * 0.95 })
		f.Trend = mihf.Trend{Parameter: mihf.ParamRSSI, Level: -82.5, Slope: -2.5, Floor: -87, Samples: 10}
	}
	return true
}

func newBed(t *testing.T, f Front, adjust func(*broker.Config)) *bed {
	t.Helper()
	cfg := broker.Config{Engine: engine.Defaults(), Access: table(f.Grants...), Version: "test"}
	cfg.Engine.Boot, cfg.Engine.Node = boot, "node"
	cfg.Engine.NewPredictor = func(mihf.LinkID) engine.Predictor { return &falling{} }
	if adjust != nil {
		adjust(&cfg)
	}
	w := &bed{T: t, broker: broker.New(cfg)}
	run, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var loop sync.WaitGroup
	loop.Go(func() {
		if err := w.broker.Run(run); err != nil {
			t.Errorf("broker: %v", err)
		}
	})
	w.stop = stop
	t.Cleanup(func() { stop(); loop.Wait() })
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	w.dial = f.Serve(t, w.broker)
	return w
}

// must ends the test on an error.
func (w *bed) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// see gives the broker an observation of wlan, made now, and waits
// until it was taken.
func (w *bed) see(o mihf.Observation) {
	o.At, o.Link, o.Sensor = w.broker.Now(), wlan, "test"
	w.observe(&o)
}

// observe gives the broker an observation and waits until what came of it is published.
func (w *bed) observe(o *mihf.Observation) {
	w.broker.Observe(o)
	given := w.given.Add(1)
	for w.ctx.Err() == nil {
		s, err := w.broker.Status(w.ctx, inside)
		if err != nil || counter(&s, "mihf_broker_observations_total") >= given {
			return
		}
	}
}

func counter(s *mihf.Status, name string) uint64 {
	for _, c := range s.Counters {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}

// name is the interface's: octets that are not UTF-8 and steer a terminal.
const name = "wl\xff\xfe\x1b[2J"

// facts is the link as the kernel has it, up or down.
func facts(up bool) mihf.Observation {
	f := &mihf.LinkFacts{Name: name, Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown}
	if up {
		f.Oper = mihf.OperUp
		f.Addresses = []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}}
		f.Defaults = []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600}}
	}
	return mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}

func rssi(v float64) mihf.Observation {
	o := mihf.Observation{Kind: mihf.ObsRadio}
	o.Values.Set(mihf.ParamRSSI, v)
	return o
}

// mark makes a never-drop event that tests recognise: the machine slept for n nanoseconds.
func (w *bed) mark(n int) { w.see(mihf.Observation{Kind: mihf.ObsResume, Gap: time.Duration(n)}) }

func isMark(d *mihf.Delivery, n int) bool {
	return d.Kind == mihf.DeliverEvent && d.Event.Kind == mihf.ResumedFromSuspend && d.Event.Gap == time.Duration(n)
}

// reader reads a feed and checks its order: each delivery names the one before it.
type reader struct {
	w    *bed
	feed mihf.Feed
	buf  [3]mihf.Delivery
	left []mihf.Delivery
	last uint64
}

func (w *bed) follow(c clients.Client, req mihf.SubscribeRequest) *reader {
	w.Helper()
	feed, err := c.Follow(w.ctx, req)
	w.must(err)
	w.Cleanup(feed.Close)
	return &reader{w: w, feed: feed, last: req.After}
}

func (w *bed) attach(c clients.Client) mihf.Attachment {
	w.Helper()
	at, err := c.Attach(w.ctx)
	w.must(err)
	w.Cleanup(at.Close)
	return at
}

// next returns the next delivery.
func (r *reader) next() *mihf.Delivery {
	r.w.Helper()
	if len(r.left) == 0 {
		n, err := r.feed.Next(r.buf[:])
		r.w.must(err)
		r.left = r.buf[:n]
	}
	d := new(r.left[0]) // what next returned before stays good
	r.left = r.left[1:]
	switch d.Kind {
	case mihf.DeliverEvent, mihf.DeliverHint:
		if d.Previous != r.last {
			r.w.Fatalf("delivery %d follows %d by its own word; the one before it was %d", d.Sequence(), d.Previous, r.last)
		}
		if d.Sequence() <= r.last {
			r.w.Fatalf("delivery %d after %d", d.Sequence(), r.last)
		}
	default: // a snapshot or gap says where the order goes on
	}
	r.last = d.Sequence()
	return d
}

// event returns the next event of the kind; what comes before it is passed over.
func (r *reader) event(k mihf.Kind) mihf.Event {
	r.w.Helper()
	for {
		if d := r.next(); d.Kind == mihf.DeliverEvent && d.Event.Kind == k {
			return d.Event
		}
	}
}

// snapshot returns the next delivery, which must be a snapshot.
func (r *reader) snapshot() *mihf.Snapshot {
	r.w.Helper()
	d := r.next()
	if d.Kind != mihf.DeliverSnapshot {
		r.w.Fatalf("delivery of kind %d (%+v), want a snapshot", d.Kind, d)
	}
	return d.Snapshot
}

// hint returns the attachment's next hint of the kind.
func (w *bed) hint(at mihf.Attachment, k mihf.HintKind) mihf.Hint {
	w.Helper()
	buf := make([]mihf.Delivery, 1)
	for {
		_, err := at.Next(buf)
		w.must(err)
		if buf[0].Kind == mihf.DeliverHint && buf[0].Hint.Kind == k {
			return buf[0].Hint
		}
	}
}

// flow returns the flow's status as the client sees it; nil: not there.
func (w *bed) flow(c clients.Client, id mihf.FlowID) *mihf.FlowStatus {
	w.Helper()
	s, err := c.Snapshot(w.ctx)
	w.must(err)
	for i := range s.Flows {
		if s.Flows[i].Spec.ID == id {
			return &s.Flows[i]
		}
	}
	return nil
}

// until asks again and again until it is so.
func (w *bed) until(what string, so func() bool) {
	w.Helper()
	for !so() {
		if w.ctx.Err() != nil {
			w.Fatalf("not in time: %s", what)
		}
	}
}
