package linkstate

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

// predictionState is the open prediction and what guards the next one.
type predictionState struct {
	open       mihf.Prediction
	isOpen     bool
	cameTrue   bool      // the link was lost since, although Link_Down may be withheld
	rule       float64   // P that announced it; 0: a flow's rule did
	rollbackAt float64   // P below which it is taken back
	belowSince mihf.Time // zero: not below
	guardUntil mihf.Time
	shut       bool // a guarded prediction failed too: none until guardUntil
}

func (p *predictionState) next() mihf.Time {
	if !p.isOpen {
		return 0
	}
	return p.open.ExpiresAt
}

// Open returns the open prediction; nil if there is none. It is valid until the next
// call of another method.
func (m *Machine) Open() *mihf.Prediction {
	if !m.prediction.isOpen {
		return nil
	}
	return &m.prediction.open
}

// Expected returns the open prediction with the quantiles that its last figures give for
// now; the zero Prediction if there is none.
func (m *Machine) Expected(now mihf.Time) mihf.Prediction {
	if !m.prediction.isOpen {
		return mihf.Prediction{}
	}
	p := m.prediction.open
	passed := now.Sub(p.RevisedAt)
	p.RevisedAt = now
	for _, q := range [...]*time.Duration{&p.P10, &p.P50, &p.P90} {
		*q = max(*q-passed, min(*q, time.Millisecond)) // not 0: it has not come
	}
	return p
}

// AnnouncedBy returns the probability within [Config.Horizon] that the open prediction, or
// the last one, was announced from; 0: it was announced for a flow whose rule fired.
func (m *Machine) AnnouncedBy() float64 { return m.prediction.rule }

// Forecast judges a forecast by the announcement rule: it may announce a prediction,
// revise the open one or take it back.
func (m *Machine) Forecast(now mihf.Time, f *mihf.Forecast, ev *Events) {
	s := &m.prediction
	loss, handover := f.Loss.Within(m.cfg.Horizon), f.Handover.Within(m.cfg.Horizon)
	switch {
	case !m.attached || !m.announced: // nothing to lose, or it is coming true
	case s.isOpen && s.open.Cause == mihf.CauseHandover && loss > handover && loss >= m.cfg.Threshold:
		m.turn(now, loss, f, ev)
	case s.isOpen:
		m.follow(now, loss+handover, f, ev) // either ends this attachment
	case handover > loss && !m.ordered(now): // of an order Link_Handover_Imminent says all
		m.announceFrom(now, mihf.CauseHandover, handover, f, ev)
	default:
		m.announceFrom(now, mihf.CauseLoss, loss, f, ev)
	}
}

func (m *Machine) announceFrom(now mihf.Time, cause mihf.Cause, p float64, f *mihf.Forecast, ev *Events) {
	if rule := m.threshold(now); p >= rule && m.announce(now, cause, p, f, ev) {
		m.prediction.rule = rule
	}
}

// follow revises the open prediction, or takes it back when p has been low long enough.
func (m *Machine) follow(now mihf.Time, p float64, f *mihf.Forecast, ev *Events) {
	s := &m.prediction
	if p >= s.rollbackAt {
		s.belowSince = 0
		m.revise(now, f, p, ev)
		return
	}
	if s.belowSince == 0 {
		s.belowSince = now
	}
	if now.Sub(s.belowSince) >= m.cfg.RollbackFor {
		m.rollback(now, ev)
	}
}

// turn makes a loss of a predicted handover, in a revision of the same prediction.
func (m *Machine) turn(now mihf.Time, p float64, f *mihf.Forecast, ev *Events) bool {
	p90, known := f.Loss.Quantile(0.9)
	if !known {
		return false
	}
	s := &m.prediction
	s.open.Cause = mihf.CauseLoss
	s.open.ExpiresAt = max(s.open.ExpiresAt, min(now.Add(m.lifetime(p90)), s.open.OpenedAt.Add(m.cfg.MaxOpen)))
	s.open.Revision++
	s.rollbackAt, s.belowSince = min(m.cfg.RollbackBelow, p/2), 0
	m.describe(now, f)
	ev.add(now, m.link, mihf.LinkGoingDown).Prediction = s.open
	return true
}

// Announce opens a prediction of a loss because a flow's rule fired before the link's. It
// reports whether one is open now: within the flap guard only a forecast that passes it is
// believed.
func (m *Machine) Announce(now mihf.Time, f *mihf.Forecast, ev *Events) bool {
	p := f.Loss.Within(m.cfg.Horizon)
	switch {
	case !m.MayAnnounce(now, f):
		return false
	case !m.prediction.isOpen:
		m.prediction.rule = 0
		return m.announce(now, mihf.CauseLoss, p, f, ev)
	case m.prediction.open.Cause != mihf.CauseLoss:
		return m.turn(now, p, f, ev)
	}
	return true
}

// MayAnnounce reports whether a flow's rule may freeze on this forecast: a prediction of
// the link is open, or may be opened, and the link is not lost already.
func (m *Machine) MayAnnounce(now mihf.Time, f *mihf.Forecast) bool {
	if !m.attached || !m.announced {
		return false
	}
	return m.prediction.isOpen || !now.Before(m.prediction.guardUntil) || f.Loss.Within(m.cfg.Horizon) >= m.threshold(now)
}

// ExpiresAt returns when a prediction on this forecast would count as not come true:
// that of the open one, else of one announced now.
func (m *Machine) ExpiresAt(now mihf.Time, f *mihf.Forecast) mihf.Time {
	if m.prediction.isOpen {
		return m.prediction.open.ExpiresAt
	}
	p90, _ := f.Loss.Quantile(0.9)
	return now.Add(m.lifetime(p90))
}

// lifetime is how long after its announcement a prediction counts as not come true: half
// as long again as 9 of 10 such losses take.
func (m *Machine) lifetime(p90 time.Duration) time.Duration {
	return min(max(p90+p90/2, m.cfg.Horizon), mihf.ForecastHorizon)
}

// never is a probability that nothing reaches.
const never = 2

func (m *Machine) threshold(now mihf.Time) float64 {
	switch s := &m.prediction; {
	case !now.Before(s.guardUntil):
		return m.cfg.Threshold
	case s.shut:
		return never
	default:
		return m.cfg.GuardThreshold
	}
}

func (m *Machine) announce(now mihf.Time, cause mihf.Cause, p float64, f *mihf.Forecast, ev *Events) bool {
	c := f.Of(cause)
	p90, known := c.Quantile(0.9)
	if !known {
		return false
	}
	s := &m.prediction
	s.open = mihf.Prediction{ID: m.ids.next(), Cause: cause, OpenedAt: now, ExpiresAt: now.Add(m.lifetime(p90))}
	s.isOpen, s.cameTrue = true, false
	s.shut = now.Before(s.guardUntil) // if this one fails too
	s.rollbackAt = min(m.cfg.RollbackBelow, p/2)
	s.belowSince = 0
	m.describe(now, f)
	ev.add(now, m.link, mihf.LinkGoingDown).Prediction = s.open
	return true
}

// describe puts the forecast's figures into the open prediction.
func (m *Machine) describe(now mihf.Time, f *mihf.Forecast) {
	p := &m.prediction.open
	c := f.Of(p.Cause)
	p.P10, _ = c.Quantile(0.1)
	p.P50, _ = c.Quantile(0.5)
	p.P90, _ = c.Quantile(0.9)
	p.Confidence = c.Within(p.P90)
	p.Trend = finite(f.Trend)
	p.RevisedAt = now
}

// finite returns the trend, or none where one of its figures is not a number.
func finite(t mihf.Trend) mihf.Trend {
	for _, x := range [...]float64{t.Level, t.Slope, t.Floor, t.Noise} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return mihf.Trend{}
		}
	}
	return t
}

// revise publishes a newer time or confidence where it differs enough to act on, and
// renews the expiry while the forecast still stands.
func (m *Machine) revise(now mihf.Time, f *mihf.Forecast, p float64, ev *Events) {
	s := &m.prediction
	if now.Sub(s.open.RevisedAt) < m.cfg.RevisionEvery {
		return
	}
	c := f.Of(s.open.Cause)
	p50, known := c.Quantile(0.5)
	if !known {
		return
	}
	p90, _ := c.Quantile(0.9)
	expected := max(s.open.P50-now.Sub(s.open.RevisedAt), 0) // what the last figures say for now
	moved := (p50 - expected).Abs() > max(expected/4, 50*time.Millisecond)
	surer := math.Abs(c.Within(p90)-s.open.Confidence) > 0.1
	limit := s.open.OpenedAt.Add(m.cfg.MaxOpen)
	expires := min(now.Add(m.lifetime(p90)), limit)
	renew := p >= m.cfg.Threshold && s.open.ExpiresAt.Sub(now) < m.cfg.Horizon/2 && expires > s.open.ExpiresAt
	if !moved && !surer && !renew {
		return
	}
	if renew {
		s.open.ExpiresAt = expires
	}
	s.open.Revision++
	m.describe(now, f)
	ev.add(now, m.link, mihf.LinkGoingDown).Prediction = s.open
}

// rollback takes the open prediction back.
func (m *Machine) rollback(now mihf.Time, ev *Events) {
	if m.prediction.isOpen {
		p := m.end(now, mihf.OutcomeRollback)
		ev.add(now, m.link, mihf.LinkEventRollback).Prediction = p
	}
}

// Resume says that the machine was suspended: what was forecast before says nothing of
// now, so that the open prediction expires. That is no false alarm.
func (m *Machine) Resume(now mihf.Time, ev *Events) {
	if s := &m.prediction; s.isOpen && !m.Withheld() {
		guard, shut := s.guardUntil, s.shut
		p := m.end(now, mihf.OutcomeExpired)
		s.guardUntil, s.shut = guard, shut
		ev.add(now, m.link, mihf.PredictionExpired).Prediction = p
	}
}

func (m *Machine) expire(now mihf.Time, ev *Events) {
	if !m.prediction.isOpen || !m.prediction.open.ExpiresAt.Due(now) {
		return
	}
	if m.Withheld() {
		// The link is gone and only the announcement is withheld: its outcome decides.
		m.prediction.open.ExpiresAt = m.lost.deadline
		return
	}
	p := m.end(now, mihf.OutcomeExpired)
	ev.add(now, m.link, mihf.PredictionExpired).Prediction = p
}

// end gives the open prediction its outcome and returns it; the zero Prediction if none
// is open. A prediction that did not come true guards against the next one.
func (m *Machine) end(now mihf.Time, outcome mihf.Outcome) mihf.Prediction {
	s := &m.prediction
	if !s.isOpen {
		return mihf.Prediction{}
	}
	s.open.Outcome = outcome
	s.isOpen = false
	if outcome.CameTrue() || s.cameTrue {
		s.guardUntil, s.shut = 0, false
	} else {
		s.guardUntil = now.Add(m.cfg.FlapGuard)
	}
	return s.open
}
