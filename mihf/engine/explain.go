package engine

import (
	"fmt"
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
)

// Bounds of what is kept to explain predictions.
const (
	historySamples  = 256 // of each link with a radio
	maxExplanations = 64
	maxDecisions    = 32
)

// history is the newest samples and forecasts of a link.
type history struct {
	samples   [historySamples]mihf.Sample
	forecasts [historySamples]mihf.ForecastPoint
	ns, nf    int // how many there ever were
}

func (l *link) sampled(o *mihf.Observation) {
	if l.history == nil {
		l.history = &history{}
	}
	h := l.history
	h.samples[h.ns%historySamples] = mihf.Sample{At: o.At.Add(-o.Age), Values: o.Values, PoA: o.PoA}
	h.ns++
}

// foresaw remembers a forecast with its probabilities within the announcement's horizon.
func (l *link) foresaw(f *mihf.Forecast, within time.Duration) {
	h := l.history
	if h == nil {
		return
	}
	p := &h.forecasts[h.nf%historySamples]
	*p = mihf.ForecastPoint{
		At: f.At, Within: within, PLoss: f.Loss.Within(within), PHandover: f.Handover.Within(within),
	}
	p.P10, p.P50, p.P90 = quantile(&f.Loss, 0.1), quantile(&f.Loss, 0.5), quantile(&f.Loss, 0.9)
	h.nf++
}

func quantile(c *mihf.Incidence, q float64) mihf.Opt[time.Duration] {
	if d, ok := c.Quantile(q); ok {
		return mihf.Some(d)
	}
	return mihf.Opt[time.Duration]{}
}

// explanation is what is kept of one prediction; words are made when somebody asks.
type explanation struct {
	prediction mihf.Prediction // newest
	announced  mihf.Prediction
	link       mihf.LinkID
	p          float64 // probability of what was announced within the horizon then
	rule       float64 // from which it was announced; 0: for a flow
	decisions  [maxDecisions]decision
	n          int
	outcomeAt  mihf.Time
	samples    []mihf.Sample // copied at the outcome; the room is used again
	forecasts  []mihf.ForecastPoint
}

type decision struct {
	at    mihf.Time
	flow  mihf.FlowID
	weigh hint.Weighing
	ch    hint.Chance
}

// explanations are the newest predictions, oldest overwritten.
type explanations struct {
	ring [maxExplanations]explanation
	n    int
}

func (x *explanations) find(id mihf.PredictionID) *explanation {
	for i := range x.ring {
		if x.ring[i].prediction.ID == id {
			return &x.ring[i]
		}
	}
	return nil
}

func (x *explanations) opened(l *link, p *mihf.Prediction, within time.Duration) {
	s := &x.ring[x.n%maxExplanations]
	x.n++
	*s = explanation{
		prediction: *p, announced: *p, link: l.id, p: l.forecast.Of(p.Cause).Within(within), rule: l.machine.AnnouncedBy(),
		samples: s.samples[:0], forecasts: s.forecasts[:0],
	}
}

func (x *explanations) revised(p *mihf.Prediction) {
	if s := x.find(p.ID); s != nil {
		s.prediction = *p
	}
}

func (x *explanations) decided(now mihf.Time, id mihf.PredictionID, policy *hint.Policy, f *mihf.Forecast, ch hint.Chance) {
	s := x.find(id)
	if s == nil {
		return
	}
	for flow := range policy.Found {
		if s.n == maxDecisions {
			return
		}
		w, _ := policy.Weigh(flow, f, ch)
		s.decisions[s.n] = decision{at: now, flow: flow, weigh: w, ch: ch}
		s.n++
	}
}

func (x *explanations) ended(now mihf.Time, l *link, p *mihf.Prediction) {
	s := x.find(p.ID)
	if s == nil {
		return
	}
	s.prediction, s.outcomeAt = *p, now
	if l != nil && l.history != nil {
		s.samples, s.forecasts = l.history.copied(s.samples, s.forecasts)
	}
}

// copied appends the content to what it is given.
func (h *history) copied(samples []mihf.Sample, forecasts []mihf.ForecastPoint) ([]mihf.Sample, []mihf.ForecastPoint) {
	return oldestFirst(samples, h.samples[:], h.ns), oldestFirst(forecasts, h.forecasts[:], h.nf)
}

// oldestFirst appends a ring's content, of which n ever were put in.
func oldestFirst[T any](out, ring []T, n int) []T {
	if n < len(ring) {
		return append(out, ring[:n]...)
	}
	out = append(out, ring[n%len(ring):]...)
	return append(out, ring[:n%len(ring)]...)
}

// Explain tells why a prediction was announced and how it ended. The error wraps
// mihf.ErrNotFound.
func (e *Engine) Explain(id mihf.PredictionID) (*mihf.Explanation, error) {
	s := e.explain.find(id)
	if s == nil || id.IsZero() {
		return nil, fmt.Errorf("%w: prediction %s; the last %d are kept", mihf.ErrNotFound, id, maxExplanations)
	}
	x := &mihf.Explanation{
		Prediction: s.prediction, Announced: s.announced, Link: s.link, OutcomeAt: s.outcomeAt,
		Samples: slices.Clone(s.samples), Forecasts: slices.Clone(s.forecasts),
	}
	if l := e.links[s.link]; s.outcomeAt == 0 && l != nil && l.history != nil {
		x.Samples, x.Forecasts = l.history.copied(nil, nil)
	}
	x.Decisions = append(x.Decisions, mihf.Decision{At: s.prediction.OpenedAt, Rule: e.announcement(s)})
	for _, d := range s.decisions[:s.n] {
		x.Decisions = append(x.Decisions, mihf.Decision{At: d.at, Flow: d.flow, Rule: d.words()})
	}
	return x, nil
}

func (e *Engine) announcement(s *explanation) string {
	what := fmt.Sprintf("P(%v within %v) = %.2f", s.announced.Cause, e.cfg.Link.Horizon, s.p)
	if s.rule == 0 {
		return what + ", announced for the first flow whose rule fired"
	}
	return fmt.Sprintf("%s, announced from %.2f", what, s.rule)
}

func (d *decision) words() string {
	w := &d.weigh
	return fmt.Sprintf(
		"freeze: lead %v (RTT %v %v) + %v to the next evaluation; P(loss before) %.3f costs %.4f s; P(no loss in %v) %.3f costs %.4f s; one evaluation early costs %.4f s",
		w.Lead.Round(time.Millisecond), w.RTT.Round(time.Millisecond), w.RTTFrom, d.ch.Interval, w.PMiss, w.Miss, d.ch.ExpiresIn.Round(time.Millisecond), w.PNone, w.Needless, w.Early)
}
