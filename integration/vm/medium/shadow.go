package medium

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Shadow is another signal with correlated log-normal shadowing over time, as of a station
// that walks past obstacles. Make it with NewShadow.
type Shadow struct {
	under Signal
	step  time.Duration
	dB    []float64 // at every step; it begins again at the end
}

// NewShadow draws shadowing of a standard deviation in dB whose correlation falls to 1/e within
// a time, for a length behind which it repeats. It begins with none, so that a signal goes on
// from where it was.
func NewShadow(under Signal, deviationDB float64, correlation, length time.Duration, seed uint64) Shadow {
	s := Shadow{under: under, step: correlation / stepsPerCorrelation}
	random := rand.New(rand.NewPCG(seed, 2))
	kept := math.Exp(-1.0 / stepsPerCorrelation)
	s.dB = make([]float64, min(maxSteps, int(length/s.step)+2))
	for i := 1; i < len(s.dB); i++ {
		s.dB[i] = float64(kept*s.dB[i-1]) + math.Sqrt(1-kept*kept)*random.NormFloat64()*deviationDB
	}
	return s
}

// At returns the signal with its shadowing; silence stays silence.
func (s Shadow) At(d time.Duration) (float64, bool) {
	dBm, heard := s.under.At(d)
	steps := float64(max(0, d)) / float64(s.step)
	i := int(steps) % (len(s.dB) - 1)
	part := steps - math.Floor(steps)
	return dBm + float64(s.dB[i]*(1-part)) + float64(s.dB[i+1]*part), heard
}
