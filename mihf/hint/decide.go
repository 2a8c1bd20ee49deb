package hint

import (
	"time"

	"mihf.dev/mihf"
)

// Chance is what the freeze rule weighs besides the forecast.
type Chance struct {
	Interval  time.Duration // until the next evaluation
	ExpiresIn time.Duration // until the prediction counts as not come true
}

// Due returns how many flows of the link are due to be frozen by this forecast. Freeze
// then freezes them; a call of another method in between forgets them.
func (p *Policy) Due(now mihf.Time, link mihf.LinkID, fc *mihf.Forecast, ch Chance) int {
	p.due = p.due[:0]
	for _, f := range p.links[link] {
		if f.mayFreeze() && !now.Before(f.pausedTil) && p.fires(f, fc, ch) && p.budget(now, f) > 0 {
			p.due = append(p.due, f)
		}
	}
	return len(p.due)
}

// Weighing is what the freeze rule compares, in seconds of the flow's sending.
type Weighing struct {
	Lead     time.Duration
	PMiss    float64 // P(loss before the next chance)
	PNone    float64 // P(no loss before the prediction expires)
	Miss     float64 // PMiss × cost of a miss
	Needless float64 // PNone × cost of a needless freeze
	Early    float64 // (1 − PMiss) × the evaluation interval
}

// Fires reports whether the rule says freeze.
func (w *Weighing) Fires() bool { return w.Miss > w.Needless && w.Miss > w.Early }

func (p *Policy) weigh(f *flow, fc *mihf.Forecast, ch Chance) Weighing {
	w := Weighing{Lead: f.lead(&p.cfg, p.margin.current)}
	w.PMiss = fc.Loss.Within(ch.Interval + w.Lead)
	w.PNone = 1 - fc.Loss.Within(ch.ExpiresIn)
	needless := f.spec.CostNeedless
	if needless <= 0 {
		needless = ch.ExpiresIn // frozen until the prediction expires
	}
	w.Miss = w.PMiss * f.costMiss(&p.cfg).Seconds()
	w.Needless = w.PNone * needless.Seconds()
	w.Early = (1 - w.PMiss) * ch.Interval.Seconds()
	return w
}

func (p *Policy) fires(f *flow, fc *mihf.Forecast, ch Chance) bool {
	w := p.weigh(f, fc, ch)
	return w.Fires()
}

// Weigh returns what the rule compares for one flow; false if it is not registered.
func (p *Policy) Weigh(id mihf.FlowID, fc *mihf.Forecast, ch Chance) (Weighing, bool) {
	f := p.flows[id]
	if f == nil {
		return Weighing{}, false
	}
	return p.weigh(f, fc, ch), true
}

// budget returns how long the flow may still be frozen needlessly.
func (p *Policy) budget(now mihf.Time, f *flow) time.Duration {
	limit := time.Duration(p.cfg.BudgetShare * float64(p.cfg.BudgetWindow))
	return limit - f.needless.within(now, p.cfg.BudgetWindow)
}

// Freeze freezes the flows that Due found, naming the prediction.
func (p *Policy) Freeze(now mihf.Time, pr *mihf.Prediction, out *Out) {
	for _, f := range p.due {
		p.freeze(now, f, pr, out)
	}
	p.due = p.due[:0]
}

// Found returns the flows that Due found.
func (p *Policy) Found(yield func(mihf.FlowID) bool) {
	for _, f := range p.due {
		if !yield(f.spec.ID) {
			return
		}
	}
}

func (p *Policy) freeze(now mihf.Time, f *flow, pr *mihf.Prediction, out *Out) {
	f.frozen, f.since, f.lossCame = true, now, false
	f.prediction = pr.ID
	f.budgetEnd = now.Add(p.budget(now, f))
	h := p.hint(now, f, mihf.HintFreeze, out)
	h.Prediction = pr.ID
	h.Freeze = mihf.Freeze{Lease: p.lease(now, f), P10: pr.P10, P50: pr.P50, P90: pr.P90, Reason: mihf.FreezePredicted}
}

// Lost says that layer 2 of the link has just gone, whether or not Link_Down is
// announced: frozen flows stay so, and those that want a late Freeze get it.
func (p *Policy) Lost(now mihf.Time, link mihf.LinkID, out *Out) {
	for _, f := range p.links[link] {
		switch {
		case f.frozen:
			f.lossCame, f.budgetEnd = true, 0
		case f.mayFreeze() && f.spec.LateFreeze:
			f.frozen, f.since, f.lossCame = true, now, true
			h := p.hint(now, f, mihf.HintFreeze, out)
			h.Freeze = mihf.Freeze{Lease: p.lease(now, f), Reason: mihf.FreezeLinkDown}
		}
	}
}

// Down says that Link_Down was announced: flows without continuity are abandoned.
func (p *Policy) Down(now mihf.Time, link mihf.LinkID, removed bool, out *Out) {
	for _, f := range p.links[link] {
		switch {
		case f.spec.Continuity == mihf.ContinuityNone:
			p.abandon(now, f, mihf.AbandonNoContinuity, out)
		case removed && f.spec.Continuity == mihf.ContinuitySameAddress:
			p.abandon(now, f, mihf.AbandonLinkRemoved, out)
		}
	}
}

// Abandon says that a flow cannot go on.
func (p *Policy) Abandon(now mihf.Time, id mihf.FlowID, why mihf.AbandonReason, out *Out) {
	if f := p.flows[id]; f != nil {
		p.abandon(now, f, why, out)
	}
}

func (p *Policy) abandon(now mihf.Time, f *flow, why mihf.AbandonReason, out *Out) {
	if f.abandoned {
		return
	}
	if f.frozen {
		p.account(now, f)
	}
	f.abandoned, f.frozen = true, false
	f.renewAt, f.budgetEnd = 0, 0
	if f.takes(mihf.HintAbandon) {
		p.hint(now, f, mihf.HintAbandon, out).Abandon = why
	}
}

// Ended says that a prediction of the link ended without a loss: the flows that it froze
// are thawed.
func (p *Policy) Ended(now mihf.Time, link mihf.LinkID, pr *mihf.Prediction, out *Out) {
	cause := mihf.UnfreezeRollback
	if pr.Outcome == mihf.OutcomeExpired {
		cause = mihf.UnfreezeExpired
	}
	for _, f := range p.links[link] {
		if f.frozen && f.prediction == pr.ID && !f.lossCame {
			p.thaw(now, f, mihf.Unfreeze{Cause: cause}, out)
		}
	}
}

// Usable says that a flow's path is usable: it is thawed onto lci.
func (p *Policy) Usable(now mihf.Time, id mihf.FlowID, cause mihf.UnfreezeCause, lci *mihf.LCI, out *Out) {
	f := p.flows[id]
	if f == nil {
		return
	}
	f.abandoned = false
	if f.frozen && f.lossCame {
		p.thaw(now, f, mihf.Unfreeze{Cause: cause, LCI: lci}, out)
	}
}

// HandedOver says that a handover inside the link is complete: what was frozen for it has
// come; the flows thaw when their paths are usable.
func (p *Policy) HandedOver(link mihf.LinkID, pr mihf.PredictionID) {
	for _, f := range p.links[link] {
		if f.frozen && f.prediction == pr {
			f.lossCame, f.budgetEnd = true, 0
		}
	}
}

// Prepare tells the flows of a link that rebind where they would go, once a prediction.
func (p *Policy) Prepare(now mihf.Time, link, target mihf.LinkID, pr *mihf.Prediction, out *Out) {
	for _, f := range p.links[link] {
		if f.spec.Continuity != mihf.ContinuityRebinds || !f.takes(mihf.HintPrepare) || f.prepared == pr.ID {
			continue
		}
		f.prepared = pr.ID
		h := p.hint(now, f, mihf.HintPrepare, out)
		h.Prediction = pr.ID
		h.Prepare = mihf.Prepare{Target: target, Deadline: pr.P10}
	}
}

// Switch moves a flow that rebinds to another link and thaws it there.
func (p *Policy) Switch(now mihf.Time, id mihf.FlowID, target mihf.LinkID, lci *mihf.LCI, out *Out) {
	f := p.flows[id]
	if f == nil || f.link == target {
		return
	}
	if f.takes(mihf.HintSwitch) {
		p.hint(now, f, mihf.HintSwitch, out).Switch = mihf.Switch{Target: target, LCI: lci}
	}
	p.Move(id, target)
	f.abandoned = false
	if f.frozen {
		f.lossCame = true
		p.thaw(now, f, mihf.Unfreeze{Cause: mihf.UnfreezePathUsable, LCI: lci}, out)
	}
}

// Characteristics tells a flow what its link carries.
func (p *Policy) Characteristics(now mihf.Time, id mihf.FlowID, lci *mihf.LCI, out *Out) {
	if f := p.flows[id]; f != nil && lci != nil && f.takes(mihf.HintCharacteristics) {
		p.hint(now, f, mihf.HintCharacteristics, out).Characteristics = lci
	}
}

// ThawAll thaws every frozen flow.
func (p *Policy) ThawAll(now mihf.Time, u mihf.Unfreeze, out *Out) {
	for _, f := range p.order {
		p.thaw(now, f, u, out)
	}
}
