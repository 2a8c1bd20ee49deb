package score

import (
	"math"
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Series is what a predictor said of a trace, moment by moment.
type Series struct {
	Trace    *Trace
	Horizons []time.Duration // that are judged, then Watches
	Judged   int             // how many of them are judged
	At       []float64       // seconds from the start, rising
	P        [][]float32     // by horizon: the probability at each moment
	Stands   [][]bool        // by judged horizon: whether the method's own alarm stood
}

// Watches are the times within which a fitted policy may look at the probability.
var Watches = []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second}

// Run plays a trace to a predictor and asks it for each horizon. The alarm is the
// method's own if it has a policy (see [predictors.Alarmer]), else that of
// [predictors.DefaultPolicy].
func Run(t *Trace, p predictors.Predictor, judged Judged, horizons []time.Duration) *Series {
	s := &Series{Trace: t, Horizons: slices.Concat(horizons, Watches), Judged: len(horizons), Stands: make([][]bool, len(horizons))}
	s.P = make([][]float32, len(s.Horizons))
	alarmer, _ := p.(predictors.Alarmer)
	var f mihf.Forecast
	ask := func(now mihf.Time) {
		known := p.Forecast(now, &f)
		s.At = append(s.At, since(now))
		within := func(h time.Duration) float64 {
			if !known {
				return 0
			}
			return probability(&f, judged, h)
		}
		for i, h := range s.Horizons {
			s.P[i] = append(s.P[i], float32(within(h)))
		}
		for i, h := range horizons {
			policy := predictors.DefaultPolicy
			if alarmer != nil {
				policy = alarmer.Alarm(h)
			}
			if policy.Watch == 0 {
				policy.Watch = h
			}
			n := len(s.Stands[i])
			s.Stands[i] = append(s.Stands[i], policy.Stands(n > 0 && s.Stands[i][n-1], within(policy.Watch)))
		}
	}
	play(t, p, ask)
	return s
}

// play gives each observation at its time, and asks after those of one moment and every
// Step between.
func play(t *Trace, p predictors.Predictor, ask func(mihf.Time)) {
	const grid = mihf.Time(Step)
	now, next := mihf.Time(0), Moment(0)
	for i := range t.Observations {
		o := &t.Observations[i]
		at := max(o.At, now)
		for ; next < at; next += grid {
			if next > now {
				ask(next)
			}
		}
		now = at
		p.Observe(now, o)
		if i+1 == len(t.Observations) || t.Observations[i+1].At > now {
			ask(now)
		}
	}
	for end := Moment(t.End); next <= end; next += grid {
		if next > now {
			ask(next)
		}
	}
}

func probability(f *mihf.Forecast, judged Judged, h time.Duration) float64 {
	p := f.Loss.Within(h)
	if judged == JudgeEither {
		p += f.Handover.Within(h)
	}
	return math.Min(p, 1)
}

// Standing returns the moments at which the alarm of a horizon stood.
func (s *Series) Standing(horizon int) []float64 {
	var all []float64
	for i, on := range s.Stands[horizon] {
		if on {
			all = append(all, s.At[i])
		}
	}
	return all
}

// watched returns what was said for a policy's watch, which is one of Horizons.
func (s *Series) watched(horizon int, policy predictors.Policy) []float32 {
	if i := slices.Index(s.Horizons, policy.Watch); i >= 0 {
		return s.P[i]
	}
	return s.P[horizon]
}

// Above returns the moments at which the alarm of another policy would stand.
func (s *Series) Above(horizon int, policy predictors.Policy) []float64 {
	var all []float64
	on := false
	for i, p := range s.watched(horizon, policy) {
		if on = policy.Stands(on, float64(p)); on {
			all = append(all, s.At[i])
		}
	}
	return all
}

// Use makes a policy the alarm of a horizon.
func (s *Series) Use(horizon int, policy predictors.Policy) {
	on := false
	for i, p := range s.watched(horizon, policy) {
		on = policy.Stands(on, float64(p))
		s.Stands[horizon][i] = on
	}
}
