package broker_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
)

// Many come and go while events and hints are published: readers check the order, some
// stop reading, some resume, handlers cancel themselves, attachments register and ack.
func TestStress(t *testing.T) {
	const sensors, guests, visits, observations = 2, 16, 30, 2000
	b := start(t, func(c *broker.Config) { c.Clock, c.Replay, c.Reports, c.Mailbox = clock.Boot(), 256, 64, 32 })
	var wg sync.WaitGroup
	var stop atomic.Bool
	for i := range sensors {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for n := 0; n < observations || !stop.Load(); n++ {
				o := []*mihf.Observation{facts(n%2 == 0), rssi(-60), rssi(-85), heard(), slept()}[rng.IntN(5)]
				o.At, o.Link = b.Now(), []mihf.LinkID{wlan, wwan}[rng.IntN(2)]
				b.Observe(o)
			}
		})
	}
	var visitors sync.WaitGroup
	for i := range guests {
		visitors.Go(func() {
			g := &guest{TB: t, b: b, rng: rand.New(rand.NewPCG(2, uint64(i)))}
			for range visits {
				[]func(){g.follow, g.transport, g.handler, g.ask}[g.rng.IntN(4)]()
			}
		})
	}
	visitors.Wait()
	stop.Store(true)
	wg.Wait()
	s, err := b.Status(t.Context(), root)
	if err != nil || s.Subscribers != 0 || s.Flows != 0 {
		t.Errorf("at the end %d subscribers, %d flows, %v; want none", s.Subscribers, s.Flows, err)
	}
	if s.Sequence == 0 {
		t.Error("nothing was published")
	}
}

// guest is somebody who uses a broker for a while.
type guest struct {
	testing.TB
	b     *bed
	rng   *rand.Rand
	place uint64
}

func (g *guest) follow() {
	ctx, cancel := context.WithCancel(g.Context())
	defer cancel()
	req := mihf.SubscribeRequest{Hints: true}
	if g.rng.IntN(2) == 0 {
		req.Boot, req.After = g.b.Boot(), g.place
	}
	f, err := g.b.Subscribe(ctx, root, req)
	if err != nil {
		g.Error(err)
		return
	}
	defer f.Close()
	buf := make([]mihf.Delivery, 1+g.rng.IntN(8))
	last := req.After
	for range g.rng.IntN(200) {
		n, err := f.Next(buf)
		if err != nil {
			if !errors.Is(err, mihf.ErrSlow) {
				g.Error(err)
			}
			return
		}
		for i := range buf[:n] {
			if buf[i].Previous != last && buf[i].Kind != mihf.DeliverSnapshot {
				g.Errorf("delivery %d names %d as the one before it, which was %d", buf[i].Sequence(), buf[i].Previous, last)
			}
			last = buf[i].Sequence()
		}
	}
	if g.place = last; g.rng.IntN(2) == 0 {
		cancel()
	}
}

func (g *guest) transport() {
	a, err := g.b.Attach(g.Context(), alice)
	if err != nil {
		g.Error(err)
		return
	}
	defer a.Close()
	reg, err := a.Register(mihf.FlowSpec{Link: wlan, LateFreeze: true})
	if err != nil && !errors.Is(err, mihf.ErrSlow) {
		g.Error(err)
	}
	closer := g.rng.IntN(2) == 0
	if closer {
		go a.Close()
	}
	buf := make([]mihf.Delivery, 2)
	for range g.rng.IntN(4) {
		n, err := a.Next(buf)
		if err != nil {
			return
		}
		_ = a.Acknowledge(mihf.Ack{Flow: reg.Flow, Epoch: buf[n-1].Hint.Epoch}) // the flow may be gone
	}
}

func (g *guest) handler() {
	done, left := make(chan struct{}), 1+g.rng.IntN(20)
	var cancel atomic.Pointer[func()]
	c, err := g.b.Handle(g.Context(), alice, mihf.SubscribeRequest{}, func(*mihf.Delivery) {
		if left--; left == 0 {
			close(done)
		}
		if c := cancel.Load(); c != nil && left <= 0 {
			(*c)()
		}
	})
	if err != nil {
		g.Error(err)
		return
	}
	cancel.Store(&c)
	<-done
	c()
}

func (g *guest) ask() {
	if _, err := g.b.Snapshot(g.Context(), alice); err != nil {
		g.Error(err)
	}
	if _, err := g.b.Status(g.Context(), alice); err != nil {
		g.Error(err)
	}
}
