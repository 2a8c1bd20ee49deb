package tfrc

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

// recvSet is X_recv_set of RFC 5348, section 4.3, with at most three values (section
// 8.2.2).
type recvSet struct {
	rate [3]Rate
	at   [3]mihf.Time
	n    int
}

var infinite = Rate(math.Inf(1))

// replace makes x the only value.
func (s *recvSet) replace(now mihf.Time, x Rate) {
	s.rate[0], s.at[0], s.n = x, now, 1
}

// update adds x and deletes what is older than two round-trips.
func (s *recvSet) update(now mihf.Time, x Rate, rtt time.Duration) {
	kept := 0
	for i := range s.n {
		if now.Sub(s.at[i]) <= 2*rtt {
			s.rate[kept], s.at[kept] = s.rate[i], s.at[i]
			kept++
		}
	}
	if kept == len(s.rate) {
		copy(s.rate[:], s.rate[1:])
		copy(s.at[:], s.at[1:])
		kept--
	}
	s.rate[kept], s.at[kept] = x, now
	s.n = kept + 1
}

// maximize keeps the greatest of the values and x, without the initial one.
func (s *recvSet) maximize(now mihf.Time, x Rate) {
	for i := range s.n {
		if s.rate[i] != infinite {
			x = max(x, s.rate[i])
		}
	}
	s.replace(now, x)
}

func (s *recvSet) halve() {
	for i := range s.n {
		s.rate[i] /= 2
	}
}

func (s *recvSet) max() Rate {
	x := Rate(0)
	for i := range s.n {
		x = max(x, s.rate[i])
	}
	return x
}
