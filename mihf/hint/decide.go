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
// then freezes them; they must not be removed in between.
func (p *Policy) Due(now mihf.Time, link mihf.LinkID, fc *mihf.Forecast, ch Chance) int {
	p.due = p.due[:0]
	none := 1 - fc.Loss.Within(ch.ExpiresIn)
	for _, f := range p.links[link] {
		if !f.mayFreeze() || now.Before(f.pausedTil) {
			continue
		}
		// With less budget than to the next chance this Freeze would end before its loss.
		if w := p.weigh(f, fc, ch, none); w.Fires() && p.budget(now, f) > ch.Interval+w.Lead {
			p.due = append(p.due, f)
		}
	}
	return len(p.due)
}

// Weighing is what the freeze rule compares, in seconds of the flow's sending.
type Weighing struct {
	Lead     time.Duration
	RTT      time.Duration // in force
	RTTFrom  mihf.RTTSource
	PMiss    float64 // P(loss before the next chance)
	PNone    float64 // P(no loss before the prediction expires)
	Miss     float64 // PMiss × cost of a miss
	Needless float64 // PNone × cost of a needless freeze
	Early    float64 // (1 − PMiss) × the evaluation interval
}

// Fires reports whether the rule says freeze.
func (w *Weighing) Fires() bool { return w.Miss > w.Needless && w.Miss > w.Early }

func (p *Policy) weigh(f *flow, fc *mihf.Forecast, ch Chance, none float64) Weighing {
	w := Weighing{Lead: f.lead(&p.cfg, f.margin.current), RTT: f.rtt(&p.cfg), RTTFrom: f.rttSource(), PNone: none}
	w.PMiss = fc.Loss.Within(ch.Interval + w.Lead)
	needless := f.spec.CostNeedless
	if needless <= 0 {
		needless = ch.ExpiresIn // frozen until the prediction expires
	}
	w.Miss = w.PMiss * f.costMiss(&p.cfg).Seconds()
	w.Needless = w.PNone * needless.Seconds()
	w.Early = (1 - w.PMiss) * ch.Interval.Seconds()
	return w
}

// Weigh returns what the rule compares for one flow; false if it is not registered.
func (p *Policy) Weigh(id mihf.FlowID, fc *mihf.Forecast, ch Chance) (Weighing, bool) {
	f := p.flows[id]
	if f == nil {
		return Weighing{}, false
	}
	return p.weigh(f, fc, ch, 1-fc.Loss.Within(ch.ExpiresIn)), true
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
	f.frozen, f.since = true, now
	f.prediction, f.figures = pr.ID, figuresOf(now, pr)
	f.budgetEnd = now.Add(p.budget(now, f))
	h := p.hint(now, f, mihf.HintFreeze, out)
	h.Prediction = pr.ID
	h.Freeze = mihf.Freeze{Lease: p.lease(now, f), P10: pr.P10, P50: pr.P50, P90: pr.P90, Reason: mihf.FreezePredicted}
}

// Revised notes a prediction's newer figures, for the renewals.
func (p *Policy) Revised(now mihf.Time, link mihf.LinkID, pr *mihf.Prediction) {
	for _, f := range p.links[link] {
		if f.frozen && f.prediction == pr.ID {
			f.figures = figuresOf(now, pr)
		}
	}
}

// Lost says that layer 2 of the link has just gone, whether or not Link_Down is
// announced: frozen flows stay so, and those that want a late Freeze get it. removed says
// that the device is gone too, and with it the addresses.
func (p *Policy) Lost(now mihf.Time, link mihf.LinkID, removed bool, out *Out) {
	for _, f := range p.links[link] {
		switch {
		case f.frozen:
			f.wait()
		case !removed || f.spec.Continuity == mihf.ContinuityRebinds:
			p.late(now, f, out)
		}
	}
}

// Late gives one flow on a link that is lost the late Freeze that it wants.
func (p *Policy) Late(now mihf.Time, id mihf.FlowID, out *Out) {
	if f := p.flows[id]; f != nil {
		p.late(now, f, out)
	}
}

func (p *Policy) late(now mihf.Time, f *flow, out *Out) {
	if !f.spec.LateFreeze || !f.mayFreeze() {
		return
	}
	f.frozen, f.since, f.waits = true, now, true
	h := p.hint(now, f, mihf.HintFreeze, out)
	h.Freeze = mihf.Freeze{Lease: p.lease(now, f), Reason: mihf.FreezeLinkDown}
}

// Down says that Link_Down was announced: flows without continuity are abandoned, frozen
// ones wait for a usable path.
func (p *Policy) Down(now mihf.Time, link mihf.LinkID, out *Out) {
	for _, f := range p.links[link] {
		if f.frozen {
			f.wait()
		}
		if f.spec.Continuity == mihf.ContinuityNone {
			p.abandon(now, f, mihf.AbandonNoContinuity, out)
		}
	}
}

// Removed says that the link does not exist any more: flows that need its address are
// abandoned.
func (p *Policy) Removed(now mihf.Time, link mihf.LinkID, out *Out) {
	for _, f := range p.links[link] {
		if f.spec.Continuity == mihf.ContinuitySameAddress {
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

// abandon says so once. A frozen flow that does not take it stays frozen until its path
// is usable after all, or to its longest freeze: every Freeze has its end.
func (p *Policy) abandon(now mihf.Time, f *flow, why mihf.AbandonReason, out *Out) {
	tells := f.takes(mihf.HintAbandon)
	if f.abandoned || (f.frozen && !tells) {
		return
	}
	f.abandoned = true
	if tells {
		h := p.hint(now, f, mihf.HintAbandon, out)
		h.Prediction = f.prediction
		h.Abandon = why
	}
	if f.frozen {
		p.release(now, f)
	}
}

// Ended says that a prediction ended without a loss: the flows that it froze are thawed.
// suspended says that it ended for a suspend: then they go to recovery, for nothing is
// known of the path any more, and it was no false alarm.
func (p *Policy) Ended(now mihf.Time, pr *mihf.Prediction, suspended bool, out *Out) {
	u := mihf.Unfreeze{Cause: mihf.UnfreezeRollback, Recovery: suspended}
	if pr.Outcome == mihf.OutcomeExpired {
		u.Cause = mihf.UnfreezeExpired
	}
	for _, f := range p.order {
		if !f.frozen || f.prediction != pr.ID || f.waits {
			continue
		}
		if suspended {
			f.book(now)
		}
		p.thaw(now, f, u, out)
	}
}

// Usable says that a flow's path is usable: where it waited for that, it is thawed onto
// lci.
func (p *Policy) Usable(now mihf.Time, id mihf.FlowID, cause mihf.UnfreezeCause, lci *mihf.LCI, out *Out) {
	f := p.flows[id]
	if f == nil {
		return
	}
	f.abandoned = false
	if f.frozen && f.waits {
		p.thaw(now, f, mihf.Unfreeze{Cause: cause, LCI: lci}, out)
	}
}

// HandedOver says that a handover inside the link is complete: what was frozen for it has
// come, and thaws when its path is usable; flows that survive no handover are abandoned.
func (p *Policy) HandedOver(now mihf.Time, link mihf.LinkID, pr mihf.PredictionID, out *Out) {
	for _, f := range p.links[link] {
		if f.frozen && f.prediction == pr {
			f.wait()
		}
		if f.spec.Continuity == mihf.ContinuityNone {
			p.abandon(now, f, mihf.AbandonNoContinuity, out)
		}
	}
}

// Prepare tells a flow that rebinds where it would go, once a prediction.
func (p *Policy) Prepare(now mihf.Time, id mihf.FlowID, target mihf.LinkID, pr *mihf.Prediction, out *Out) {
	f := p.flows[id]
	if f == nil || f.spec.Continuity != mihf.ContinuityRebinds || !f.takes(mihf.HintPrepare) || f.prepared == pr.ID {
		return
	}
	f.prepared = pr.ID
	h := p.hint(now, f, mihf.HintPrepare, out)
	h.Prediction = pr.ID
	h.Prepare = mihf.Prepare{Target: target, Deadline: pr.P10}
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
	p.Move(now, id, target)
	p.Usable(now, id, mihf.UnfreezePathUsable, lci, out)
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
