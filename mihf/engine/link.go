package engine

import (
	"slices"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
	"mihf.dev/mihf/lci"
	"mihf.dev/mihf/linkstate"
)

// maxRemoved bounds the removed links that are remembered for their return.
const maxRemoved = 64

// link is one link with its predictor.
type link struct {
	id         mihf.LinkID
	machine    *linkstate.Machine
	predictor  Predictor
	forecast   mihf.Forecast
	forecasted bool
	evaluateAt mihf.Time // next evaluation between samples
	history    *history
	thawAs     mihf.UnfreezeCause

	estimator *lci.Estimator
	lciAt     mihf.Time // when its characteristics change by time alone
	told      *mihf.LCI // that its flows know
	toldAt    mihf.Time
}

func (l *link) next() mihf.Time {
	return mihf.Sooner(mihf.Sooner(l.machine.Next(), l.evaluateAt), l.lciAt)
}

// link returns the link that the observation is about; nil where there is none and none
// may be made.
func (e *Engine) link(now mihf.Time, o *mihf.Observation) *link {
	if l := e.links[o.Link]; l != nil {
		return l
	}
	was := e.removedIndex(o.Link)
	if !begins(o, was >= 0) {
		return nil
	}
	if !o.Link.Valid() || len(e.links) >= MaxLinks {
		e.refused.Links++
		return nil
	}
	var l *link
	if was >= 0 {
		l = e.removed[was]
		e.removed = slices.Delete(e.removed, was, was+1)
		l.machine.Advance(now, &e.events) // periods that passed meanwhile
	} else {
		l = &link{id: o.Link, machine: linkstate.New(e.cfg.Link, o.Link, &e.ids)}
	}
	l.estimator = lci.New(o.Link)
	if e.cfg.NewPredictor != nil {
		l.predictor = e.cfg.NewPredictor(o.Link)
	}
	e.links[o.Link] = l
	e.order = append(e.order, l)
	return l
}

// begins reports whether an observation of a link that does not exist says that it does
// now. One that was removed needs more than a late word of its radio.
func begins(o *mihf.Observation, removed bool) bool {
	switch o.Kind {
	case mihf.ObsLinkGone:
		return false
	case mihf.ObsLink:
		return true
	case mihf.ObsAssociation:
		return o.Association != nil && o.Association.State >= mihf.AssociationAuthenticating
	default:
		return !removed
	}
}

func (e *Engine) removedIndex(id mihf.LinkID) int {
	return slices.IndexFunc(e.removed, func(l *link) bool { return l.id == id })
}

// forget takes a removed link out. Its machine is kept for a while: a device that is
// plugged in again has to prove itself like any link that came back.
func (e *Engine) forget(l *link) {
	delete(e.links, l.id)
	e.order = slices.DeleteFunc(e.order, func(x *link) bool { return x == l })
	if len(e.removed) == maxRemoved {
		e.removed = slices.Delete(e.removed, 0, 1)
	}
	e.removed = append(e.removed, &link{id: l.id, machine: l.machine})
}

func (e *Engine) observeLink(now mihf.Time, l *link, o *mihf.Observation) {
	m, gone := l.machine, o.Kind == mihf.ObsLinkGone
	attached := m.Attached()
	m.Observe(now, o, &e.events)
	if o.Kind == mihf.ObsLink || gone {
		e.table.SetAddresses(l.id, m.Facts())
	}
	if attached && !m.Attached() {
		l.thawAs = mihf.UnfreezePathUsable
		e.policy.Lost(now, l.id, gone, &e.hints)
	}
	e.flush(now)
	defer e.learn(now, l, o) // what is urgent comes first
	e.attached(now, l)
	if gone {
		e.forget(l)
		e.reviewAll(now)
		return
	}
	e.tell(now, l)
	e.predict(now, l, o)
	if o.Kind == mihf.ObsLink || o.Kind == mihf.ObsAssociation || e.again {
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
	case mihf.ObsAssociation, mihf.ObsScan, mihf.ObsDetected, mihf.ObsHandover:
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
	l.foresaw(f, e.cfg.Link.Horizon)
	risky := f.Loss.Within(mihf.ForecastHorizon) >= mihf.MinProbability
	if risky || f.Handover.Within(mihf.ForecastHorizon) >= mihf.MinProbability || l.machine.Open() != nil {
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
	ch := hint.Chance{Interval: e.cfg.EvaluateEvery, ExpiresIn: m.ExpiresAt(now, f).Sub(now)}
	if e.policy.Due(now, l.id, f, ch) == 0 || !m.Announce(now, f, &e.events) {
		return
	}
	e.flush(now)
	p := m.Expected(now)
	e.explain.decided(now, p.ID, e.policy, f, ch)
	e.policy.Freeze(now, &p, &e.hints)
	e.flush(now)
}
