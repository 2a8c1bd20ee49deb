package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"mihf.dev/mihf"
)

// session ties a flow to the attachment that its hints go to; owned by the loop.
type session struct {
	to    *attachment
	owner uint32
	epoch uint64 // of the newest hint
	made  mihf.Time
}

// attachment is a transport process with its flows.
type attachment struct {
	b    *Broker
	ctx  context.Context
	who  mihf.Caller
	stop func() bool
	wake chan struct{}

	mailbox []uint64                 // places in the log; guarded by b.mu
	last    uint64                   // sequence of the newest hint delivered; the reader's
	flows   map[mihf.FlowID]struct{} // the loop's

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// Attach opens a transport's attachment. See front.Broker.
func (b *Broker) Attach(ctx context.Context, who mihf.Caller) (mihf.Attachment, error) {
	a := &attachment{
		b: b, ctx: ctx, who: who, wake: make(chan struct{}, 1), flows: map[mihf.FlowID]struct{}{}, done: make(chan struct{}),
	}
	full := false
	err := b.do(ctx, func(mihf.Time) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if full = len(b.feeds)+len(b.attached) >= b.cfg.MaxSubscribers; !full {
			b.attached[a] = struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	if full {
		b.counts.refused.Add(1)
		return nil, fmt.Errorf("%w: %d subscribers", mihf.ErrLimit, b.cfg.MaxSubscribers)
	}
	a.stop = context.AfterFunc(ctx, func() { a.end(context.Cause(ctx)) })
	return a, nil
}

// Register takes a flow; its hints come through Next from then on.
func (a *attachment) Register(spec mihf.FlowSpec) (reg mihf.Registration, err error) {
	owner, err := a.b.cfg.Access.Owner(a.who, &spec)
	if err != nil {
		a.b.counts.refused.Add(1)
		return reg, err
	}
	if spec.ID != "" {
		if _, bad := ulid.ParseStrict(string(spec.ID)); bad != nil {
			return reg, fmt.Errorf("%w: flow id %q is no ULID", mihf.ErrInvalid, string(spec.ID))
		}
	}
	stopped := a.b.do(a.ctx, func(now mihf.Time) { reg, err = a.b.register(now, a, spec, owner) })
	if stopped != nil {
		return reg, stopped
	}
	return reg, err
}

func (b *Broker) register(now mihf.Time, a *attachment, spec mihf.FlowSpec, owner uint32) (mihf.Registration, error) {
	if a.Err() != nil {
		return mihf.Registration{}, a.Err()
	}
	if len(a.flows) >= b.cfg.MaxFlows {
		return mihf.Registration{}, fmt.Errorf("%w: %d flows on one attachment", mihf.ErrLimit, b.cfg.MaxFlows)
	}
	if spec.ID == "" {
		spec.ID = b.ids.next()
	}
	frozen := false
	if old := b.sessions[spec.ID]; old != nil {
		if old.owner != owner {
			return mihf.Registration{}, fmt.Errorf("%w: flow %s", mihf.ErrExists, spec.ID)
		}
		// The owner came back before its old connection was found dead. A freeze in force
		// stays known to the client through its lease.
		var s mihf.FlowStatus
		frozen = b.engine.FlowStatus(now, spec.ID, &s) && s.Frozen
		b.release(old.to, spec.ID)
	}
	b.sessions[spec.ID] = &session{to: a, owner: owner}
	reg, err := b.engine.Register(now, &spec, owner)
	if err != nil {
		delete(b.sessions, spec.ID)
		return mihf.Registration{}, err
	}
	reg.Frozen = frozen
	a.flows[spec.ID] = struct{}{}
	return reg, nil
}

// release ends a registration; in the loop.
func (b *Broker) release(a *attachment, id mihf.FlowID) {
	delete(b.sessions, id)
	delete(a.flows, id)
	b.engine.Unregister(id)
}

// own runs f in the loop if the flow is registered here.
func (a *attachment) own(id mihf.FlowID, f func(now mihf.Time, s *session) error) error {
	var err error
	stopped := a.b.do(a.ctx, func(now mihf.Time) {
		if s := a.b.sessions[id]; s != nil && s.to == a {
			err = f(now, s)
			return
		}
		err = fmt.Errorf("%w: flow %q is not registered here", mihf.ErrNotFound, string(id))
	})
	if stopped != nil {
		return stopped
	}
	return err
}

func (a *attachment) Update(u mihf.FlowUpdate) error {
	return a.own(u.Flow, func(now mihf.Time, _ *session) error { return a.b.engine.Update(now, &u) })
}

func (a *attachment) Unregister(id mihf.FlowID) error {
	return a.own(id, func(mihf.Time, *session) error { a.b.release(a, id); return nil })
}

func (a *attachment) Acknowledge(k mihf.Ack) error {
	return a.own(k.Flow, func(now mihf.Time, s *session) error {
		made := mihf.Time(0)
		if s.epoch == k.Epoch {
			made = s.made
		}
		return a.b.engine.Acknowledge(now, &k, made)
	})
}

// push puts a hint into the mailbox; in the loop, mu held.
func (a *attachment) push(place uint64) {
	if len(a.mailbox) >= a.b.cfg.Mailbox {
		if a.Err() == nil {
			a.b.counts.slow.Add(1)
			a.b.cfg.Logger.Warn("attachment closed", "reason", "slow", "waiting_hints", len(a.mailbox))
		}
		a.finish(fmt.Errorf("%w: %d hints waited", mihf.ErrSlow, len(a.mailbox)))
		return
	}
	a.mailbox = append(a.mailbox, place)
}

func (a *attachment) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Next waits for hints of the attachment's flows.
func (a *attachment) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	for {
		n, closing, err := a.take(buf)
		switch {
		case err != nil:
			return 0, err
		case n > 0:
			return n, nil
		case closing:
			return 0, mihf.ErrClosed
		}
		select {
		case <-a.wake:
		case <-a.done:
			return 0, a.err
		}
	}
}

func (a *attachment) take(buf []mihf.Delivery) (n int, closing bool, err error) {
	a.b.mu.RLock()
	defer a.b.mu.RUnlock()
	if err := a.Err(); err != nil {
		return 0, false, err
	}
	for n < len(buf) && n < len(a.mailbox) {
		d := &buf[n]
		if !a.b.log.HintAt(a.mailbox[n], &d.Hint) {
			a.b.counts.slow.Add(1)
			err := fmt.Errorf("%w: a hint fell out of the log unread", mihf.ErrSlow)
			a.finish(err)
			return 0, false, err
		}
		d.Kind, d.Previous, d.Conflated = mihf.DeliverHint, a.last, 0
		a.last = d.Hint.Sequence
		n++
	}
	a.mailbox = a.mailbox[:copy(a.mailbox, a.mailbox[n:])]
	return n, a.b.closing, nil
}

func (a *attachment) Done() <-chan struct{} { return a.done }

func (a *attachment) Err() error {
	select {
	case <-a.done:
		return a.err
	default:
		return nil
	}
}

func (a *attachment) Close() {
	a.stop()
	a.end(mihf.ErrClosed)
}

func (a *attachment) finish(why error) {
	a.once.Do(func() {
		a.err = why
		close(a.done)
	})
}

// end finishes the attachment and the registration of its flows.
func (a *attachment) end(why error) {
	a.finish(why)
	_ = a.b.do(context.Background(), func(mihf.Time) { // fails only where the broker has ended too
		for id := range a.flows {
			a.b.release(a, id)
		}
		a.b.mu.Lock()
		delete(a.b.attached, a)
		a.b.mu.Unlock()
	})
}

// idSource makes flow ids.
type idSource struct{ entropy *ulid.MonotonicEntropy }

func newIDSource() idSource { return idSource{ulid.Monotonic(rand.Reader, 0)} }

func (s idSource) next() mihf.FlowID {
	return mihf.FlowID(ulid.MustNew(ulid.Timestamp(time.Now()), s.entropy).String())
}
