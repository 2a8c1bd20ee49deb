package tcp

import "mihf.dev/mihf"

// flight is what the sender knows of a segment that it has sent and that is not acknowledged.
type flight struct {
	sentAt mihf.Time // the last time
	times  int       // that it was sent
	sacked bool      // the receiver has it
	lost   bool      // and waits to be sent again

	// What was known of the delivery when it was sent.
	firstSent, deliveredAt mihf.Time
	delivered              uint64
	limited                bool
}

// board is the table of the segments from una up to high, those that were ever sent. It keeps
// count of the states.
type board struct {
	una, high uint64
	slots     []flight // by number, modulo the length, a power of two
	sacked    int
	lost      int
	resent    int    // that were sent more than once
	top       uint64 // behind the highest that is sacked; 0: none
}

func (b *board) at(seq uint64) *flight { return &b.slots[seq&uint64(len(b.slots)-1)] }

// outstanding counts the segments that are not acknowledged cumulatively.
func (b *board) outstanding() int { return int(b.high - b.una) }

// pipe estimates how many segments are in the network (RFC 6675, SetPipe).
func (b *board) pipe() int { return b.outstanding() - b.sacked - b.lost }

// send notes that a segment goes out, the next new one or one that was sent before.
func (b *board) send(seq uint64, now mihf.Time) *flight {
	if seq == b.high {
		if b.outstanding() == len(b.slots) {
			b.grow()
		}
		*b.at(seq) = flight{}
		b.high++
	}
	f := b.at(seq)
	f.sentAt = now
	f.times++
	if f.times == 2 {
		b.resent++
	}
	if f.lost {
		f.lost = false
		b.lost--
	}
	return f
}

func (b *board) grow() {
	slots := make([]flight, max(64, 2*len(b.slots)))
	for seq := b.una; seq < b.high; seq++ {
		slots[seq&uint64(len(slots)-1)] = *b.at(seq)
	}
	b.slots = slots
}

// drop removes the segment una, which is acknowledged, and returns what was known of it.
func (b *board) drop() flight {
	f := *b.at(b.una)
	if f.sacked {
		b.sacked--
	}
	if f.lost {
		b.lost--
	}
	if f.times > 1 {
		b.resent--
	}
	b.una++
	return f
}

// sack marks a segment as received. It returns nil if that was known.
func (b *board) sack(seq uint64) *flight {
	f := b.at(seq)
	if f.sacked {
		return nil
	}
	f.sacked = true
	b.sacked++
	if f.lost {
		f.lost = false
		b.lost--
	}
	b.top = max(b.top, seq+1)
	return f
}

// lose marks a segment to be sent again.
func (b *board) lose(seq uint64) {
	if f := b.at(seq); !f.lost && !f.sacked {
		f.lost = true
		b.lost++
	}
}

// loseAll marks all that the receiver hasn't reported.
func (b *board) loseAll() {
	for seq := b.una; seq < b.high; seq++ {
		b.lose(seq)
	}
}

// firstLost returns the first segment that waits to be sent again.
func (b *board) firstLost() (seq uint64, ok bool) {
	if b.lost == 0 {
		return 0, false
	}
	for seq = b.una; ; seq++ {
		if b.at(seq).lost {
			return seq, true
		}
	}
}
