package lci

import (
	"slices"
	"time"

	"mihf.dev/mihf"
)

// window is how long a rate counts; a change shows when more than half of it is new.
const window = 2 * time.Second

// series is the newest rates of a direction, one for each moment of reading.
type series struct {
	samples [16]sample // newest last
	n       int
}

type sample struct {
	at  mihf.Time
	bps float64
}

func (s *series) add(now mihf.Time, bps float64) {
	if s.n == len(s.samples) {
		copy(s.samples[:], s.samples[1:])
		s.n--
	}
	s.samples[s.n] = sample{now, bps}
	s.n++
}

// median of the window.
func (s *series) median(now mihf.Time) float64 {
	var rates [len(s.samples)]float64
	n := 0
	for _, x := range s.samples[:s.n] {
		if now.Sub(x.at) < window {
			rates[n] = x.bps
			n++
		}
	}
	if n == 0 {
		return 0
	}
	slices.Sort(rates[:n])
	return (rates[n/2] + rates[(n-1)/2]) / 2
}
