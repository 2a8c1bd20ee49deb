package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transport notes what it is told.
type transport struct {
	mu   sync.Mutex
	rtt  time.Duration
	told []string
	at   []time.Time
}

func (p *transport) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told, p.at = append(p.told, fmt.Sprintf(format, args...)), append(p.at, time.Now())
}

func (p *transport) setRTT(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rtt = d
}

func (p *transport) RTT() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rtt
}
func (p *transport) Freeze(f mihf.Freeze)       { p.say("freeze p50 %v", f.P50) }
func (p *transport) Unfreeze(u mihf.Unfreeze)   { p.say("unfreeze %v recovery %v", u.Cause, u.Recovery) }
func (p *transport) Characteristics(l mihf.LCI) { p.say("characteristics of %s", l.Link) }
func (p *transport) Prepare(x mihf.Prepare)     { p.say("prepare %s in %v", x.Target, x.Deadline) }
func (p *transport) wantTold(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.told); diff != "" {
		t.Errorf("told (-want +got)\n%s", diff)
	}
}

// broker is one that a test plays by hand.
type broker struct {
	clock    clock.Clock
	boot     mihf.BootID
	refuse   error
	taken    mihf.FlowID // an id that is another user's
	deaf     bool        // refuses acknowledgements
	attached chan *attachment
}

func (b *broker) Attach(ctx context.Context) (mihf.Attachment, error) {
	if b.refuse != nil {
		return nil, b.refuse
	}
	a := &attachment{b: b, hints: make(chan mihf.Hint, 16), done: make(chan struct{})}
	context.AfterFunc(ctx, a.Close)
	b.attached <- a
	return a, nil
}

type attachment struct {
	b     *broker
	hints chan mihf.Hint
	once  sync.Once
	done  chan struct{}

	mu      sync.Mutex // guards the following
	specs   []mihf.FlowSpec
	updates []mihf.FlowUpdate
	acks    []mihf.Ack
}

func (a *attachment) Next(buf []mihf.Delivery) (int, error) {
	select {
	case h := <-a.hints:
		buf[0] = mihf.Delivery{Kind: mihf.DeliverHint, Hint: h}
		return 1, nil
	case <-a.done:
		return 0, mihf.ErrClosed
	}
}
func (a *attachment) Done() <-chan struct{} { return a.done }
func (a *attachment) Err() error {
	select {
	case <-a.done:
		return mihf.ErrClosed
	default:
		return nil
	}
}
func (a *attachment) Close() { a.once.Do(func() { close(a.done) }) }
func (a *attachment) Register(s mihf.FlowSpec) (mihf.Registration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.specs = append(a.specs, s)
	if s.ID != "" && s.ID == a.b.taken {
		return mihf.Registration{}, mihf.ErrExists
	}
	if s.ID == "" {
		s.ID = "F"
	}
	return mihf.Registration{Flow: s.ID, Boot: a.b.boot, Lease: lease}, nil
}

func (a *attachment) Update(u mihf.FlowUpdate) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.updates = append(a.updates, u)
	return nil
}
func (a *attachment) Unregister(mihf.FlowID) error { return nil }
func (a *attachment) Acknowledge(k mihf.Ack) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acks = append(a.acks, k)
	if a.b.deaf {
		return mihf.ErrNotFound
	}
	return nil
}

// give hands the flow a hint and waits until it was applied.
func (a *attachment) give(h mihf.Hint) {
	h.Flow, h.Boot = "F", a.b.boot
	if h.At == 0 {
		h.At = a.b.clock.Now()
	}
	if h.Kind == mihf.HintFreeze {
		h.Freeze.Lease = lease
	}
	a.hints <- h
	synctest.Wait()
}

func (a *attachment) wantAcks(t *testing.T, want ...mihf.AckResult) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var got []mihf.AckResult
	for _, k := range a.acks {
		got = append(got, k.Result)
	}
	if !slices.Equal(want, got) {
		t.Errorf("acknowledged %v, want %v", got, want)
	}
}

type world struct {
	*testing.T
	t    *transport
	b    *broker
	f    *Flow
	stop func() // ends Run and waits for it
}

func play(t *testing.T, script func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := clock.Process()
		w := &world{T: t, t: &transport{rtt: 100 * time.Millisecond}, b: &broker{clock: c, boot: 1, attached: make(chan *attachment, 8)}}
		w.f = New(w.t, w.b, Options{Clock: c})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.f.Run(ctx) }()
		w.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		defer w.stop()
		script(w)
	})
}

func (w *world) attachment() *attachment {
	w.Helper()
	a := <-w.b.attached
	synctest.Wait()
	return a
}

func TestHintsAreAppliedAndAcknowledged(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		want := mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze, mihf.HintCharacteristics, mihf.HintPrepare)
		if got := a.specs[0]; got.RTT != 100*time.Millisecond || got.Hints != want {
			t.Errorf("registered %+v, want its RTT and the hints it has methods for", got)
		}
		now := w.b.clock.Now()
		a.give(mihf.Hint{Epoch: 1, Kind: mihf.HintPrepare, At: now.Add(-time.Second), Prepare: mihf.Prepare{Target: "wwan-00000001", Deadline: 3 * time.Second}})
		a.give(mihf.Hint{Epoch: 2, Kind: mihf.HintFreeze, At: now.Add(-200 * time.Millisecond), Freeze: mihf.Freeze{P50: time.Second}})
		a.give(mihf.Hint{Epoch: 2, Kind: mihf.HintFreeze})
		a.give(mihf.Hint{Epoch: 3, Kind: mihf.HintUnfreeze, Unfreeze: mihf.Unfreeze{Cause: mihf.UnfreezeRollback}})
		a.give(mihf.Hint{Epoch: 1, Kind: mihf.HintFreeze})
		a.give(mihf.Hint{Epoch: 4, Kind: mihf.HintSwitch})
		a.give(mihf.Hint{Epoch: 5, Kind: mihf.HintCharacteristics, Characteristics: &mihf.LCI{Link: "wifi-00000001"}})
		w.t.wantTold(t, "prepare wwan-00000001 in 2s", "freeze p50 800ms", "unfreeze rollback recovery false", "characteristics of wifi-00000001")
		a.wantAcks(t, mihf.AckApplied, mihf.AckApplied, mihf.AckApplied, mihf.AckApplied, mihf.AckLate, mihf.AckRefused, mihf.AckApplied)
	})
}

// Every time to the loss counts from the arrival; one that is over is 0.
func TestFiguresCountFromTheArrival(t *testing.T) {
	got := fromNow(mihf.Freeze{Lease: lease, P10: time.Second, P50: 2 * time.Second, P90: 3 * time.Second}, 1500*time.Millisecond)
	if want := (mihf.Freeze{Lease: lease, P50: 500 * time.Millisecond, P90: 1500 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// able is a transport that has a method for every hint.
type able struct{ transport }

func (*able) Switch(mihf.Switch)         {}
func (*able) Abandon(mihf.AbandonReason) {}

func TestHintsByMethods(t *testing.T) {
	if got := taken(&able{}); got != mihf.AllHints {
		t.Errorf("%b, want all", got)
	}
}

func TestLapsedLeaseThawsToRecovery(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		a.give(mihf.Hint{Epoch: 1, Kind: mihf.HintFreeze})
		time.Sleep(2 * time.Second)
		a.give(mihf.Hint{Epoch: 2, Kind: mihf.HintFreeze}) // renewed
		time.Sleep(lease - time.Millisecond)
		w.t.wantTold(t, "freeze p50 0s")
		time.Sleep(time.Millisecond)
		w.t.wantTold(t, "freeze p50 0s", "unfreeze expired recovery true")
		if got := w.t.at[1].Sub(w.t.at[0]); got != 2*time.Second+lease {
			t.Errorf("frozen for %v, want %v", got, 2*time.Second+lease)
		}
	})
}

// The broker dies while the flow is frozen: it recovers within its lease.
func TestBrokerDies(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		a.give(mihf.Hint{Epoch: 1, Kind: mihf.HintFreeze})
		w.b.refuse = mihf.ErrClosed
		a.Close()
		time.Sleep(lease)
		w.t.wantTold(t, "freeze p50 0s", "unfreeze expired recovery true")
	})
}

func TestBrokerRestarts(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		a.give(mihf.Hint{Epoch: 7, Kind: mihf.HintFreeze})
		w.b.boot = 2
		a.Close()
		b := w.attachment()
		if got := b.specs[0].ID; got != "F" {
			t.Errorf("came back as flow %q, want the same id", got)
		}
		w.t.wantTold(t, "freeze p50 0s", "unfreeze expired recovery true")
		b.give(mihf.Hint{Epoch: 1, Kind: mihf.HintFreeze})
		w.t.wantTold(t, "freeze p50 0s", "unfreeze expired recovery true", "freeze p50 0s")
	})
}

// A short loss of the connection does not thaw: the lease decides.
func TestConnectionLostAndBack(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		a.give(mihf.Hint{Epoch: 3, Kind: mihf.HintFreeze})
		a.Close()
		b := w.attachment()
		w.t.wantTold(t, "freeze p50 0s")
		b.give(mihf.Hint{Epoch: 1, Kind: mihf.HintUnfreeze})
		w.t.wantTold(t, "freeze p50 0s", "unfreeze path_usable recovery false")
	})
}

// An id that the broker chose, and that is somebody else's by now, is given up for another.
func TestIDIsTaken(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		w.b.taken = "F"
		a.Close()
		b := w.attachment()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.specs) != 2 || b.specs[0].ID != "F" || b.specs[1].ID != "" {
			t.Errorf("asked for %+v, want F and then any", b.specs)
		}
	})
}

// A refused acknowledgement ends nothing.
func TestAcknowledgementIsRefused(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		w.b.deaf = true
		a.give(mihf.Hint{Epoch: 1, Kind: mihf.HintFreeze})
		a.give(mihf.Hint{Epoch: 2, Kind: mihf.HintUnfreeze})
		w.t.wantTold(t, "freeze p50 0s", "unfreeze path_usable recovery false")
		a.wantAcks(t, mihf.AckApplied, mihf.AckApplied)
	})
}

func TestEndThaws(t *testing.T) {
	play(t, func(w *world) {
		w.attachment().give(mihf.Hint{Epoch: 1, Kind: mihf.HintFreeze})
		w.stop()
		w.t.wantTold(t, "freeze p50 0s", "unfreeze expired recovery true")
	})
}

// An RTT that changed by more than a tenth is told, at most once a second.
func TestRTTIsTold(t *testing.T) {
	play(t, func(w *world) {
		a := w.attachment()
		for _, ms := range []int64{109, 111, 115, 0, 300, 400} {
			w.t.setRTT(time.Duration(ms * 1e6))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		var got []int64
		a.mu.Lock()
		for _, u := range a.updates {
			got = append(got, u.RTT.Or(0).Milliseconds())
		}
		a.mu.Unlock()
		if want := []int64{111, 300, 400}; !slices.Equal(got, want) {
			t.Errorf("told %d ms, want %d", got, want)
		}
	})
}

func TestRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, why := range []error{fmt.Errorf("%w: not you", mihf.ErrPermission), mihf.ErrInvalid, clients.ErrClientClosed} {
			f := New(&transport{}, &broker{refuse: why}, Options{})
			if err := f.Run(t.Context()); !errors.Is(err, why) {
				t.Errorf("Run ended with %v, want %v", err, why)
			}
		}
	})
}
