// Package tally counts what became of the predictions and freezes of a run whose losses
// are known.
//
// It is pure; the numbers mean:
//
//   - a rollback is a prediction that was taken back before its time;
//   - a false alarm is a prediction that nobody took back and that did not come true
//     before it expired;
//   - a needless freeze is a Freeze that ended with neither a loss nor a handover;
//   - a loss is foreseen where a prediction of that link was open when it came.
package tally

import (
	"time"

	"mihf.dev/mihf"
)

// Tally is the state of a count. The zero Tally has seen nothing.
type Tally struct {
	Announced   int // predictions
	CameTrue    int
	Rollbacks   int
	FalseAlarms int

	Losses   []Loss
	Freezes  int // leases renewed are not counted
	Needless int

	open   map[mihf.LinkID]mihf.Prediction
	frozen map[mihf.FlowID]frozen
}

// Loss is one loss or handover that the recording tells, and what came before it.
type Loss struct {
	At         mihf.Time
	Link       mihf.LinkID
	Kind       string
	Prediction mihf.Opt[mihf.Prediction] // the one that was open
	Frozen     map[mihf.FlowID]mihf.Time // flows of the link that were frozen, and since when
	Outcome    mihf.Outcome              // of the prediction; open while it has none
}

type frozen struct {
	since mihf.Time
	link  mihf.LinkID
}

// Event takes an event.
func (t *Tally) Event(ev *mihf.Event) {
	p := &ev.Prediction
	switch ev.Kind {
	case mihf.LinkGoingDown:
		if t.open == nil {
			t.open = map[mihf.LinkID]mihf.Prediction{}
		}
		if p.Revision == 0 {
			t.Announced++
		}
		t.open[ev.Link] = *p
	case mihf.LinkEventRollback:
		t.Rollbacks++
		t.end(ev)
	case mihf.PredictionExpired:
		t.FalseAlarms++
		t.end(ev)
	case mihf.LinkDown, mihf.LinkHandoverComplete:
		if !p.ID.IsZero() {
			t.CameTrue++
		}
		t.end(ev)
	default:
	}
}

// end notes the outcome of the prediction that an event ends.
func (t *Tally) end(ev *mihf.Event) {
	delete(t.open, ev.Link)
	for i := range t.Losses {
		l := &t.Losses[i]
		if p, ok := l.Prediction.Get(); ok && p.ID == ev.Prediction.ID && l.Outcome == mihf.OutcomeOpen {
			l.Outcome = ev.Prediction.Outcome
		}
	}
}

// Hint takes a hint that a flow had at a moment.
func (t *Tally) Hint(at mihf.Time, h *mihf.Hint) {
	switch h.Kind {
	case mihf.HintFreeze:
		if _, ok := t.frozen[h.Flow]; ok {
			return
		}
		if t.frozen == nil {
			t.frozen = map[mihf.FlowID]frozen{}
		}
		t.Freezes++
		t.frozen[h.Flow] = frozen{at, h.Link}
	case mihf.HintUnfreeze:
		if _, ok := t.frozen[h.Flow]; ok && (h.Unfreeze.Cause == mihf.UnfreezeRollback || h.Unfreeze.Cause == mihf.UnfreezeExpired || h.Unfreeze.Cause == mihf.UnfreezeBudget) {
			t.Needless++
		}
		delete(t.frozen, h.Flow)
	case mihf.HintAbandon:
		delete(t.frozen, h.Flow)
	default:
	}
}

// Truth takes what a recording tells. Kinds other than loss and handover are not judged.
func (t *Tally) Truth(o *mihf.Observation) {
	if o.Truth == nil || (o.Truth.Kind != "loss" && o.Truth.Kind != "handover") {
		return
	}
	l := Loss{At: o.At, Link: o.Link, Kind: o.Truth.Kind, Frozen: map[mihf.FlowID]mihf.Time{}}
	if p, ok := t.open[o.Link]; ok {
		l.Prediction = mihf.Some(p)
	}
	for id, f := range t.frozen {
		if f.link == o.Link {
			l.Frozen[id] = f.since
		}
	}
	t.Losses = append(t.Losses, l)
}

// Lead returns how long before the loss its prediction was announced.
func (l *Loss) Lead() (time.Duration, bool) {
	p, ok := l.Prediction.Get()
	return l.At.Sub(p.OpenedAt), ok
}

// FrozenBefore returns how long before the loss the first of its flows was frozen.
func (l *Loss) FrozenBefore() (d time.Duration, ok bool) {
	for _, since := range l.Frozen {
		d, ok = max(d, l.At.Sub(since)), true
	}
	return d, ok
}
