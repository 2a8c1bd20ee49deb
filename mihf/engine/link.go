package engine

import (
	"slices"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
	"mihf.dev/mihf/linkstate"
)

// link is one link with its predictor.
type link struct {
	id         mihf.LinkID
	machine    *linkstate.Machine
	predictor  Predictor
	forecast   mihf.Forecast
	forecasted bool
	evaluateAt mihf.Time // next evaluation between samples
	reviewAt   mihf.Time // when a hold ends and flows may move
	noRoute    mihf.Time // attached, but without a default route since
	history    *history
}

func (l *link) next() mihf.Time {
	t := mihf.Sooner(l.machine.Next(), l.evaluateAt)
	return mihf.Sooner(t, l.reviewAt)
}

// link returns the link that the observation is about; nil where there is none and none
// may be made.
func (e *Engine) link(o *mihf.Observation) *link {
	if l := e.links[o.Link]; l != nil {
		return l
	}
	if o.Kind == mihf.ObsLinkGone {
		return nil
	}
	if !o.Link.Valid() || len(e.links) >= MaxLinks {
		e.refused.Links++
		return nil
	}
	l := &link{id: o.Link, machine: linkstate.New(e.cfg.Link, o.Link, &e.ids)}
	if e.cfg.NewPredictor != nil {
		l.predictor = e.cfg.NewPredictor(o.Link)
	}
	e.links[o.Link] = l
	e.order = append(e.order, l)
	return l
}

func (e *Engine) forget(l *link) {
	delete(e.links, l.id)
	e.order = slices.DeleteFunc(e.order, func(x *link) bool { return x == l })
	e.table.SetAddresses(l.id, nil)
}

func (e *Engine) observeLink(now mihf.Time, l *link, o *mihf.Observation) {
	attached := l.machine.Attached()
	l.machine.Observe(now, o, &e.events)
	if o.Kind == mihf.ObsLink || o.Kind == mihf.ObsLinkGone {
		e.table.SetAddresses(l.id, l.machine.Facts())
	}
	if attached && !l.machine.Attached() {
		e.policy.Lost(now, l.id, &e.hints)
	}
	e.flush(now)
	if o.Kind == mihf.ObsLinkGone {
		e.forget(l)
		e.reviewAll(now)
		return
	}
	e.predict(now, l, o)
	if o.Kind == mihf.ObsLink || o.Kind == mihf.ObsAssociation {
		e.noteRoute(now, l)
		e.reviewAll(now)
	}
}

// predict gives the observation to the predictor and evaluates what it says.
func (e *Engine) predict(now mihf.Time, l *link, o *mihf.Observation) {
	if l.predictor == nil {
		return
	}
	l.predictor.Observe(now, o)
	switch o.Kind {
	case mihf.ObsRadio:
		l.sampled(o)
		e.evaluate(now, l)
	case mihf.ObsAssociation, mihf.ObsScan, mihf.ObsDetected:
		e.evaluate(now, l)
	default:
	}
}

// evaluate asks for a forecast and acts on it: announcement, revision, rollback, and each
// flow's freeze.
func (e *Engine) evaluate(now mihf.Time, l *link) {
	l.evaluateAt = 0
	l.forecasted = l.predictor.Forecast(now, &l.forecast)
	if !l.forecasted {
		return
	}
	f := &l.forecast
	l.foresaw(f)
	risky := f.Loss.Within(mihf.ForecastHorizon) >= mihf.MinProbability || f.Handover.Within(mihf.ForecastHorizon) >= mihf.MinProbability
	if risky || l.machine.Open() != nil {
		l.evaluateAt = now.Add(e.cfg.EvaluateEvery)
	}
	l.machine.Forecast(now, f, &e.events)
	e.flush(now)
	if risky {
		e.freeze(now, l)
	}
}

// freeze freezes the flows whose moment has come, and announces the prediction first
// where it is not yet.
func (e *Engine) freeze(now mihf.Time, l *link) {
	m, f := l.machine, &l.forecast
	if !m.MayAnnounce(now, f) {
		return
	}
	if p := m.Open(); p != nil && p.Cause != mihf.CauseLoss {
		return
	}
	ch := hint.Chance{Interval: e.cfg.EvaluateEvery, ExpiresIn: m.ExpiresAt(now, f).Sub(now)}
	if e.policy.Due(now, l.id, f, ch) == 0 || !m.Announce(now, f, &e.events) {
		return
	}
	e.flush(now)
	p := m.Open()
	e.explain.decided(now, p.ID, e.policy, f, ch)
	e.policy.Freeze(now, p, &e.hints)
	e.flush(now)
}

// react lets the flows follow an event.
func (e *Engine) react(now mihf.Time, ev *mihf.Event) {
	switch ev.Kind {
	case mihf.LinkGoingDown:
		e.announced(now, ev)
	case mihf.LinkEventRollback, mihf.PredictionExpired:
		e.policy.Ended(now, ev.Link, &ev.Prediction, &e.hints)
		e.ended(now, ev)
	case mihf.LinkDown:
		e.policy.Down(now, ev.Link, ev.Down.Reason == mihf.DownRemoved || ev.Down.Reason == mihf.DownMoved, &e.hints)
		e.ended(now, ev)
	case mihf.LinkHandoverComplete:
		if h := ev.Handover; h != nil && h.OldLink == h.NewLink {
			e.policy.HandedOver(ev.Link, ev.Prediction.ID)
			e.ended(now, ev)
			e.thaw(now, ev.Link, mihf.UnfreezeHandoverComplete)
		}
	case mihf.PathUsable:
		e.thaw(now, ev.Link, mihf.UnfreezePathUsable)
	default:
	}
}

// announced records why, and tells the flows that rebind where they would go.
func (e *Engine) announced(now mihf.Time, ev *mihf.Event) {
	l := e.links[ev.Link]
	if ev.Prediction.Revision == 0 {
		e.explain.opened(now, l, &ev.Prediction)
	} else {
		e.explain.revised(&ev.Prediction)
	}
	if ev.Prediction.Cause != mihf.CauseLoss {
		return
	}
	if target := e.another(now, l.id, mihf.Opt[bool]{}); target != "" {
		e.policy.Prepare(now, l.id, target, &ev.Prediction, &e.hints)
	}
}

func (e *Engine) ended(now mihf.Time, ev *mihf.Event) {
	if !ev.Prediction.ID.IsZero() {
		e.explain.ended(now, e.links[ev.Link], &ev.Prediction)
	}
}

// noteRoute notes since when an attached link has no default route.
func (e *Engine) noteRoute(now mihf.Time, l *link) {
	m := l.machine
	if m.HeldDown(now) {
		l.reviewAt = now.Add(e.cfg.Link.HoldDown)
	}
	if m.AnyUsable() || !m.Attached() {
		l.noRoute = 0
		return
	}
	if l.noRoute == 0 {
		l.noRoute = now
		l.reviewAt = mihf.Sooner(l.reviewAt, now.Add(e.cfg.RouteHold))
	}
}
