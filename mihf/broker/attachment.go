package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/route"
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
	ending
	b     *Broker
	ctx   context.Context
	who   mihf.Caller
	stop  func() bool
	wait  sleeper
	flows map[mihf.FlowID]struct{} // the loop's

	mu      sync.Mutex  // guards mailbox
	mailbox []mihf.Hint // not yet taken by the reader

	// The reader's.
	taken []mihf.Hint
	next  int    // of taken
	last  uint64 // sequence of the newest hint delivered
}

// Attach opens a transport's attachment. See front.Broker.
func (b *Broker) Attach(ctx context.Context, who mihf.Caller) (mihf.Attachment, error) {
	if err := b.require("attach", who, access.RegisterOwn); err != nil {
		return nil, err
	}
	a := &attachment{
		ending: newEnding(), b: b, ctx: ctx, who: who, wait: newSleeper(), flows: map[mihf.FlowID]struct{}{},
	}
	var refused error
	err := b.do(ctx, func(mihf.Time) {
		if refused = b.admit(who.Identity()); refused == nil {
			b.attached[a] = struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	a.stop = context.AfterFunc(ctx, func() { a.end(context.Cause(ctx)) })
	return a, nil
}

// Register takes a flow; its hints come through Next from then on.
func (a *attachment) Register(spec mihf.FlowSpec) (reg mihf.Registration, err error) {
	owner, err := a.b.access.Load().Owner(a.who, &spec)
	if err != nil {
		return reg, a.b.refuse("register", a.who, err)
	}
	if spec.ID == "" {
		spec.ID = newFlowID()
	} else if _, bad := ulid.ParseStrict(string(spec.ID)); bad != nil {
		return reg, a.b.refused(fmt.Errorf("%w: flow id %q is no ULID", mihf.ErrInvalid, string(spec.ID)))
	}
	if err := route.Check(&spec); err != nil {
		return reg, a.b.refused(err)
	}
	stopped := a.b.do(a.ctx, func(now mihf.Time) {
		if reg, err = a.b.register(now, a, spec, owner); err != nil {
			err = a.b.refused(err)
		}
	})
	if stopped != nil {
		return reg, stopped
	}
	return reg, err
}

// register takes a flow whose spec was checked; in the loop.
func (b *Broker) register(now mihf.Time, a *attachment, spec mihf.FlowSpec, owner uint32) (mihf.Registration, error) {
	if a.Err() != nil {
		return mihf.Registration{}, a.Err()
	}
	old := b.sessions[spec.ID]
	if old != nil && old.owner != owner {
		return mihf.Registration{}, fmt.Errorf("%w: flow %s", mihf.ErrExists, spec.ID)
	}
	if old == nil && b.owned[owner] >= b.cfg.MaxFlows {
		return mihf.Registration{}, fmt.Errorf("%w: uid %d has %d flows; see [broker] max_flows", mihf.ErrLimit, owner, b.cfg.MaxFlows)
	}
	frozen := false
	if old != nil {
		// The owner came back before its old connection was found dead. A freeze in force
		// stays known to the client through its lease.
		var s mihf.FlowStatus
		frozen = b.engine.FlowStatus(now, spec.ID, &s) && s.Frozen
		b.release(old.to, spec.ID)
	}
	reg, err := b.engine.Register(now, &spec, owner)
	if err != nil {
		return mihf.Registration{}, err
	}
	reg.Frozen = frozen
	b.sessions[spec.ID] = &session{to: a, owner: owner}
	b.owned[owner]++
	a.flows[spec.ID] = struct{}{}
	return reg, nil
}

// release ends a registration; in the loop.
func (b *Broker) release(a *attachment, id mihf.FlowID) {
	if s := b.sessions[id]; s != nil {
		if b.owned[s.owner]--; b.owned[s.owner] == 0 {
			delete(b.owned, s.owner)
		}
	}
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

// Update takes a flow's newer state.
func (a *attachment) Update(u mihf.FlowUpdate) error {
	return a.own(u.Flow, func(now mihf.Time, _ *session) error { return a.b.engine.Update(now, &u) })
}

// Unregister ends a flow's registration.
func (a *attachment) Unregister(id mihf.FlowID) error {
	return a.own(id, func(mihf.Time, *session) error { a.b.release(a, id); return nil })
}

// Acknowledge notes what the transport did with a hint.
func (a *attachment) Acknowledge(k mihf.Ack) error {
	return a.own(k.Flow, func(now mihf.Time, s *session) error {
		made := mihf.Time(0)
		if s.epoch == k.Epoch {
			made = s.made
		}
		return a.b.engine.Acknowledge(now, &k, made)
	})
}

// post puts a hint into the mailbox of its flow's attachment; in the loop.
func (b *Broker) post(h *mihf.Hint) {
	b.counts.hints.Add(1)
	s := b.sessions[h.Flow]
	if s == nil || s.to.Err() != nil {
		return
	}
	s.epoch, s.made = h.Epoch, h.At
	if n, ok := s.to.push(h, b.cfg.Mailbox+8*len(s.to.flows)); !ok {
		s.to.finish(fmt.Errorf("%w: %d hints waited", mihf.ErrSlow, n))
	}
	b.hinted = append(b.hinted, s.to)
}

// wakeHinted wakes the attachments that got hints; in the loop.
func (b *Broker) wakeHinted() {
	for _, a := range b.hinted {
		a.wait.wake()
	}
	clear(b.hinted)
	b.hinted = b.hinted[:0]
}

// push returns how many hints wait, and false if they are the limit already.
func (a *attachment) push(h *mihf.Hint, limit int) (int, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.mailbox); n >= limit {
		return n, false
	}
	a.mailbox = append(a.mailbox, *h)
	return len(a.mailbox), true
}

// Next waits for hints of the attachment's flows.
func (a *attachment) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	for {
		if a.wait.over() {
			return 0, a.Err()
		}
		closing := a.b.closing.Load() // before the last look into the mailbox
		if n := a.take(buf); n > 0 {
			return n, nil
		}
		if closing {
			a.finish(mihf.ErrClosed)
			continue
		}
		a.wait.sleep(a.ready)
	}
}

func (a *attachment) ready() bool {
	if a.b.closing.Load() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.mailbox) > 0
}

// spare is the room for hints that an idle attachment keeps.
const spare = 32

// take delivers what waits.
func (a *attachment) take(buf []mihf.Delivery) int {
	if a.next == len(a.taken) {
		if cap(a.taken) > spare {
			a.taken = nil
		}
		a.mu.Lock()
		a.mailbox, a.taken, a.next = a.taken[:0], a.mailbox, 0
		a.mu.Unlock()
	}
	n := 0
	for ; n < len(buf) && a.next < len(a.taken); n++ {
		d := &buf[n]
		d.Kind, d.Previous, d.Conflated, d.Hint = mihf.DeliverHint, a.last, 0, a.taken[a.next]
		a.last = d.Hint.Sequence
		a.next++
	}
	return n
}

// Close ends the attachment and its registrations, and waits until the loop has done so.
func (a *attachment) Close() {
	a.stop()
	a.end(mihf.ErrClosed)
}

func (a *attachment) finish(why error) {
	if !a.ending.finish(why) {
		return
	}
	a.wait.end()
	a.b.leave(a.who.Identity())
	if errors.Is(why, mihf.ErrSlow) {
		a.b.counts.slow.Add(1)
		a.b.cfg.Logger.Warn("attachment closed", "reason", "slow", "error", why)
	}
}

// end finishes the attachment and the registration of its flows.
func (a *attachment) end(why error) {
	a.finish(why)
	_ = a.b.doAnyway(func(mihf.Time) { // fails only where the broker has ended too
		for id := range a.flows {
			a.b.release(a, id)
		}
		delete(a.b.attached, a)
	})
}

func newFlowID() mihf.FlowID {
	ms := min(ulid.Timestamp(time.Now()), ulid.MaxTime())
	return mihf.FlowID(ulid.MustNew(ms, rand.Reader).String()) // fails only beyond MaxTime, and where reading fails
}
