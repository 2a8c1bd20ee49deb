// Package train makes the weights and alarm policies of the method ensemble from
// recordings whose losses and handovers are known, and cross-validates them.
//
// # Guarantees
//
//   - The same traces give the same figures. No trace is kept in them: only means,
//     scales, weights and thresholds.
//   - Cross-validation parts by file: no file is judged by weights or thresholds in whose
//     making it had a part.
//
// # Limits
//
// Each model needs [MinEvents] events; one with fewer is left as it was. Training holds
// all samples in memory: about 300 bytes for each fifth of a second.
package train

import (
	"math"
	"slices"
	"time"

	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/score"
)

// MinEvents is how many events a model needs to be trained.
const MinEvents = 20

// every is the time between samples.
const every = 200 * time.Millisecond

// features are what each model looks at.
var features = [ensemble.NumModels][]string{
	ensemble.ModelWiFi: {
		"rssi", "rssi_fast", "rssi_mid", "rssi_slow", "rate", "rate_fast", "rate_mid", "rate_slow", "age", "pauses",
		"kernel_1", "kernel_2", "kernel_3", "kernel_5", "kernel_weight", "filter_1", "filter_2", "filter_3", "filter_5", "filter_unknown",
	},
	ensemble.ModelProbe: {
		"rtt", "rtt_jump", "rtt_now", "rtt_fast", "rtt_mid", "rtt_slow", "rtt_sd", "silence", "silence_over", "stalls", "rtt_peak",
		"rsrp", "rsrq", "sinr", "sinr_mid", "rsrq_mid", "rsrp_mid",
	},
	ensemble.ModelNeighbours: {
		"best", "best_over_2", "best_over_5", "best_smooth", "best_rise", "quality", "quality_smooth", "quality_over_3", "other", "other_quality",
		"rsrp", "rsrq", "rsrq_now", "rsrq_fast", "rsrq_mid", "rsrp_now", "in_cell", "young", "changes",
	},
	ensemble.ModelSINR: {
		"rsrp", "rsrp_now", "rsrp_fast", "rsrp_mid", "rsrp_slow", "rsrq", "rsrq_now", "rsrq_fast", "rsrq_mid", "rsrq_slow",
		"sinr", "sinr_now", "sinr_fast", "sinr_mid", "sinr_slow", "sinr_sd", "rsrq_sd", "rsrp_sd", "age",
	},
	ensemble.ModelCell: {
		"rsrp", "rsrp_jump", "rsrp_now", "rsrp_fast", "rsrp_mid", "rsrp_slow", "rsrq", "rsrq_jump", "rsrq_now", "rsrq_fast", "rsrq_mid", "rsrq_slow",
		"rsrp_sd", "rsrq_sd", "in_cell", "young", "changes", "age",
	},
	ensemble.ModelSlow: {
		"rsrp", "rsrp_jump", "rsrp_mid", "rsrp_slow", "rsrq", "rsrq_jump", "rsrq_mid", "rsrq_slow",
		"rsrp_sd", "rsrq_sd", "in_cell", "changes", "age",
	},
}

// ridge is the penalty on squared weights, by model: more where the events are few.
func ridge(m ensemble.Model) float64 {
	if m == ensemble.ModelWiFi {
		return 100
	}
	return 25
}

// sample is a moment of a trace, as a model sees it.
type sample struct {
	x     []float32
	tte   float64 // seconds until the event; +Inf: none within known
	known float64 // seconds for which it is known whether the event came
}

// Samples are the moments of traces, by model.
type Samples [ensemble.NumModels][]sample

// Collect plays a trace and takes a sample every fifth of a second of judged time, for the
// model that speaks then of what the trace tells.
func Collect(t *score.Trace) *Samples {
	var all Samples
	tr := ensemble.NewTracker()
	var x ensemble.Vector
	indexes := featureIndexes()
	i := 0
	for at := 0.0; at <= t.End; at += every.Seconds() {
		now := score.Moment(at)
		for i < len(t.Observations) && t.Observations[i].At <= now {
			o := &t.Observations[i]
			tr.Observe(o.At, o)
			i++
		}
		tte, known := t.Until(at)
		if known <= 0 {
			continue
		}
		loss, handover := tr.Models(now)
		m := handover
		if !t.Handovers && t.Losses {
			m = loss
		}
		if m == ensemble.ModelNone {
			continue
		}
		tr.Vector(now, m, &x)
		s := sample{x: make([]float32, len(indexes[m])), tte: tte, known: known}
		for k, f := range indexes[m] {
			s.x[k] = x[f]
		}
		all[m] = append(all[m], s)
	}
	return &all
}

func featureIndexes() (all [ensemble.NumModels][]int) {
	for m, names := range features {
		for _, n := range names {
			all[m] = append(all[m], slices.Index(ensemble.FeatureNames[:], n))
		}
	}
	return all
}

// Fit makes the models from samples. Models without enough events are left out.
func Fit(parts []*Samples) map[string]ensemble.Weights {
	models := map[string]ensemble.Weights{}
	for m := ensemble.ModelNone + 1; m < ensemble.NumModels; m++ {
		var rows []sample
		events := 0
		for _, p := range parts {
			for i := range p[m] {
				if s := &p[m][i]; s.tte <= every.Seconds() {
					events++
				}
			}
			rows = append(rows, p[m]...)
		}
		if events >= MinEvents {
			models[m.String()] = fit(m, rows)
		}
	}
	return models
}

func fit(m ensemble.Model, rows []sample) ensemble.Weights {
	names := features[m]
	w := ensemble.Weights{Features: names, Mean: make([]float64, len(names)), Scale: make([]float64, len(names))}
	inv := make([]float32, len(names))
	for k := range names {
		w.Mean[k], w.Scale[k] = moments(rows, k)
		inv[k] = float32(1 / w.Scale[k])
	}
	z := make([][]float64, len(rows))
	for i := range rows {
		z[i] = make([]float64, len(names))
		for k, v := range rows[i].x {
			z[i][k] = float64(ensemble.Standard(v, float32(w.Mean[k]), inv[k]))
		}
	}
	from := 0.0
	for b, to := range ensemble.Bins {
		var x [][]float64
		var y []float64
		for i := range rows {
			s := &rows[i]
			switch {
			case s.tte <= from: // it came before
			case s.tte <= to:
				x, y = append(x, z[i]), append(y, 1)
			case s.known >= to:
				x, y = append(x, z[i]), append(y, 0)
			}
		}
		w.Bias[b], w.Weight[b] = logistic(x, y, len(names), ridge(m))
		from = to
	}
	round(&w)
	return w
}

// moments returns the mean and standard deviation of a feature where it is known.
func moments(rows []sample, k int) (mean, sd float64) {
	var n, s, s2 float64
	for i := range rows {
		if v := float64(rows[i].x[k]); !math.IsNaN(v) {
			n++
			s += v
			s2 += v * v
		}
	}
	if n == 0 {
		return 0, 1
	}
	mean = s / n
	return mean, math.Sqrt(math.Max(s2/n-mean*mean, 0)) + 1e-3
}

// round keeps four significant digits: more would only tell the traces apart.
func round(w *ensemble.Weights) {
	r := func(v *float64) {
		if *v != 0 {
			p := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(*v))))
			*v = math.Round(*v*p) / p
		}
	}
	for k := range w.Mean {
		r(&w.Mean[k])
		r(&w.Scale[k])
	}
	for b := range w.Weight {
		r(&w.Bias[b])
		for k := range w.Weight[b] {
			r(&w.Weight[b][k])
		}
	}
}
