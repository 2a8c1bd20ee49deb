package ensemble

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Model is one of the hazard models. Which of them speak depends on what is known of a
// link: one of losses, one of handovers.
type Model uint8

// Models.
const (
	ModelNone       Model = iota
	ModelWiFi             // losses, by Wi-Fi signal, rate and what is familiar
	ModelProbe            // losses, by the answers to probes
	ModelNeighbours       // handovers, by cells around
	ModelSINR             // handovers, by the serving cell with its SINR
	ModelCell             // handovers, by the serving cell's power and quality
	ModelSlow             // the same, at more than 3 s between readings
	NumModels
)

var modelNames = [NumModels]string{"none", "wifi", "probe", "neighbours", "sinr", "cell", "slow"}

func (m Model) String() string { return modelNames[m] }

// Cause is what the model's events are.
func (m Model) Cause() mihf.Cause {
	if m == ModelWiFi || m == ModelProbe {
		return mihf.CauseLoss
	}
	return mihf.CauseHandover
}

// Bins are the ends, in seconds, of the intervals for each of which a model has a hazard.
var Bins = [...]float64{0.3, 0.6, 1, 2, 3, 5, 10}

// Weights is a model as it is stored. A feature x counts as (x − mean)/scale, within ±4,
// and as 0 where it is not known. The logit of the probability that the event comes in a
// bin, given that it did not come before, is the bin's bias and the weighted sum.
type Weights struct {
	Features []string             `json:"features"`
	Mean     []float64            `json:"mean"`
	Scale    []float64            `json:"scale"`
	Bias     [len(Bins)]float64   `json:"bias"`
	Weight   [len(Bins)][]float64 `json:"weight"` // by bin, by feature
	Policies []HorizonPolicy      `json:"policies"`
}

// HorizonPolicy is the alarm policy for a horizon.
type HorizonPolicy struct {
	HorizonS float64 `json:"horizon_s"`
	WatchS   float64 `json:"watch_s"`
	Raise    float64 `json:"raise"`
	Clear    float64 `json:"clear"`
}

// Set is the models with where they come from, as they are stored.
type Set struct {
	Provenance string             `json:"provenance"`
	Models     map[string]Weights `json:"models"`
}

//go:embed weights.json
var shipped []byte

// Shipped returns the models that the program comes with.
func Shipped() Set {
	var s Set
	if err := json.Unmarshal(shipped, &s); err != nil {
		panic("ensemble: weights.json: " + err.Error()) // a test reads it
	}
	return s
}

// compiled is a model that is ready to be used.
type compiled struct {
	known    bool
	index    []uint8
	mean     []float32
	scale    []float32 // 1/scale
	bias     [len(Bins)]float32
	weight   []float32 // by feature, by bin
	policies []HorizonPolicy
}

// Compiled is a set of models that is ready to be used; it is shared and not changed.
type Compiled [NumModels]compiled

// Compile checks a set.
func (s *Set) Compile() (*Compiled, error) {
	var c Compiled
	for name, w := range s.Models {
		i := slices.Index(modelNames[:], name)
		if i <= 0 {
			return nil, fmt.Errorf("model %q is not known", name)
		}
		if err := c[i].compile(&w); err != nil {
			return nil, fmt.Errorf("model %s: %w", name, err)
		}
	}
	return &c, nil
}

func (m *compiled) compile(w *Weights) error {
	n := len(w.Features)
	if len(w.Mean) != n || len(w.Scale) != n {
		return fmt.Errorf("%d features, but %d means and %d scales", n, len(w.Mean), len(w.Scale))
	}
	m.weight = make([]float32, n*len(Bins))
	for k, name := range w.Features {
		i := slices.Index(FeatureNames[:], name)
		if i < 0 {
			return fmt.Errorf("feature %q is not known", name)
		}
		if !(w.Scale[k] > 0) {
			return fmt.Errorf("feature %s: scale %v is not above 0", name, w.Scale[k])
		}
		m.index = append(m.index, uint8(i))
		m.mean = append(m.mean, float32(w.Mean[k]))
		m.scale = append(m.scale, float32(1/w.Scale[k]))
		for b := range Bins {
			if len(w.Weight[b]) != n {
				return fmt.Errorf("bin %d has %d weights for %d features", b, len(w.Weight[b]), n)
			}
			m.weight[k*len(Bins)+b] = float32(w.Weight[b][k])
		}
	}
	for b := range Bins {
		m.bias[b] = float32(w.Bias[b])
	}
	m.policies, m.known = w.Policies, true
	return nil
}

// reach is how far a standardised feature counts.
const reach = 4

// Standard returns a feature as a model counts it.
func Standard(v, mean, invScale float32) float32 {
	z := (v - mean) * invScale
	if z != z {
		return 0
	}
	return min(max(z, -reach), reach)
}

// incidence fills c with the cumulative incidence that the model gives, its hazards
// multiplied by a factor.
func (m *compiled) incidence(x *Vector, factor float32, c *mihf.Incidence) {
	logit := m.bias
	for k, i := range m.index {
		z := Standard(x[i], m.mean[k], m.scale[k])
		for b, w := range m.weight[k*len(Bins) : (k+1)*len(Bins)] {
			logit[b] += z * w
		}
	}
	alive, from, k := 1.0, 0.0, 0
	for b, to := range Bins {
		// -log of survival through the bin: log(1 + exp(logit))
		rate := math.Log1p(math.Exp(math.Min(float64(logit[b]), 20))) * float64(factor) / (to - from)
		end := alive * math.Exp(-rate*(to-from))
		for ; k < len(c) && mihf.Horizons[k] <= to+1e-9; k++ {
			f := (mihf.Horizons[k] - from) / (to - from)
			c[k] = float32(1 - (alive + (end-alive)*f))
		}
		alive, from = end, to
	}
}

// policy returns the alarm policy for a horizon: that of the nearest one that is known.
func (m *compiled) policy(h time.Duration) predictors.Policy {
	best := predictors.DefaultPolicy
	distance := math.Inf(1)
	for _, p := range m.policies {
		if d := math.Abs(p.HorizonS - h.Seconds()); d < distance {
			distance = d
			best = predictors.Policy{Raise: p.Raise, Clear: p.Clear, Watch: min(h, time.Duration(p.WatchS*1e9))}
		}
	}
	return best
}
