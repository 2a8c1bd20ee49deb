package broker_test

import (
	"sync/atomic"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
)

const listeners = 100

// meeting is where all listeners must have an event before the next one is published.
type meeting struct {
	left atomic.Int32
	all  chan struct{}
}

func newMeeting() *meeting { return &meeting{all: make(chan struct{}, 1)} }

func (m *meeting) expect() { m.left.Store(listeners) }

func (m *meeting) got() {
	if m.left.Add(-1) == 0 {
		m.all <- struct{}{}
	}
}

// BenchmarkFanout is one event to 100 listeners, all of whom have it before the next.
func BenchmarkFanout(b *testing.B) {
	b.Run("to=goroutines/impl=bare", func(b *testing.B) { fanout(b, bareChannels) })
	b.Run("to=goroutines/impl=ours", func(b *testing.B) { fanout(b, subscriptions) })
	b.Run("to=callbacks/impl=bare", func(b *testing.B) { fanout(b, bareCalls) })
	b.Run("to=callbacks/impl=ours", func(b *testing.B) { fanout(b, handlers) })
}

func fanout(b *testing.B, way func(*testing.B, *meeting) (publish func())) {
	b.Helper()
	b.ReportAllocs()
	m := newMeeting()
	publish := way(b, m)
	step := func() {
		m.expect()
		publish()
		<-m.all
	}
	for range 3000 { // the rings grow to their size
		step()
	}
	for b.Loop() {
		step()
	}
}

// bareChannels are a goroutine and a buffered channel for each listener.
func bareChannels(b *testing.B, m *meeting) func() {
	b.Helper()
	to := make([]chan mihf.Event, listeners)
	for i := range to {
		to[i] = make(chan mihf.Event, 64)
		go func() {
			for range to[i] {
				m.got()
			}
		}()
	}
	b.Cleanup(func() {
		for _, c := range to {
			close(c)
		}
	})
	e := mihf.Event{Kind: mihf.LinkDetected, Link: wlan}
	return func() {
		e.Sequence++
		for _, c := range to {
			c <- e
		}
	}
}

// bareCalls are functions called by a goroutine that takes events from one channel.
func bareCalls(b *testing.B, m *meeting) func() {
	b.Helper()
	var calls [listeners]func(*mihf.Event)
	for i := range calls {
		calls[i] = func(*mihf.Event) { m.got() }
	}
	c := make(chan mihf.Event, 64)
	go func() {
		for e := range c {
			for _, f := range calls {
				f(&e)
			}
		}
	}()
	b.Cleanup(func() { close(c) })
	e := mihf.Event{Kind: mihf.LinkDetected, Link: wlan}
	return func() {
		e.Sequence++
		c <- e
	}
}

func observe(b *bed) func() {
	o := heard()
	o.Link = wlan
	return func() {
		o.At = b.Now()
		b.Observe(o)
	}
}

func subscriptions(b *testing.B, m *meeting) func() {
	b.Helper()
	bed := start(b, func(c *broker.Config) { c.Clock = clock.Boot() })
	for range listeners {
		feed := bed.subscribe(root, mihf.SubscribeRequest{})
		buf := make([]mihf.Delivery, 8)
		if _, err := feed.Next(buf); err != nil {
			b.Fatal(err)
		}
		go func() {
			for {
				n, err := feed.Next(buf)
				if err != nil {
					return
				}
				for range n {
					m.got()
				}
			}
		}()
	}
	return observe(bed)
}

func handlers(b *testing.B, m *meeting) func() {
	b.Helper()
	bed := start(b, func(c *broker.Config) { c.Clock = clock.Boot() })
	for range listeners {
		if _, err := bed.Handle(b.Context(), root, mihf.SubscribeRequest{}, func(*mihf.Delivery) { m.got() }); err != nil {
			b.Fatal(err)
		}
	}
	return observe(bed)
}

// BenchmarkFreeze is from the loss of a link to the Freeze in the hands of the transport,
// and back.
func BenchmarkFreeze(b *testing.B) {
	b.ReportAllocs()
	bed := start(b, func(c *broker.Config) { c.Clock = clock.Boot() })
	a := bed.attach(alice)
	bed.register(a, mihf.FlowSpec{Link: wlan, LateFreeze: true, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)})
	lost, back := facts(false), facts(true)
	buf := make([]mihf.Delivery, 1)
	take := func(o *mihf.Observation, want mihf.HintKind) {
		o.At, o.Link = bed.Now(), wlan
		bed.Observe(o)
		if n, err := a.Next(buf); n != 1 || err != nil || buf[0].Hint.Kind != want {
			b.Fatalf("got %d, %v, %s; want %v", n, err, show(&buf[0]), want)
		}
	}
	bed.Observe(&mihf.Observation{At: bed.Now(), Link: wlan, Kind: mihf.ObsLink, Facts: back.Facts})
	for b.Loop() {
		take(lost, mihf.HintFreeze)
		take(back, mihf.HintUnfreeze)
	}
}
