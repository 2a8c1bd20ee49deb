package access

import "mihf.dev/mihf"

// Shares bounds what all callers hold of something together, and each of them alone, so
// that one cannot take what the others need. What it counts, places or bytes, its owner
// knows. The fields may be set before the first use.
type Shares struct {
	Each, Total int64
	held        map[mihf.Identity]int64
	sum         int64
}

// Room says what there is no room in.
type Room uint8

// What may be full.
const (
	Enough    Room = iota // nothing
	OwnFull               // the caller's share
	TotalFull             // what all hold together
)

// Take takes n if there is room for it. Who holds nothing may take more than a share at
// once, and more than the total while nobody holds anything: one snapshot always passes.
func (s *Shares) Take(who mihf.Identity, n int64) Room {
	had := s.held[who]
	switch {
	case had > 0 && had+n > s.Each:
		return OwnFull
	case s.sum > 0 && s.sum+n > s.Total:
		return TotalFull
	}
	if s.held == nil {
		s.held = map[mihf.Identity]int64{}
	}
	s.held[who] = had + n
	s.sum += n
	return Enough
}

// Give gives back n of what the caller has taken.
func (s *Shares) Give(who mihf.Identity, n int64) {
	if s.held[who] -= n; s.held[who] <= 0 {
		delete(s.held, who)
	}
	s.sum -= n
}

// Held returns what the caller holds.
func (s *Shares) Held(who mihf.Identity) int64 { return s.held[who] }

// Sum returns what all hold together.
func (s *Shares) Sum() int64 { return s.sum }
