package score

import (
	"slices"

	"mihf.dev/predictors"
)

// ratios are how far below the level that raises an alarm the level that clears it may lie.
var ratios = [...]float64{1, 0.7, 0.4}

// levels returns thresholds to try: quantiles of what was said, dense near the top.
func levels(all []*Series, horizon int) []float64 {
	var said []float64
	for _, s := range all {
		for _, p := range s.P[horizon] {
			if p > 0 {
				said = append(said, float64(p))
			}
		}
	}
	if len(said) == 0 {
		return nil
	}
	slices.Sort(said)
	var out []float64
	for tail := 0.5; tail > 1e-5; tail *= 0.87 {
		out = append(out, said[int(float64(len(said))*(1-tail))])
	}
	return slices.Compact(out)
}

func judge(all []*Series, horizon int, policy predictors.Policy) Tally {
	var sum Tally
	for _, s := range all {
		r := s.Trace.Alarms(s.Above(horizon, policy), s.Horizons[horizon].Seconds())
		sum.Add(&r)
	}
	return sum
}

// Grid is what policies give on series, one by one, so that the best can be found for any
// part of them.
type Grid struct {
	policies []predictors.Policy // rows of rising levels
	rows     []int               // where each row ends
	tallies  [][]Tally           // by series, by policy; without leads
}

// NewGrid tries policies for a horizon: every watch up to it, and levels to raise and clear.
func NewGrid(all []*Series, horizon int) *Grid {
	g := &Grid{tallies: make([][]Tally, len(all))}
	if len(all) == 0 {
		return g
	}
	for w, watch := range all[0].Horizons {
		if watch > all[0].Horizons[horizon] || slices.Index(all[0].Horizons, watch) < w {
			continue
		}
		raises := levels(all, w)
		for _, ratio := range ratios {
			for _, raise := range raises {
				g.policies = append(g.policies, predictors.Policy{Raise: raise, Clear: raise * ratio, Watch: watch})
			}
			g.rows = append(g.rows, len(g.policies))
		}
	}
	for i, s := range all {
		for _, p := range g.policies {
			r := s.Trace.Alarms(s.Above(horizon, p), s.Horizons[horizon].Seconds())
			r.Leads = nil
			g.tallies[i] = append(g.tallies[i], r)
		}
	}
	return g
}

// Best returns the policy with the highest F1 on the series that use says, smoothed over
// neighbouring levels. Judge it on others.
func (g *Grid) Best(use func(series int) bool) predictors.Policy {
	f1 := make([]float64, len(g.policies))
	for k := range g.policies {
		var sum Tally
		for i := range g.tallies {
			if use(i) {
				sum.Add(&g.tallies[i][k])
			}
		}
		f1[k] = sum.F1()
	}
	best, bestF1, from := predictors.DefaultPolicy, -1.0, 0
	for _, end := range g.rows {
		row := f1[from:end]
		for k := range row {
			if f := smoothed(row, k); f > bestF1 {
				best, bestF1 = g.policies[from+k], f
			}
		}
		from = end
	}
	return best
}

// Fit returns the best policy of [NewGrid] on all of these series.
func Fit(all []*Series, horizon int) predictors.Policy {
	return NewGrid(all, horizon).Best(func(int) bool { return true })
}

// smoothed returns the mean of a value and those beside it: a peak that is none beside its
// place was luck.
func smoothed(v []float64, at int) float64 {
	sum, n := v[at], 1.0 // it counts twice
	for i := max(at-1, 0); i <= min(at+1, len(v)-1); i++ {
		sum, n = sum+v[i], n+1
	}
	return sum / n
}

// RecallAt returns the highest recall at a number of false alarms an hour, over all
// thresholds: a point of the method's operating curve, not a forecast of what a fixed
// threshold gives.
func RecallAt(all []*Series, horizon int, perHour float64) float64 {
	best := 0.0
	for _, raise := range levels(all, horizon) {
		r := judge(all, horizon, predictors.Policy{Raise: raise, Clear: raise, Watch: all[0].Horizons[horizon]})
		if r.FalsePerHour() <= perHour {
			best = max(best, r.Recall())
		}
	}
	return best
}
