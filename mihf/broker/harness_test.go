package broker_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/engine"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	wwan = mihf.LinkID("wwan-00000002")
)

func user(uid uint32) mihf.Caller { return mihf.Caller{Front: "inproc", UID: mihf.Some(uid)} }

var (
	root  = user(0)
	alice = user(1000)
	bob   = user(1001)
)

// certain is a predictor that says what the newest RSSI says: at or below -80 dBm the
// link breaks within a second.
type certain struct{ low bool }

func (c *certain) Observe(_ mihf.Time, o *mihf.Observation) {
	if v, ok := o.Values.Get(mihf.ParamRSSI); ok {
		c.low = v <= -80
	}
}

func (c *certain) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now, Interval: 100 * time.Millisecond}
	if c.low {
		f.Loss.Set(func(s float64) float64 { return min(s, 1) * 0.95 })
	}
	return true
}

// bed is a broker that runs until the test ends, with verbs.
type bed struct {
	testing.TB
	*broker.Broker
	end func() // ends Run and waits; may be called twice
}

// start runs a broker; change alters its configuration.
func start(tb testing.TB, change ...func(*broker.Config)) *bed {
	tb.Helper()
	cfg := broker.Config{Engine: engine.Defaults(), Clock: clock.Process()}
	cfg.Engine.Boot, cfg.Engine.Node = 1, "n"
	cfg.Engine.NewPredictor = func(mihf.LinkID) engine.Predictor { return &certain{} }
	for _, f := range change {
		f(&cfg)
	}
	b := &bed{TB: tb, Broker: broker.New(cfg)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	b.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(b.end)
	return b
}

// give publishes an observation of the link and waits until all is quiet.
func (b *bed) give(link mihf.LinkID, o *mihf.Observation) {
	o.At, o.Link = b.Now(), link
	b.Observe(o)
	synctest.Wait()
}

func (b *bed) subscribe(who mihf.Caller, req mihf.SubscribeRequest) mihf.Feed {
	b.Helper()
	f, err := b.Subscribe(b.Context(), who, req)
	if err != nil {
		b.Fatalf("subscribe: %v", err)
	}
	b.Cleanup(f.Close)
	return f
}

func (b *bed) attach(who mihf.Caller) mihf.Attachment {
	b.Helper()
	a, err := b.Attach(b.Context(), who)
	if err != nil {
		b.Fatalf("attach: %v", err)
	}
	b.Cleanup(a.Close)
	return a
}

func (b *bed) register(a mihf.Attachment, spec mihf.FlowSpec) mihf.Registration {
	b.Helper()
	if spec.Link == "" {
		spec.Link = wlan
	}
	reg, err := a.Register(spec)
	if err != nil {
		b.Fatalf("register: %v", err)
	}
	return reg
}

func (b *bed) counter(name string) uint64 {
	b.Helper()
	s, err := b.Status(b.Context(), root)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range s.Counters {
		if c.Name == "mihf_broker_"+name+"_total" {
			return c.Value
		}
	}
	b.Fatalf("no counter %s", name)
	return 0
}

func facts(up bool) *mihf.Observation {
	f := &mihf.LinkFacts{Name: "wlan0", Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown}
	if up {
		f.Oper = mihf.OperUp
		f.Addresses = []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}}
		f.Defaults = []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600}}
	}
	return &mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}

func rssi(v float64) *mihf.Observation {
	o := &mihf.Observation{Kind: mihf.ObsRadio}
	o.Values.Set(mihf.ParamRSSI, v)
	return o
}

// heard gives one Link_Detected.
func heard() *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsDetected, Detected: &mihf.Detected{PoA: "02:00:00:00:00:01"}}
}

// slept gives one ResumedFromSuspend, which is never dropped.
func slept() *mihf.Observation { return &mihf.Observation{Kind: mihf.ObsResume, Gap: time.Second} }

// reader takes deliveries in a goroutine of its own until its feed ends.
type reader struct {
	testing.TB
	feed mihf.Feed
	done chan struct{}
	mu   sync.Mutex
	got  []mihf.Delivery
	err  error
}

func read(tb testing.TB, f mihf.Feed, room int) *reader {
	tb.Helper()
	r := &reader{TB: tb, feed: f, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		buf := make([]mihf.Delivery, room)
		for {
			n, err := f.Next(buf)
			r.mu.Lock()
			r.got = append(r.got, buf[:n]...)
			r.err = err
			r.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return r
}

// all returns what came since it was called last, once the reader has nothing to do.
func (r *reader) all() []mihf.Delivery {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.got
	r.got = nil
	return out
}

// want compares what came with words as shown by show.
func (r *reader) want(want ...string) {
	r.Helper()
	var got []string
	for _, d := range r.all() {
		got = append(got, show(&d))
	}
	if d := cmp.Diff(want, got); d != "" {
		r.Fatalf("deliveries (-want +got):\n%s", d)
	}
}

// ended waits for the reader's end and returns its reason.
func (r *reader) ended() error {
	<-r.done
	return r.err
}

func show(d *mihf.Delivery) string {
	switch d.Kind {
	case mihf.DeliverEvent:
		return d.Event.Kind.String()
	case mihf.DeliverHint:
		s := d.Hint.Kind.String()
		switch d.Hint.Kind {
		case mihf.HintFreeze:
			s += " " + d.Hint.Freeze.Reason.String()
		case mihf.HintUnfreeze:
			s += " " + d.Hint.Unfreeze.Cause.String()
		default:
		}
		return s
	case mihf.DeliverGap:
		return fmt.Sprintf("gap %d to %d: %s", d.Gap.From, d.Gap.To, d.Gap.Reason)
	default:
		return fmt.Sprintf("snapshot at %d", d.Snapshot.Sequence)
	}
}

// chained checks that each delivery names the one before it and that they rise; last is
// the sequence that the reader had before.
func chained(tb testing.TB, last uint64, ds []mihf.Delivery) uint64 {
	tb.Helper()
	for i := range ds {
		d := &ds[i]
		if d.Previous != last {
			tb.Fatalf("delivery %d (%s) names %d as the one before it, which was %d", d.Sequence(), show(d), d.Previous, last)
		}
		if d.Sequence() <= last && d.Kind != mihf.DeliverSnapshot && d.Kind != mihf.DeliverGap {
			tb.Fatalf("delivery %d (%s) follows %d", d.Sequence(), show(d), last)
		}
		last = d.Sequence()
	}
	return last
}
