package tcpadjust

import (
	"time"

	"mihf.dev/mihf"
)

// Conn follows one connection through a change of path. The zero value has seen none.
type Conn struct {
	watch    bool
	until    mihf.Time // a raise is watched until here
	before   State     // what it was raised from
	target   target
	carried  uint64 // bytes delivered when the raise began
	lost     uint64 // segments lost then
	validate bool   // it came from history
	stats    Stats
}

// Stats counts plans.
type Stats struct{ Raised, Lowered, Kept, Refused, Undone uint64 }

// Progress is what a connection has counted since it began.
type Progress struct {
	DeliveredBytes uint64 // acknowledged
	LostSegments   uint64
}

// Adjust plans for the new path. A change during a raise ends it.
func (c *Conn) Adjust(now mihf.Time, s State, p Path, at Progress) Plan {
	c.watch = false
	t, why := judge(now, &s, &p)
	if why != "" {
		c.stats.Refused++
		return Plan{Why: why}
	}
	if s.Role == Receiver {
		return c.advertise(&s, t)
	}
	near := float64(t.segments) * same
	switch diff := float64(s.CwndSegments - t.segments); {
	case diff > near:
		c.stats.Lowered++
		return Plan{Direction: Lower, CwndSegments: t.segments, Ssthresh: t.segments, ClampSegment: headroom * t.segments}
	case diff < -near:
		return c.raise(now, s, t, at)
	}
	c.stats.Kept++
	return Plan{Direction: Keep, CwndSegments: s.CwndSegments, Ssthresh: max(s.Ssthresh, t.segments), ClampSegment: bound(t)}
}

// bound is what the window may grow to. What only lowers, and may be too low, sets none.
func bound(t target) int {
	if !t.source.MayRaise() {
		return 0
	}
	return headroom * t.segments
}

func (c *Conn) raise(now mihf.Time, s State, t target, at Progress) Plan {
	if !t.source.MayRaise() {
		c.stats.Refused++
		return Plan{Why: "a " + t.source.String() + " class may lower a window, and not raise it"}
	}
	c.validate = t.source == mihf.SourceHistory
	if c.validate {
		if t.segments /= 2; t.segments <= s.CwndSegments { // RFC 9959: at most half of what was saved
			c.stats.Kept++
			return Plan{Direction: Keep, CwndSegments: s.CwndSegments, Ssthresh: max(s.Ssthresh, t.segments)}
		}
		t.bps /= 2
	}
	c.stats.Raised++
	c.watch, c.until, c.before, c.target = true, now.Add(4*t.rtt), s, t
	c.carried, c.lost = at.DeliveredBytes, at.LostSegments
	p := Plan{
		Direction: Raise, CwndSegments: t.segments, Ssthresh: t.segments,
		PacingBPS: paced * t.bps, PacedFor: 2 * t.rtt,
	}
	if !c.validate { // beyond half of what was saved the connection finds its own way
		p.ClampSegment = bound(t)
	}
	return p
}

func (c *Conn) advertise(s *State, t target) Plan {
	if !t.source.MayRaise() || t.source == mihf.SourceHistory {
		// A bound that may be too low would hold the connection back for good.
		c.stats.Refused++
		return Plan{Why: "what " + t.source.String() + " tells is no bound for what a sender may send"}
	}
	c.stats.Kept++
	return Plan{Direction: Keep, AdvertiseBytes: headroom * t.segments * s.SegmentBytes}
}

// Observe follows a raise: it returns a plan where it has to be taken back, because a
// packet of it was lost (RFC 4782, 4.6.2). The window is then half of what the path has
// carried in a round trip, and at least what it was.
func (c *Conn) Observe(now mihf.Time, at Progress) (Plan, bool) {
	if !c.watch {
		return Plan{}, false
	}
	if at.LostSegments <= c.lost {
		c.watch = !c.until.Due(now)
		return Plan{}, false
	}
	c.watch = false
	c.stats.Undone++
	elapsed := now.Sub(c.until.Add(-4 * c.target.rtt))
	delivered := int(at.DeliveredBytes-c.carried) / max(1, c.before.SegmentBytes)
	if trips := float64(elapsed) / float64(c.target.rtt); trips > 1 {
		delivered = int(float64(delivered) / trips)
	}
	w := max(least, min(delivered/2, c.target.segments/2))
	w = max(w, min(c.before.CwndSegments, c.target.segments/2))
	return Plan{Direction: Lower, CwndSegments: w, Ssthresh: w}, true
}

// Next returns when the watch over a raise ends; zero: there is none.
func (c *Conn) Next() mihf.Time {
	if !c.watch {
		return 0
	}
	return c.until
}

// Advance ends a watch that is over.
func (c *Conn) Advance(now mihf.Time) {
	if c.until.Due(now) {
		c.watch = false
	}
}

// Stats returns what was counted.
func (c *Conn) Stats() Stats { return c.stats }

// FreezeInTime reports whether a Freeze of a connection that receives can still work: its
// acknowledgement must be at the sender before the last packet that gets through leaves
// there. A later one does harm: the sender takes what is lost as congestion while its
// window is closed.
func FreezeInTime(lead, rttWithQueue, oneWay time.Duration) bool {
	const margin = 10 * time.Millisecond
	return lead >= rttWithQueue+oneWay+margin
}
