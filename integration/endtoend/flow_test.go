package endtoend

import (
	"context"
	"sync"
	"testing"
	"time"

	"mihf.dev/clients"
	"mihf.dev/clients/attach"
	"mihf.dev/mihf"
)

// transport remembers what it is told.
type transport struct {
	mu      sync.Mutex // guards the following
	news    *sync.Cond
	frozen  bool
	freezes int
	lease   time.Duration
	thaws   []mihf.Unfreeze
	at      time.Time // of the newest change
}

func newTransport() *transport {
	x := &transport{}
	x.news = sync.NewCond(&x.mu)
	return x
}

func (x *transport) RTT() time.Duration { return 40 * time.Millisecond }

func (x *transport) Freeze(f mihf.Freeze) {
	x.change(func() { x.frozen, x.freezes, x.lease = true, x.freezes+1, f.Lease })
}

func (x *transport) Unfreeze(u mihf.Unfreeze) {
	x.change(func() { x.frozen, x.thaws = false, append(x.thaws, u) })
}

func (x *transport) Characteristics(mihf.LCI) {}

func (x *transport) change(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
	x.at = time.Now()
	x.news.Broadcast()
}

// want waits until ok holds.
func (x *transport) want(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, stop := wakeAt(x.news)
	defer stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !ok() {
		if !time.Now().Before(deadline) {
			t.Fatalf("%s: did not happen; frozen %v, thaws %+v", what, x.frozen, x.thaws)
		}
		x.news.Wait()
	}
}

// join attaches a transport to the bed's daemon, through a client, until the test ends.
func (b *bed) join(x *transport, client clients.Client, link mihf.LinkID) *attach.Flow {
	b.t.Helper()
	flow := attach.New(x, client, attach.Options{Spec: mihf.FlowSpec{Link: link, LateFreeze: true}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- flow.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	select {
	case <-flow.Ready():
	case <-time.After(patience):
		b.t.Fatal("the flow was not registered")
	}
	return flow
}

// TestLateFreezeAndThaw: at a loss that nobody foresaw a flow that wants it is frozen at
// once, the lease is renewed while the link is down, and the flow is thawed when its path
// is usable, which is later than the link is up.
func TestLateFreezeAndThaw(t *testing.T) {
	b := newBed(t, "[hint]\nlease = \"1s\"\n")
	id := b.online()
	x := newTransport()
	b.join(x, b.client, id)
	b.peer.Down("p0")
	h := b.hint(mihf.HintFreeze)
	if !h.Prediction.IsZero() || h.Freeze.Reason != mihf.FreezeLinkDown {
		t.Errorf("freeze of prediction %v, reason %v; want none, link_down", h.Prediction, h.Freeze.Reason)
	}
	x.want(t, "freeze", func() bool { return x.frozen })
	first := h.Epoch
	if renewed := b.hint(mihf.HintFreeze); renewed.Epoch <= first {
		t.Errorf("renewal has epoch %d after %d", renewed.Epoch, first)
	}
	b.peer.Up("p0")
	x.want(t, "thaw", func() bool { return !x.frozen })
	if len(x.thaws) != 1 || x.thaws[0].Cause != mihf.UnfreezePathUsable || x.thaws[0].Recovery {
		t.Errorf("thaws %+v, want one for path_usable without recovery", x.thaws)
	}
	up, usable, thaw := b.event(mihf.LinkUp, nil), b.event(mihf.PathUsable, isIPv4), b.hint(mihf.HintUnfreeze)
	if up.Sequence > usable.Sequence || usable.Sequence > thaw.Sequence {
		t.Errorf("up %d, usable %d, thaw %d: wrong order", up.Sequence, usable.Sequence, thaw.Sequence)
	}
}

// slack is what a busy machine may add to a lease.
const slack = 3 * time.Second

// TestDaemonKilledWhileFrozen: nobody renews the lease any more, so the client thaws the
// flow by itself, to recovery, within the lease; and joins the next daemon.
func TestDaemonKilledWhileFrozen(t *testing.T) {
	b := newBed(t, "[hint]\nlease = \"2s\"\n")
	id := b.online()
	x := newTransport()
	flow := b.join(x, b.client, id)
	boot := flow.Registration().Boot
	b.peer.Down("p0")
	x.want(t, "freeze", func() bool { return x.frozen })
	b.kill()
	killed := time.Now()
	x.want(t, "thaw without a broker", func() bool { return !x.frozen })
	x.mu.Lock()
	if len(x.thaws) != 1 || !x.thaws[0].Recovery {
		t.Errorf("thaws %+v, want one to recovery", x.thaws)
	}
	if took := x.at.Sub(killed); took > x.lease+slack {
		t.Errorf("thawed %v after the broker was gone, with a lease of %v", took, x.lease)
	}
	x.mu.Unlock()
	b.peer.Up("p0")
	b.start()
	b.want("the gap of a restart", func(d *mihf.Delivery) bool { return d.Kind == mihf.DeliverGap })
	b.want("the new daemon's snapshot", func(d *mihf.Delivery) bool { return d.Kind == mihf.DeliverSnapshot && d.Snapshot.Boot != boot })
	b.snapshot("the flow again", func(s *mihf.Snapshot) bool { return len(s.Flows) == 1 && !s.Flows[0].Frozen })
}

// count returns how many freezes the transport was told.
func (x *transport) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.freezes
}
