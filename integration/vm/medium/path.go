package medium

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Path is a signal by distance: log-distance path loss with correlated log-normal
// shadowing, for a station that moves along a straight line at an even pace. Make it with
// NewPath.
type Path struct {
	m      PathModel
	shadow []float64 // dB, at every step of the way
}

// PathModel says how the signal of a Path comes about. In metres, dB and dBm.
type PathModel struct {
	AtMetreDBm   float64 // at a distance of 1 m
	Exponent     float64 // 2 in the open, 3 to 4 within buildings
	FromM, ToM   float64 // where the way begins and ends; at least 1 m from the sender
	SpeedMS      float64 // 0: it stays at FromM
	ShadowDB     float64 // standard deviation of the shadowing; 0: none
	CorrelationM float64 // over which way the shadowing's correlation falls to 1/e; 0: 5
	Seed         uint64
}

// A model's way is cut into this many steps for each length of correlation, and is no longer
// than so many in all.
const (
	stepsPerCorrelation = 8
	maxSteps            = 1 << 20
)

// NewPath draws the shadowing of a model (Gudmundson's: an exponential correlation over the
// way).
func NewPath(m PathModel) Path {
	if m.CorrelationM == 0 {
		m.CorrelationM = 5
	}
	p := Path{m: m}
	random := rand.New(rand.NewPCG(m.Seed, 1))
	kept := math.Exp(-1.0 / stepsPerCorrelation)
	steps := min(maxSteps, int(math.Abs(m.ToM-m.FromM)/p.step())+2)
	p.shadow = make([]float64, steps)
	p.shadow[0] = random.NormFloat64() * m.ShadowDB
	for i := 1; i < steps; i++ {
		p.shadow[i] = float64(kept*p.shadow[i-1]) + math.Sqrt(1-kept*kept)*random.NormFloat64()*m.ShadowDB
	}
	return p
}

func (p Path) step() float64 { return p.m.CorrelationM / stepsPerCorrelation }

// At returns the signal at the place reached; behind the way's end that of its end. It may be
// too weak for any receiver: the loss model's business.
func (p Path) At(d time.Duration) (float64, bool) {
	length := math.Abs(p.m.ToM - p.m.FromM)
	walked := max(0, min(length, p.m.SpeedMS*d.Seconds()))
	at := p.m.FromM + math.Copysign(walked, p.m.ToM-p.m.FromM)
	loss := 10 * p.m.Exponent * math.Log10(max(1, at))
	return p.m.AtMetreDBm - loss + p.shadowAt(walked), true
}

// shadowAt goes evenly from step to step.
func (p Path) shadowAt(walked float64) float64 {
	steps := walked / p.step()
	i := min(int(steps), len(p.shadow)-2)
	part := min(1, steps-float64(i))
	return float64(p.shadow[i]*(1-part)) + float64(p.shadow[i+1]*part)
}
