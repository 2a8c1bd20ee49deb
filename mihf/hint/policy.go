package hint

import (
	"time"

	"mihf.dev/mihf"
)

// Policy is the state of all flows of one broker.
type Policy struct {
	cfg     Config
	boot    mihf.BootID
	flows   map[mihf.FlowID]*flow
	order   []*flow // all; one that is removed leaves its place to the last
	links   map[mihf.LinkID][]*flow
	due     []*flow            // filled by Due for Freeze
	next    mihf.Time          // not later than the first deadline of a flow
	margins map[uint32]*margin // by owner

	departed map[mihf.FlowID]departed
	leaving  []mihf.FlowID // the keys of departed, oldest first
}

// Out collects hints. The owner numbers and empties it.
type Out struct{ List []mihf.Hint }

// New returns a policy without flows.
func New(cfg Config, boot mihf.BootID) *Policy {
	return &Policy{
		cfg: cfg, boot: boot,
		flows: map[mihf.FlowID]*flow{}, links: map[mihf.LinkID][]*flow{},
		margins: map[uint32]*margin{}, departed: map[mihf.FlowID]departed{},
	}
}

// Add takes a flow that was registered. Its ID must be new. The flow's epochs begin above
// epoch: where an ID comes back, that must not be below those it had.
func (p *Policy) Add(spec mihf.FlowSpec, owner uint32, link mihf.LinkID, epoch uint64) mihf.Registration {
	spec.Owner = mihf.Some(owner)
	f := &flow{spec: spec, owner: owner, link: link, epoch: epoch, acked: epoch, at: len(p.order)}
	f.backoff = p.cfg.Backoff
	f.margin = p.joinMargin(owner)
	p.recall(f)
	p.flows[spec.ID] = f
	p.order = append(p.order, f)
	p.join(f, link)
	granted := spec.Hints
	if granted == 0 {
		granted = mihf.AllHints
	}
	return mihf.Registration{
		Flow: spec.ID, Boot: p.boot, Link: link, Lead: f.lead(&p.cfg, f.margin.current), Lease: p.cfg.Lease, Hints: granted,
	}
}

// Remove forgets a flow, but for its account of needless freezes. It gets no further
// hint.
func (p *Policy) Remove(id mihf.FlowID) {
	f := p.flows[id]
	if f == nil {
		return
	}
	p.keep(f)
	p.quit(f)
	f.margin.flows--
	last := len(p.order) - 1
	p.order[f.at] = p.order[last]
	p.order[f.at].at = f.at
	p.order[last] = nil
	p.order = p.order[:last]
	delete(p.flows, id)
}

// join and quit keep the list of a link's flows.
func (p *Policy) join(f *flow, link mihf.LinkID) {
	f.link, f.on = link, len(p.links[link])
	p.links[link] = append(p.links[link], f)
}

func (p *Policy) quit(f *flow) {
	list := p.links[f.link]
	last := len(list) - 1
	list[f.on] = list[last]
	list[f.on].on = f.on
	list[last] = nil
	if p.links[f.link] = list[:last]; last == 0 {
		delete(p.links, f.link)
	}
}

// Update changes what a transport said of its flow; unknown fields stay.
func (p *Policy) Update(u *mihf.FlowUpdate) {
	f := p.flows[u.Flow]
	if f == nil {
		return
	}
	f.spec.RTT = u.RTT.Or(f.spec.RTT)
	f.spec.LocalDrain = u.LocalDrain.Or(f.spec.LocalDrain)
	f.spec.Lead = u.Lead.Or(f.spec.Lead)
	f.spec.Link = u.Link.Or(f.spec.Link)
	if u.Tuples != nil {
		f.spec.Tuples = u.Tuples
	}
}

// Move notes that a flow is on another link now. What it was frozen for on the old one is
// no reason any more: it thaws when its path over the new one is usable.
func (p *Policy) Move(now mihf.Time, id mihf.FlowID, link mihf.LinkID) {
	f := p.flows[id]
	if f == nil || f.link == link {
		return
	}
	p.quit(f)
	p.join(f, link)
	f.measured = measured{} // of another path
	if f.frozen && !f.waits {
		f.book(now) // it may have been for nothing
		f.wait()
	}
}

// Acknowledge notes what a transport did with a hint, and learns the dispatch margin from
// the first acknowledgement of each: the time since the hint was made, less the time that
// the transport held it.
func (p *Policy) Acknowledge(now mihf.Time, a *mihf.Ack, made mihf.Time) {
	f := p.flows[a.Flow]
	if f == nil || a.Epoch > f.epoch || a.Epoch <= f.acked {
		return
	}
	f.acked, f.lastAck = a.Epoch, a.Result
	if made != 0 && a.Held >= 0 {
		f.margin.learn(now.Sub(made)-a.Held, p.cfg.MinMargin, p.cfg.MaxMargin)
	}
}

// Margin returns the dispatch margin in force for an owner's flows.
func (p *Policy) Margin(owner uint32) time.Duration {
	if m := p.margins[owner]; m != nil {
		return m.current
	}
	return p.cfg.MinMargin
}

// Next returns when Advance is due; zero: never.
func (p *Policy) Next() mihf.Time { return p.next }

// Advance renews leases and ends freezes that have reached a limit.
func (p *Policy) Advance(now mihf.Time, out *Out) {
	if !p.next.Due(now) {
		return
	}
	p.next = 0
	for _, f := range p.order {
		p.advance(now, f, out)
		p.next = mihf.Sooner(p.next, f.next(&p.cfg))
	}
}

func (p *Policy) advance(now mihf.Time, f *flow, out *Out) {
	switch {
	case !f.frozen:
	case f.since.Add(f.maxFreeze(&p.cfg)).Due(now):
		p.thaw(now, f, mihf.Unfreeze{Cause: mihf.UnfreezeMaxFreeze, Recovery: true}, out)
	case f.budgetEnd.Due(now):
		p.thaw(now, f, mihf.Unfreeze{Cause: mihf.UnfreezeBudget}, out)
	case f.renewAt.Due(now):
		p.renew(now, f, out)
	}
}

// renew sends the Freeze again, with the figures as they are now.
func (p *Policy) renew(now mihf.Time, f *flow, out *Out) {
	h := p.hint(now, f, mihf.HintFreeze, out)
	h.Prediction = f.prediction
	h.Freeze.Lease = p.lease(now, f)
	switch g := &f.figures; {
	case f.prediction.IsZero():
		h.Freeze.Reason = mihf.FreezeLinkDown
	case !f.waits:
		h.Freeze.P10, h.Freeze.P50, h.Freeze.P90 = g.left(now, g.p10), g.left(now, g.p50), g.left(now, g.p90)
	}
}

// Status fills what the policy knows of a flow; false if it is not registered.
func (p *Policy) Status(now mihf.Time, id mihf.FlowID, s *mihf.FlowStatus) bool {
	f := p.flows[id]
	if f == nil {
		return false
	}
	*s = mihf.FlowStatus{
		Spec: f.spec, Link: f.link, RTT: f.rtt(&p.cfg), RTTSource: f.rttSource(), Lead: f.lead(&p.cfg, f.margin.current),
		Frozen: f.frozen, Epoch: f.epoch, Acknowledged: f.acked, LastAck: f.lastAck,
		Needless: f.needless.within(now, p.cfg.BudgetWindow), BackoffUntil: f.pausedTil,
	}
	if f.frozen {
		s.FrozenSince = f.since
	}
	return true
}

// Len returns the number of flows.
func (p *Policy) Len() int { return len(p.flows) }

// hint appends a hint of the flow's next epoch.
func (p *Policy) hint(now mihf.Time, f *flow, k mihf.HintKind, out *Out) *mihf.Hint {
	f.epoch++
	out.List = append(out.List, mihf.Hint{
		Boot: p.boot, Flow: f.spec.ID, Owner: f.owner, Link: f.link, Epoch: f.epoch, At: now, Kind: k,
	})
	return &out.List[len(out.List)-1]
}

// lease returns the lease of a Freeze sent now and sets when it is renewed.
func (p *Policy) lease(now mihf.Time, f *flow) time.Duration {
	end := f.since.Add(f.maxFreeze(&p.cfg))
	lease := min(p.cfg.Lease, end.Sub(now))
	f.leaseEnd = now.Add(lease)
	f.renewAt = now.Add(max(lease/2, time.Millisecond))
	if f.leaseEnd >= end {
		f.renewAt = 0
	}
	p.next = mihf.Sooner(p.next, f.next(&p.cfg))
	return lease
}

// thaw ends a freeze with the one Unfreeze that it gets.
func (p *Policy) thaw(now mihf.Time, f *flow, u mihf.Unfreeze, out *Out) {
	if !f.frozen {
		return
	}
	h := p.hint(now, f, mihf.HintUnfreeze, out)
	h.Prediction = f.prediction
	h.Unfreeze = u
	p.release(now, f)
}

// release ends a freeze and books it: its time where the loss did not come, and the
// back-off.
func (p *Policy) release(now mihf.Time, f *flow) {
	switch {
	case f.prediction.IsZero(), f.booked:
	case f.waits:
		f.backoff = p.cfg.Backoff
	default:
		f.book(now)
		f.pausedTil = now.Add(f.backoff)
		f.backoff = min(2*f.backoff, p.cfg.MaxBackoff)
	}
	f.frozen, f.waits, f.booked = false, false, false
	f.renewAt, f.budgetEnd = 0, 0
	f.prediction = mihf.PredictionID{}
}
