package dccp

// Seq is a sequence or acknowledgement number of 48 bits (RFC 4340, section 7). All
// arithmetic and all comparisons are circular.
type Seq uint64

const seqMask = 1<<48 - 1

// Add returns the number n after s, or before it where n is negative.
func (s Seq) Add(n int64) Seq { return (s + Seq(n)) & seqMask }

// Sub returns how far s is after t, from -2^47 to 2^47-1.
func (s Seq) Sub(t Seq) int64 { return int64((s-t)<<16) >> 16 }

// Before reports whether s comes before t.
func (s Seq) Before(t Seq) bool { return s.Sub(t) < 0 }

// In reports whether s lies between low and high, both included.
func (s Seq) In(low, high Seq) bool { return (s-low)&seqMask <= (high-low)&seqMask }

// later returns the later of two numbers.
func later(s, t Seq) Seq {
	if s.Before(t) {
		return t
	}
	return s
}

// extend completes a number of 24 bits to the one that is nearest to ref (RFC 4340,
// section 7.6).
func extend(low Seq, ref Seq) Seq {
	const half, wrap = 1 << 23, 1 << 24
	d := (low - ref) & (wrap - 1)
	if d <= half {
		return ref.Add(int64(d))
	}
	return ref.Add(int64(d) - wrap)
}
