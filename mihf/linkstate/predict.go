package linkstate

import (
	"time"

	"mihf.dev/mihf"
)

// predictionState is the open prediction and what guards the next one.
type predictionState struct {
	open       mihf.Prediction
	isOpen     bool
	revised    mihf.Time
	rollbackAt float64   // P below which it is taken back
	belowSince mihf.Time // zero: not below
	guardUntil mihf.Time
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

// Forecast judges a forecast by the announcement rule: it may announce a prediction,
// revise the open one or take it back.
func (m *Machine) Forecast(now mihf.Time, f *mihf.Forecast, ev *Events) {
	cause, p := m.likelier(f)
	if !m.prediction.isOpen {
		if p >= m.threshold(now) {
			m.announce(now, cause, p, f, ev)
		}
		return
	}
	if !m.attached {
		return // it is coming true; the outcome follows
	}
	s := &m.prediction
	p = f.Of(s.open.Cause).Within(m.cfg.Horizon)
	if p < s.rollbackAt {
		if s.belowSince == 0 {
			s.belowSince = now
		}
		if now.Sub(s.belowSince) >= m.cfg.RollbackFor {
			m.rollback(now, ev)
		}
		return
	}
	s.belowSince = 0
	m.revise(now, f, p, ev)
}

// Announce opens a prediction of a loss because a flow's rule fired before the link's.
// It reports whether one is open now: within the flap guard only a forecast that passes
// it is believed.
func (m *Machine) Announce(now mihf.Time, f *mihf.Forecast, ev *Events) bool {
	if m.prediction.isOpen {
		return true
	}
	p := f.Loss.Within(m.cfg.Horizon)
	if !m.MayAnnounce(now, f) {
		return false
	}
	return m.announce(now, mihf.CauseLoss, p, f, ev)
}

// MayAnnounce reports whether a flow's rule may open a prediction on this forecast.
func (m *Machine) MayAnnounce(now mihf.Time, f *mihf.Forecast) bool {
	if m.prediction.isOpen {
		return true
	}
	return m.attached && m.announced &&
		(!now.Before(m.prediction.guardUntil) || f.Loss.Within(m.cfg.Horizon) >= m.cfg.GuardThreshold)
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

func (m *Machine) likelier(f *mihf.Forecast) (mihf.Cause, float64) {
	loss, handover := f.Loss.Within(m.cfg.Horizon), f.Handover.Within(m.cfg.Horizon)
	if handover > loss {
		return mihf.CauseHandover, handover
	}
	return mihf.CauseLoss, loss
}

func (m *Machine) threshold(now mihf.Time) float64 {
	if now.Before(m.prediction.guardUntil) {
		return m.cfg.GuardThreshold
	}
	return m.cfg.Threshold
}

func (m *Machine) announce(now mihf.Time, cause mihf.Cause, p float64, f *mihf.Forecast, ev *Events) bool {
	if !m.attached || !m.announced {
		return false
	}
	c := f.Of(cause)
	p90, known := c.Quantile(0.9)
	if !known {
		return false
	}
	s := &m.prediction
	s.open = mihf.Prediction{ID: m.ids.next(), Cause: cause, OpenedAt: now, ExpiresAt: now.Add(m.lifetime(p90))}
	s.isOpen = true
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
	p.Trend = f.Trend
	m.prediction.revised = now
}

// revise publishes a newer time or confidence where it differs enough to act on, and
// renews the expiry while the forecast still stands.
func (m *Machine) revise(now mihf.Time, f *mihf.Forecast, p float64, ev *Events) {
	s := &m.prediction
	if now.Sub(s.revised) < m.cfg.RevisionEvery {
		return
	}
	c := f.Of(s.open.Cause)
	p50, known := c.Quantile(0.5)
	if !known {
		return
	}
	p90, _ := c.Quantile(0.9)
	expected := s.open.P50 - now.Sub(s.revised) // what the last figures say for now
	moved := (p50 - expected).Abs() > max(expected/4, 50*time.Millisecond)
	surer := abs(c.Within(p90)-s.open.Confidence) > 0.1
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

func (m *Machine) expire(now mihf.Time, ev *Events) {
	if !m.prediction.isOpen || !m.prediction.open.ExpiresAt.Due(now) {
		return
	}
	if m.lost.deadline != 0 {
		// The link is gone and only the announcement is withheld: its outcome decides.
		m.prediction.open.ExpiresAt = m.lost.deadline
		return
	}
	p := m.end(now, mihf.OutcomeExpired)
	ev.add(now, m.link, mihf.PredictionExpired).Prediction = p
}

// end gives the open prediction its outcome and returns it; the zero Prediction if none
// is open.
func (m *Machine) end(now mihf.Time, outcome mihf.Outcome) mihf.Prediction {
	s := &m.prediction
	if !s.isOpen {
		return mihf.Prediction{}
	}
	s.open.Outcome = outcome
	s.isOpen = false
	if !outcome.CameTrue() {
		s.guardUntil = now.Add(m.cfg.FlapGuard)
	}
	return s.open
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
