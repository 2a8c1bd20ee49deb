package tfrc

import (
	"sort"

	"mihf.dev/mihf"
)

// A hole is a run of missing packets, from up to and not including to.
type hole struct {
	from, to     uint64
	low, high    uint64    // the packets around it as it was found: S_before, S_after
	before, past mihf.Time // when those arrived
	counter      int64     // unwrapped window counter of low
	later        int       // packets received with a higher sequence number
	laterNonData uint32    // of them without data, received or counted by NDP
}

// arrival is the nominal arrival of the lost packet seq (RFC 5348, section 5.2).
func (h *hole) arrival(seq uint64) int64 {
	span := float64(h.past.Sub(h.before))
	return int64(h.before) + int64(span*float64(seq-h.low)/float64(h.high-h.low))
}

// after is the first packet of the hole whose nominal arrival is after t; h.to for none.
func (h *hole) after(t int64) uint64 {
	n := sort.Search(int(h.to-h.from), func(i int) bool { return h.arrival(h.from+uint64(i)) > t })
	return h.from + uint64(n)
}

// lostRange is a run of packets that were taken for lost and may still come.
type lostRange struct{ from, to uint64 }

const (
	// Each pending hole has fewer than dupThreshold packets above it, so there are never
	// more than that many; one more is in the list while it is being split.
	maxPending = dupThreshold + 1
	// maxLost is how many runs of lost packets are remembered.
	maxLost = 32
)

// holes is the reception record: what is missing below the greatest sequence number.
type holes struct {
	pending [maxPending]hole // ascending
	n       int
	lost    [maxLost]lostRange // ring
	lostN   int
}

// passed counts a packet with a sequence number above all of seq's holes below it.
func (h *holes) passed(seq uint64, packets int, nonData uint32) {
	for i := range h.n {
		if p := &h.pending[i]; p.from < seq {
			p.later += packets
			p.laterNonData += nonData
		}
	}
}

func (h *holes) add(p hole) {
	h.pending[h.n] = p
	h.n++
}

// remove takes the packet seq out of the pending hole that it is in and reports whether
// there is one. counter is its window counter, or negative: what is missing behind it
// comes after that. Who calls it has to count the packet by passed afterwards.
func (h *holes) remove(seq uint64, counter int) bool {
	for i := range h.n {
		p := &h.pending[i]
		if seq < p.from || seq >= p.to {
			continue
		}
		if seq > p.from && seq < p.to-1 { // in its middle: split it
			copy(h.pending[i+1:], h.pending[i:h.n])
			h.n++
			h.pending[i].to = seq
			p = &h.pending[i+1]
			p.from = seq
		}
		switch {
		case p.from+1 == p.to:
			copy(h.pending[i:], h.pending[i+1:h.n])
			h.n--
		case seq == p.from:
			p.from++
			if counter >= 0 {
				p.counter += (int64(counter) - p.counter) & (counterValues - 1)
			}
		default:
			p.to--
		}
		return true
	}
	return false
}

// ripe takes out the lowest hole that has become a loss: one with dupThreshold packets
// above it, or any where all is set.
func (h *holes) ripe(all bool) (hole, bool) {
	if h.n == 0 || (!all && h.pending[0].later < dupThreshold) {
		return hole{}, false
	}
	p := h.pending[0]
	copy(h.pending[:], h.pending[1:h.n])
	h.n--
	h.lost[h.lostN%maxLost] = lostRange{p.from, p.to}
	h.lostN++
	return p, true
}

// found takes seq out of the lost packets and reports whether it was one of them. A run
// that it splits needs a second place, which may cost the oldest run its own.
func (h *holes) found(seq uint64) bool {
	for i := range min(h.lostN, maxLost) {
		l := &h.lost[i]
		if seq < l.from || seq >= l.to {
			continue
		}
		upper := lostRange{seq + 1, l.to}
		l.to = seq
		if upper.from == upper.to {
			return true
		}
		if l.from == l.to {
			*l = upper
			return true
		}
		h.lost[h.lostN%maxLost] = upper
		h.lostN++
		return true
	}
	return false
}

// skip is the number of packets, up to and including highest, from the first hole on.
func (h *holes) skip(highest uint64) uint64 {
	if h.n == 0 {
		return 0
	}
	return highest - h.pending[0].from + 1
}
