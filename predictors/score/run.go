package score

import (
	"math"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Series is what a predictor said of a trace, moment by moment.
type Series struct {
	Trace    *Trace
	Horizons []time.Duration
	At       []float64   // seconds from the start, rising
	P        [][]float32 // by horizon: the probability at each moment
	Stands   [][]bool    // by horizon: whether the method's own alarm stood
}

// Run plays a trace to a predictor and asks it for each horizon. The alarm is the
// method's own if it has a policy (see [predictors.Alarmer]), else that of
// [predictors.DefaultPolicy].
func Run(t *Trace, p predictors.Predictor, judged Judged, horizons []time.Duration) *Series {
	s := &Series{Trace: t, Horizons: horizons, P: make([][]float32, len(horizons)), Stands: make([][]bool, len(horizons))}
	alarmer, _ := p.(predictors.Alarmer)
	var f mihf.Forecast
	ask := func(now mihf.Time) {
		known := p.Forecast(now, &f)
		s.At = append(s.At, since(now))
		for i, h := range horizons {
			v := 0.0
			if known {
				v = probability(&f, judged, h)
			}
			policy := predictors.DefaultPolicy
			if alarmer != nil {
				policy = alarmer.Alarm(h)
			}
			n := len(s.Stands[i])
			stood := n > 0 && s.Stands[i][n-1]
			s.P[i] = append(s.P[i], float32(v))
			s.Stands[i] = append(s.Stands[i], policy.Stands(stood, v))
		}
	}
	play(t, p, ask)
	return s
}

// play gives each observation at its time, and asks after those of one moment and every
// Step between.
func play(t *Trace, p predictors.Predictor, ask func(mihf.Time)) {
	const grid = mihf.Time(Step)
	now, next := mihf.Time(0), moment(0)
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
	for end := moment(t.End); next <= end; next += grid {
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

// Above returns the moments at which the alarm of another policy would stand.
func (s *Series) Above(horizon int, policy predictors.Policy) []float64 {
	var all []float64
	on := false
	for i, p := range s.P[horizon] {
		if on = policy.Stands(on, float64(p)); on {
			all = append(all, s.At[i])
		}
	}
	return all
}

// Use makes a policy the alarm of a horizon.
func (s *Series) Use(horizon int, policy predictors.Policy) {
	on := false
	for i, p := range s.P[horizon] {
		on = policy.Stands(on, float64(p))
		s.Stands[horizon][i] = on
	}
}
