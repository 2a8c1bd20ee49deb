package score

import (
	"math/rand/v2"
	"slices"
	"sort"
)

// Bin is a range of probabilities: what was said on average, and how often it came.
type Bin struct {
	Seconds  float64 `json:"seconds"`  // for which probabilities in the bin were said
	Said     float64 `json:"said"`     // their mean
	Observed float64 `json:"observed"` // share of that time after which the event came within the horizon
}

// Bins is how many ranges of 1/Bins a reliability has.
const Bins = 10

// Calibration compares probabilities with what came, weighted by time. Moments whose
// horizon ends after judging stops are left out, unless the event came before.
type Calibration struct {
	seconds, square, came float64
	bins                  [Bins]struct{ seconds, said, came float64 }
}

// Calibrate compares what a series says for a horizon with the truth.
func (s *Series) Calibrate(horizon int) Calibration {
	var c Calibration
	h := s.Horizons[horizon].Seconds()
	for _, g := range s.Trace.segments() {
		i := sort.SearchFloat64s(s.At, g.From)
		for ; i < len(s.At) && s.At[i] < g.To; i++ {
			at, w := s.At[i], 0.0
			if i+1 < len(s.At) {
				w = min(s.At[i+1], g.To) - at
			}
			came := g.ends && g.event <= at+h
			if !came && at+h > g.To && (!g.ends || g.event > g.To) {
				continue // not known
			}
			c.add(float64(s.P[horizon][i]), came, w)
		}
	}
	return c
}

func (c *Calibration) add(p float64, came bool, seconds float64) {
	y := 0.0
	if came {
		y = 1
	}
	c.seconds += seconds
	c.square += seconds * (p - y) * (p - y)
	c.came += seconds * y
	b := &c.bins[min(int(p*Bins), Bins-1)]
	b.seconds += seconds
	b.said += seconds * p
	b.came += seconds * y
}

// Add adds what another series gave.
func (c *Calibration) Add(o *Calibration) {
	c.seconds += o.seconds
	c.square += o.square
	c.came += o.came
	for i := range c.bins {
		c.bins[i].seconds += o.bins[i].seconds
		c.bins[i].said += o.bins[i].said
		c.bins[i].came += o.bins[i].came
	}
}

// Brier is the mean squared difference between what was said and what came; 0 if nothing
// was judged.
func (c *Calibration) Brier() float64 {
	if c.seconds == 0 {
		return 0
	}
	return c.square / c.seconds
}

// BaseRate is the share of the time after which the event came within the horizon.
func (c *Calibration) BaseRate() float64 {
	if c.seconds == 0 {
		return 0
	}
	return c.came / c.seconds
}

// Skill is how much smaller the Brier score is than that of saying the base rate always:
// 1 is perfect, 0 no better.
func (c *Calibration) Skill() float64 {
	base := c.BaseRate()
	if ref := base * (1 - base); ref > 0 {
		return 1 - c.Brier()/ref
	}
	return 0
}

// Reliability returns the bins from probability 0 up; those in which nothing was said have
// no seconds.
func (c *Calibration) Reliability() [Bins]Bin {
	var out [Bins]Bin
	for i, b := range c.bins {
		if b.seconds > 0 {
			out[i] = Bin{Seconds: b.seconds, Said: b.said / b.seconds, Observed: b.came / b.seconds}
		}
	}
	return out
}

// Worst returns the largest difference between said and observed in the bins from low up
// that hold at least so many seconds.
func (c *Calibration) Worst(low, seconds float64) float64 {
	worst := 0.0
	for i, b := range c.Reliability() {
		if float64(i)/Bins >= low-1e-9 && b.Seconds >= seconds {
			worst = max(worst, b.Said-b.Observed, b.Observed-b.Said)
		}
	}
	return worst
}

const resamples = 1000

// SkillInterval returns the 95 % bootstrap interval of the skill over files.
func SkillInterval(files []Calibration, seed uint64) (low, high float64) {
	if len(files) == 0 {
		return 0, 0
	}
	r := rand.New(rand.NewPCG(seed, 0))
	skills := make([]float64, resamples)
	for i := range skills {
		var sum Calibration
		for range files {
			sum.Add(&files[r.IntN(len(files))])
		}
		skills[i] = sum.Skill()
	}
	slices.Sort(skills)
	return skills[resamples*25/1000], skills[resamples*975/1000]
}
