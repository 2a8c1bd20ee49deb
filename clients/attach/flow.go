package attach

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// Transport is what can be joined. Its methods must return at once. It may also have the
// methods of [Preparer], [Switcher] and [Abandoner].
type Transport interface {
	RTT() time.Duration // with queue; 0: not known
	Freeze(mihf.Freeze)
	Unfreeze(mihf.Unfreeze)
	Characteristics(mihf.LCI)
}

// Preparer is a transport that can make itself ready for another link.
type Preparer interface{ Prepare(mihf.Prepare) }

// Switcher is a transport that can go on over another link.
type Switcher interface{ Switch(mihf.Switch) }

// Abandoner is a transport that wants to know that it cannot go on.
type Abandoner interface{ Abandon(mihf.AbandonReason) }

// Attacher opens attachments; every [clients.Client] is one.
type Attacher interface {
	Attach(ctx context.Context) (mihf.Attachment, error)
}

// Options say how to join. Fields that are zero mean the default that they name.
type Options struct {
	// Spec is what to register. Its RTT is the transport's where that is known; its Hints,
	// if none are named, are those that the transport has methods for.
	Spec   mihf.FlowSpec
	Clock  clock.Clock  // the client's; boot time
	Logger *slog.Logger // nil: discard
}

// rttEvery is the least time between two looks at the RTT; one that changed by more than
// a tenth is told to the broker.
const rttEvery = time.Second

// Flow keeps one transport joined. See the package comment.
type Flow struct {
	t      Transport
	client Attacher
	o      Options
	log    *slog.Logger
	ready  chan struct{}
	once   sync.Once     // closes ready
	wake   chan struct{} // full when the lease changed

	mu    sync.Mutex // guards the following, and calls of the transport
	lease Lease
	reg   mihf.Registration
}

// New returns a flow that does nothing until Run.
func New(t Transport, client Attacher, o Options) *Flow {
	if o.Spec.Hints == 0 {
		o.Spec.Hints = taken(t)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Flow{t: t, client: client, o: o, log: o.Logger, ready: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// taken returns the hints that the transport has methods for.
func taken(t Transport) mihf.HintSet {
	s := mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze, mihf.HintCharacteristics)
	if _, ok := t.(Preparer); ok {
		s |= mihf.Hints(mihf.HintPrepare)
	}
	if _, ok := t.(Switcher); ok {
		s |= mihf.Hints(mihf.HintSwitch)
	}
	if _, ok := t.(Abandoner); ok {
		s |= mihf.Hints(mihf.HintAbandon)
	}
	return s
}

// String names the task.
func (f *Flow) String() string { return "flow" }

// Ready is closed when the flow is registered for the first time.
func (f *Flow) Ready() <-chan struct{} { return f.ready }

// Registration returns the broker's newest answer; zero before the first.
func (f *Flow) Registration() mihf.Registration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reg
}

// Run keeps the transport joined until ctx ends, and returns nil then. It returns an error
// where the broker refuses the flow for good, mihf.ErrPermission or ErrInvalid, and where the
// client was closed, clients.ErrClientClosed. A flow that is frozen when Run ends is thawed to
// recovery.
func (f *Flow) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { f.keep(ctx) })
	defer f.end()
	defer keeping.Wait()
	defer cancel()
	var pause clients.Backoff
	for {
		err := f.join(ctx, &pause)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, mihf.ErrPermission), errors.Is(err, mihf.ErrInvalid), errors.Is(err, clients.ErrClientClosed):
			return err
		}
		f.log.Info("flow not joined", "error", err)
		if pause.Wait(ctx) != nil {
			return nil
		}
	}
}

// join registers the flow and applies its hints until the attachment ends.
func (f *Flow) join(ctx context.Context, pause *clients.Backoff) error {
	at, err := f.client.Attach(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	rtt, err := f.register(at)
	if err != nil {
		return err
	}
	pause.Reset()
	telling, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { f.tellRTT(telling, at, rtt) })
	defer wg.Wait()
	defer at.Close() // ends a tell that waits for its answer
	defer cancel()
	return f.read(at)
}

// register returns the RTT that the broker was told.
func (f *Flow) register(at mihf.Attachment) (time.Duration, error) {
	spec := f.o.Spec
	if id := f.Registration().Flow; id != "" {
		spec.ID = id
	}
	if rtt := f.rtt(); rtt > 0 {
		spec.RTT = rtt
	}
	reg, err := at.Register(spec)
	if errors.Is(err, mihf.ErrExists) && f.o.Spec.ID == "" {
		spec.ID = "" // it was the broker's choice, so another one will do
		reg, err = at.Register(spec)
	}
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reg = reg
	if f.lease.Registered(&reg) {
		f.t.Unfreeze(lapsed)
	}
	f.log.Info("flow joined", "flow", string(reg.Flow), "link", string(reg.Link))
	f.once.Do(func() { close(f.ready) })
	return spec.RTT, nil
}

// read applies and acknowledges hints.
func (f *Flow) read(at mihf.Attachment) error {
	var buf [8]mihf.Delivery
	for {
		n, err := at.Next(buf[:])
		if err != nil {
			return err
		}
		for i := range buf[:n] {
			if buf[i].Kind != mihf.DeliverHint {
				continue // a gap: its hints were not for us to have, and the lease bounds the harm
			}
			ack := f.hint(&buf[i].Hint)
			if err := at.Acknowledge(ack); err != nil && at.Err() != nil {
				return err
			}
		}
	}
}

// hint applies a hint if it is due and returns what to acknowledge.
func (f *Flow) hint(h *mihf.Hint) mihf.Ack {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Clock.Now()
	if h.Flow != f.reg.Flow {
		return mihf.Ack{Flow: h.Flow, Epoch: h.Epoch, Result: mihf.AckRefused}
	}
	if f.lease.Advance(now) {
		f.t.Unfreeze(lapsed)
	}
	apply, result := f.lease.Hint(now, h)
	if apply && !f.apply(now, h) {
		result = mihf.AckRefused
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return mihf.Ack{Flow: h.Flow, Epoch: h.Epoch, Result: result, Held: f.o.Clock.Now().Sub(now)}
}

// apply tells the transport and reports whether it has a method for the hint.
func (f *Flow) apply(now mihf.Time, h *mihf.Hint) bool {
	switch h.Kind {
	case mihf.HintFreeze:
		f.t.Freeze(fromNow(h.Freeze, age(now, h)))
	case mihf.HintUnfreeze:
		f.t.Unfreeze(h.Unfreeze)
	case mihf.HintCharacteristics:
		if h.Characteristics != nil {
			f.t.Characteristics(*h.Characteristics)
		}
	case mihf.HintPrepare:
		if t, ok := f.t.(Preparer); ok {
			p := h.Prepare
			p.Deadline = max(p.Deadline-age(now, h), 0)
			t.Prepare(p)
			return true
		}
		return false
	case mihf.HintSwitch:
		if t, ok := f.t.(Switcher); ok {
			t.Switch(h.Switch)
			return true
		}
		return false
	case mihf.HintAbandon:
		if t, ok := f.t.(Abandoner); ok {
			t.Abandon(h.Abandon)
			return true
		}
		return false
	}
	return true
}

// fromNow counts the times to the loss from the arrival.
func fromNow(z mihf.Freeze, age time.Duration) mihf.Freeze {
	z.P10, z.P50, z.P90 = max(z.P10-age, 0), max(z.P50-age, 0), max(z.P90-age, 0)
	return z
}

// keep ends freezes whose lease lapses.
func (f *Flow) keep(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(f.lapse())
		select {
		case <-timer.C:
		case <-f.wake:
		case <-ctx.Done():
			return
		}
	}
}

// lapse ends a freeze that is due and returns how long to wait for the next.
func (f *Flow) lapse() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Clock.Now()
	if f.lease.Advance(now) {
		f.log.Warn("lease lapsed", "flow", string(f.reg.Flow))
		f.t.Unfreeze(lapsed)
	}
	if next := f.lease.Next(); next != 0 {
		return f.o.Clock.Real(next.Sub(now))
	}
	return time.Hour
}

// end thaws a flow that nobody will keep any more.
func (f *Flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lease.End() {
		f.t.Unfreeze(lapsed)
	}
}

// tellRTT tells the broker when the RTT has changed.
func (f *Flow) tellRTT(ctx context.Context, at mihf.Attachment, told time.Duration) {
	ticker := time.NewTicker(f.o.Clock.Real(rttEvery))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		rtt := f.rtt()
		if !changed(told, rtt) {
			continue
		}
		if err := at.Update(mihf.FlowUpdate{Flow: f.Registration().Flow, RTT: mihf.Some(rtt)}); err != nil {
			f.log.Debug("RTT not told", "error", err)
			continue
		}
		told = rtt
	}
}

// rtt asks the transport.
func (f *Flow) rtt() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.t.RTT()
}

// changed reports whether b is known and differs from a by more than a tenth.
func changed(a, b time.Duration) bool {
	return b > 0 && (b-a).Abs() > a/10
}
