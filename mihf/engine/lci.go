package engine

import (
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/lci"
	"mihf.dev/mihf/linkstate"
)

// tellEvery is the shortest time between two words on a link's characteristics where only what was measured
// has changed.
const tellEvery = time.Second

// attached has a link that came to another point of attachment begin with what is known of it.
func (e *Engine) attached(now mihf.Time, l *link) {
	m := l.machine
	if l.told != nil && l.told.PoA != m.PoA() {
		l.told = nil // also where it comes back there
	}
	if !m.Attached() || m.PoA() == l.estimator.PoA() {
		return
	}
	l.estimator.Attach(m.PoA(), e.info.LCI(l.id, m.PoA()))
	e.estimate(now, l)
}

// heard takes what a radio says of rates.
func (e *Engine) heard(now mihf.Time, l *link, o *mihf.Observation) {
	if o.Kind == mihf.ObsRadio && l.machine.Attached() && l.estimator.Radio(linkstate.Taken(now, o), &o.Values) {
		e.estimate(now, l)
		e.tell(now, l)
	}
}

// fared takes how a flow on a link fares.
func (e *Engine) fared(now mihf.Time, o *mihf.Observation) {
	l := e.links[o.Link]
	if l == nil || !l.machine.Attached() {
		return
	}
	l.estimator.Flow(now, min(o.At, now), o.Flow)
	l.lciAt = l.estimator.Next(now)
}

// advanceLCI does what is due of a link's characteristics.
func (e *Engine) advanceLCI(now mihf.Time, l *link) {
	l.estimator.Advance(now)
	e.estimate(now, l)
	e.tell(now, l)
}

// estimate makes what is known now the link's characteristics.
func (e *Engine) estimate(now mihf.Time, l *link) {
	l.machine.Characterise(l.estimator.Now(now))
	l.lciAt = l.estimator.Next(now)
	if l.machine.Attached() {
		e.info.Attach(now, l.id, l.machine.PoA(), l.machine.SSID(), l.machine.LCI())
	}
}

// tell tells the flows of a link what it carries now, where that is news: at once where the link or its point of
// attachment is another, else not more often than tellEvery.
func (e *Engine) tell(now mihf.Time, l *link) {
	is := l.machine.LCI()
	if is == l.told || !l.machine.Attached() || !lci.Significant(l.told, is) {
		return
	}
	other := l.told == nil || is == nil || l.told.PoA != is.PoA || l.told.MTUBytes.Value != is.MTUBytes.Value
	if due := l.toldAt.Add(tellEvery); !other && now.Before(due) {
		l.lciAt = mihf.Sooner(l.lciAt, due)
		return
	}
	l.told, l.toldAt = is, now
	for _, f := range e.table.All() {
		if f.Link == l.id {
			e.policy.Characteristics(now, f.ID, is, &e.hints)
		}
	}
	e.flush(now)
}
