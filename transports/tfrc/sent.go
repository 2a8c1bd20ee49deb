package tfrc

import "mihf.dev/mihf"

// sentPacket is what the sender remembers of a packet.
type sentPacket struct {
	seq     uint64
	at      mihf.Time
	counter int64 // unwrapped window counter
}

// sentLog tells when packets were sent. It remembers every packet while there are few; of
// more it remembers one in so many, and reads the times between from its neighbours.
type sentLog struct {
	list   [128]sentPacket // ascending; list[0] is the newest acknowledged, if any is
	n      int
	last   sentPacket // the newest sent
	stride uint64     // one packet in so many is remembered, less one
	skip   uint64     // packets until the next that is remembered
}

func (l *sentLog) add(p sentPacket) {
	l.last = p
	if l.skip > 0 {
		l.skip--
		return
	}
	if l.n == len(l.list) {
		l.thin()
	}
	l.list[l.n] = p
	l.n++
	l.skip = l.stride
}

// thin forgets every second packet.
func (l *sentLog) thin() {
	for i := range l.n / 2 {
		l.list[i] = l.list[2*i]
	}
	l.n /= 2
	l.stride = 2*l.stride + 1
}

// find returns the packet seq. Its time is between those of its neighbours, in proportion.
func (l *sentLog) find(seq uint64) (sentPacket, bool) {
	if l.n == 0 || seq < l.list[0].seq || seq > l.last.seq {
		return sentPacket{}, false
	}
	lo, hi := 0, l.n // list[lo].seq <= seq < list[hi].seq
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if l.list[mid].seq <= seq {
			lo = mid
		} else {
			hi = mid
		}
	}
	found, next := l.list[lo], l.last
	if hi < l.n {
		next = l.list[hi]
	}
	if found.seq != seq && next.seq > found.seq {
		part := float64(seq-found.seq) / float64(next.seq-found.seq)
		found.at = found.at.Add(mul(next.at.Sub(found.at), part))
		found.seq = seq
	}
	return found, true
}

// acked forgets what is older than seq; the newest packet not above it stays.
func (l *sentLog) acked(seq uint64) {
	drop := 0
	for drop+1 < l.n && l.list[drop+1].seq <= seq {
		drop++
	}
	if drop > 0 {
		copy(l.list[:], l.list[drop:l.n])
		l.n -= drop
	}
	if l.n < len(l.list)/8 { // room again: remember more of them
		l.stride /= 2
		l.skip = min(l.skip, l.stride)
	}
}
