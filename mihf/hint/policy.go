package hint

import (
	"slices"
	"time"

	"mihf.dev/mihf"
)

// Policy is the state of all flows of one broker.
type Policy struct {
	cfg    Config
	boot   mihf.BootID
	flows  map[mihf.FlowID]*flow
	order  []*flow                 // all, in the order of registration
	links  map[mihf.LinkID][]*flow // in the order of arrival
	due    []*flow                 // filled by Due for Freeze
	next   mihf.Time               // not later than the first deadline of a flow
	margin margin
}

// Out collects hints. The owner numbers and empties it.
type Out struct{ List []mihf.Hint }

// New returns a policy without flows.
func New(cfg Config, boot mihf.BootID) *Policy {
	return &Policy{
		cfg: cfg, boot: boot,
		flows: map[mihf.FlowID]*flow{}, links: map[mihf.LinkID][]*flow{},
		margin: margin{current: cfg.MinMargin},
	}
}

// Add takes a flow that was registered. Its ID must be new.
func (p *Policy) Add(spec mihf.FlowSpec, owner uint32, link mihf.LinkID) mihf.Registration {
	f := &flow{spec: spec, owner: owner, link: link, backoff: p.cfg.Backoff}
	p.flows[spec.ID] = f
	p.order = append(p.order, f)
	p.links[link] = append(p.links[link], f)
	granted := spec.Hints
	if granted == 0 {
		granted = mihf.AllHints
	}
	return mihf.Registration{
		Flow: spec.ID, Boot: p.boot, Link: link, Lead: f.lead(&p.cfg, p.margin.current), Lease: p.cfg.Lease, Hints: granted,
	}
}

// Remove forgets a flow. It gets no further hint.
func (p *Policy) Remove(id mihf.FlowID) {
	if f := p.flows[id]; f != nil {
		p.unlink(f)
		p.order = slices.DeleteFunc(p.order, func(x *flow) bool { return x == f })
		delete(p.flows, id)
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
	if u.Tuples != nil {
		f.spec.Tuples = u.Tuples
	}
}

// Move notes that a flow is on another link now.
func (p *Policy) Move(id mihf.FlowID, link mihf.LinkID) {
	f := p.flows[id]
	if f == nil || f.link == link {
		return
	}
	p.unlink(f)
	f.link = link
	p.links[link] = append(p.links[link], f)
}

func (p *Policy) unlink(f *flow) {
	list := slices.DeleteFunc(p.links[f.link], func(x *flow) bool { return x == f })
	if p.links[f.link] = list; len(list) == 0 {
		delete(p.links, f.link)
	}
}

// Acknowledge notes what a transport did with a hint, and learns the dispatch margin: the
// time since the hint was made, less the time that the transport held it.
func (p *Policy) Acknowledge(now mihf.Time, a *mihf.Ack, made mihf.Time) {
	f := p.flows[a.Flow]
	if f == nil || a.Epoch > f.epoch || a.Epoch < f.acked {
		return
	}
	f.acked, f.lastAck = a.Epoch, a.Result
	if made != 0 && a.Held >= 0 {
		p.margin.learn(now.Sub(made)-a.Held, p.cfg.MinMargin, p.cfg.MaxMargin)
	}
}

// Margin returns the dispatch margin in force.
func (p *Policy) Margin() time.Duration { return p.margin.current }

// Next returns when Advance is due; zero: never.
func (p *Policy) Next() mihf.Time { return p.next }

// Advance renews leases and ends freezes that have reached a limit, in the order of
// registration.
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
		h := p.hint(now, f, mihf.HintFreeze, out)
		h.Prediction = f.prediction
		h.Freeze = mihf.Freeze{Lease: p.lease(now, f)}
		if f.prediction.IsZero() {
			h.Freeze.Reason = mihf.FreezeLinkDown
		}
	}
}

// Status fills what the policy knows of a flow; false if it is not registered.
func (p *Policy) Status(now mihf.Time, id mihf.FlowID, s *mihf.FlowStatus) bool {
	f := p.flows[id]
	if f == nil {
		return false
	}
	*s = mihf.FlowStatus{
		Spec: f.spec, Link: f.link, Lead: f.lead(&p.cfg, p.margin.current),
		Frozen: f.frozen, FrozenSince: f.since, Epoch: f.epoch, Acknowledged: f.acked, LastAck: f.lastAck,
		Needless: f.needless.within(now, p.cfg.BudgetWindow), BackoffUntil: f.pausedTil,
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
	f.renewAt = now.Add(lease / 2)
	if now.Add(lease) >= end {
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
	p.account(now, f)
	h := p.hint(now, f, mihf.HintUnfreeze, out)
	h.Prediction = f.prediction
	h.Unfreeze = u
	f.frozen, f.lossCame = false, false
	f.renewAt, f.budgetEnd = 0, 0
	f.prediction = mihf.PredictionID{}
}

// account books a freeze that ends: its time where the loss did not come, and the
// back-off.
func (p *Policy) account(now mihf.Time, f *flow) {
	switch {
	case f.prediction.IsZero():
	case f.lossCame:
		f.backoff = p.cfg.Backoff
	default:
		f.needless.add(now, now.Sub(f.since))
		f.pausedTil = now.Add(f.backoff)
		f.backoff = min(2*f.backoff, p.cfg.MaxBackoff)
	}
}

// margin is the measured p99 of the time from a hint to its acknowledgement.
type margin struct {
	recent  [128]time.Duration
	n       int // how many were ever learned
	current time.Duration
}

func (m *margin) learn(d, low, high time.Duration) {
	if d < 0 {
		return
	}
	m.recent[m.n%len(m.recent)] = d
	m.n++
	if m.n < 16 {
		return // too few for a tail
	}
	m.current = min(max(m.tail(), low), high)
}

// tail returns the second largest of the last 128, their p99.
func (m *margin) tail() time.Duration {
	var first, second time.Duration
	for _, d := range m.recent[:min(m.n, len(m.recent))] {
		switch {
		case d > first:
			first, second = d, first
		case d > second:
			second = d
		}
	}
	return second
}
