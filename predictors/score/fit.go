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

// Fit returns the policy with the highest F1 for a horizon on these series. Judge it on
// others.
func Fit(all []*Series, horizon int) predictors.Policy {
	best, bestF1 := predictors.DefaultPolicy, -1.0
	for _, raise := range levels(all, horizon) {
		for _, ratio := range ratios {
			policy := predictors.Policy{Raise: raise, Clear: raise * ratio}
			r := judge(all, horizon, policy)
			if f := r.F1(); f > bestF1 {
				best, bestF1 = policy, f
			}
		}
	}
	return best
}

// RecallAt returns the highest recall at a number of false alarms an hour, over all
// thresholds: a point of the method's operating curve, not a forecast of what a fixed
// threshold gives.
func RecallAt(all []*Series, horizon int, perHour float64) float64 {
	best := 0.0
	for _, raise := range levels(all, horizon) {
		r := judge(all, horizon, predictors.Policy{Raise: raise, Clear: raise})
		if r.FalsePerHour() <= perHour {
			best = max(best, r.Recall())
		}
	}
	return best
}
