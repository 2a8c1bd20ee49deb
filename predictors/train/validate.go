package train

import (
	"fmt"
	"time"

	"mihf.dev/predictors"
	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/score"
)

// horizons are those for which alarm policies are fitted.
var horizons = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}

// Group is what belongs together in a report: the files of one set, in one form.
type Group struct {
	Name   string
	Traces []score.Trace
}

// Result is what cross-validation found of a group.
type Result struct {
	Group string         `json:"group"`
	Model ensemble.Model `json:"-"` // that spoke most
	Rows  []score.Row    `json:"rows"`
}

// Train makes a set of models from groups of traces, with policies fitted on
// cross-validated forecasts, and returns how good they are on files that they do not know.
// Files with the same place in each group are in the same fold, because a group may be
// another in another form. told is told what
// goes on, before each part of the work; an error that it returns ends it.
func Train(groups []Group, folds int, told func(string) error) (ensemble.Set, []Result, error) {
	if folds < 2 {
		return ensemble.Set{}, nil, fmt.Errorf("%d folds: want 2 at least", folds)
	}
	parts := make([][]*Samples, len(groups))
	for g := range groups {
		if err := told("samples of " + groups[g].Name); err != nil {
			return ensemble.Set{}, nil, err
		}
		for i := range groups[g].Traces {
			parts[g] = append(parts[g], Collect(&groups[g].Traces[i]))
		}
	}
	series, err := validate(groups, parts, folds, told)
	if err != nil {
		return ensemble.Set{}, nil, err
	}
	if err := told("alarm policies"); err != nil {
		return ensemble.Set{}, nil, err
	}
	g := newGrids(parts, series)
	results := judge(groups, parts, series, g, folds)
	if err := told("the models"); err != nil {
		return ensemble.Set{}, nil, err
	}
	everything := func(int) bool { return true }
	set := ensemble.Set{Models: Fit(flat(parts, everything))}
	for m := range g.grid {
		if w, made := set.Models[m.String()]; made {
			w.Policies = g.policies(m, everything)
			set.Models[m.String()] = w
		}
	}
	return set, results, nil
}

// flat returns the samples of the files that use says.
func flat(parts [][]*Samples, use func(file int) bool) (all []*Samples) {
	for _, g := range parts {
		for i, p := range g {
			if use(i) {
				all = append(all, p)
			}
		}
	}
	return all
}

// validate runs each trace with models that do not know its file.
func validate(groups []Group, parts [][]*Samples, folds int, told func(string) error) ([][]*score.Series, error) {
	series := make([][]*score.Series, len(groups))
	for g := range groups {
		series[g] = make([]*score.Series, len(groups[g].Traces))
	}
	for fold := range folds {
		if err := told(fmt.Sprintf("fold %d of %d", fold+1, folds)); err != nil {
			return nil, err
		}
		set := ensemble.Set{Models: Fit(flat(parts, func(i int) bool { return i%folds != fold }))}
		c, err := set.Compile()
		if err != nil {
			return nil, fmt.Errorf("fold %d: %w", fold+1, err)
		}
		for g := range groups {
			judged := score.JudgedOf(groups[g].Traces)
			for i := range groups[g].Traces {
				if i%folds == fold {
					series[g][i] = score.Run(&groups[g].Traces[i], ensemble.New(c), judged, horizons)
				}
			}
		}
	}
	return series, nil
}

// place is where a series comes from.
type place struct{ group, file int }

// grids holds, for each model, what policies give on the series of the groups in which it
// speaks most.
type grids struct {
	places map[ensemble.Model][]place
	grid   map[ensemble.Model][]*score.Grid // by horizon
}

func newGrids(parts [][]*Samples, series [][]*score.Series) *grids {
	g := &grids{map[ensemble.Model][]place{}, map[ensemble.Model][]*score.Grid{}}
	all := map[ensemble.Model][]*score.Series{}
	for k := range series {
		m := modelOf(parts[k])
		for i, s := range series[k] {
			g.places[m] = append(g.places[m], place{k, i})
			all[m] = append(all[m], s)
		}
	}
	for m, list := range all {
		for h := range horizons {
			g.grid[m] = append(g.grid[m], score.NewGrid(list, h))
		}
	}
	return g
}

// policies returns the best for a model on the files that use says.
func (g *grids) policies(m ensemble.Model, use func(file int) bool) (out []ensemble.HorizonPolicy) {
	for h, grid := range g.grid[m] {
		p := grid.Best(func(i int) bool { return use(g.places[m][i].file) })
		out = append(out, ensemble.HorizonPolicy{HorizonS: horizons[h].Seconds(), WatchS: p.Watch.Seconds(), Raise: p.Raise, Clear: p.Clear})
	}
	return out
}

// modelOf returns the model that spoke most in a group.
func modelOf(parts []*Samples) ensemble.Model {
	var n [ensemble.NumModels]int
	best := ensemble.ModelNone
	for _, p := range parts {
		for m := range p {
			if n[m] += len(p[m]); n[m] > n[best] {
				best = ensemble.Model(m)
			}
		}
	}
	return best
}

// judge scores each group with policies in whose making the file had no part.
func judge(groups []Group, parts [][]*Samples, series [][]*score.Series, g *grids, folds int) []Result {
	for k := range groups {
		m := modelOf(parts[k])
		for fold := range folds {
			for h, p := range g.policies(m, func(i int) bool { return i%folds != fold }) {
				for i, s := range series[k] {
					if i%folds == fold {
						s.Use(h, predictors.Policy{Raise: p.Raise, Clear: p.Clear, Watch: time.Duration(p.WatchS * 1e9)})
					}
				}
			}
		}
	}
	var out []Result
	for k := range groups {
		out = append(out, Result{Group: groups[k].Name, Model: modelOf(parts[k]), Rows: score.Rows(series[k])})
	}
	return out
}
