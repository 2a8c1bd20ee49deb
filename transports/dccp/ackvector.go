package dccp

// Ack Vector states (RFC 4340, section 11.4).
const (
	stateReceived    = 0
	stateMarked      = 1
	stateReserved    = 2
	stateNotReceived = 3
)

// Bounds of an ackVector.
const (
	maxRuns    = 2 * maxOptionData // what two options hold
	maxRun     = 64                // packets in a run
	maxDrops   = 32
	firstNotes = 16
	maxNotes   = 2048
)

// ackVector is what a receiver knows of the packets that arrived: their states in runs,
// back to those that the sender is known to have been told of (section 11.4, appendix A).
// Where that would be too much, the oldest is forgotten; the sender then takes it as lost.
type ackVector struct {
	runs    []byte // the option's bytes, newest last
	started bool
	newest  Seq
	low     Seq // oldest that is covered; after newest where none is

	data Seq // newest with data

	most  int    // runs; 0: maxRuns
	notes []note // ring of what was told, by the number of the packet that told it
	drops []drop // whose data was dropped, in order of arrival

	forgotten uint64 // runs that did not fit
}

// note remembers that our packet at told of everything up to told.
type note struct{ at, told Seq }

// drop remembers a packet whose data did not reach the application.
type drop struct {
	seq  Seq
	code DropCode
}

// DropCode says why the data of a packet did not reach the application (section 11.7).
type DropCode uint8

// Drop codes.
const (
	DropProtocol         DropCode = 0
	DropNotListening     DropCode = 1
	DropReceiveBuffer    DropCode = 2
	DropCorrupt          DropCode = 3
	DropDeliveredCorrupt DropCode = 7
)

func (v *ackVector) empty() bool { return len(v.runs) == 0 }

// add notes that packet seq arrived.
func (v *ackVector) add(seq Seq) {
	if !v.started {
		v.started, v.newest, v.low, v.data = true, seq.Add(-1), seq, seq.Add(-1)
	}
	gap := seq.Sub(v.newest)
	switch {
	case gap == 1 && !v.empty() && v.runs[len(v.runs)-1] < maxRun-1: // state 0 and room
		v.runs[len(v.runs)-1]++
	case gap > maxRun*maxRuns:
		v.forgotten += uint64(len(v.runs))
		v.runs, v.low = append(v.runs[:0], 0), seq
	case gap > 0:
		for missing := gap - 1; missing > 0; missing -= maxRun {
			v.runs = append(v.runs, stateNotReceived<<6|byte(min(missing, maxRun)-1))
		}
		v.runs = append(v.runs, 0)
	default:
		v.fill(seq)
		return
	}
	v.newest = seq
	v.bound()
}

// pass notes that packet seq arrived where no vector is sent: only dropped data counts.
func (v *ackVector) pass(seq Seq) {
	if !v.started || v.newest.Before(seq) {
		v.started, v.newest, v.low, v.data = true, seq, seq.Add(1), seq
	}
}

// fill notes a packet that came after later ones.
func (v *ackVector) fill(seq Seq) {
	if seq.Before(v.low) {
		return
	}
	high := v.newest
	for i := len(v.runs) - 1; i >= 0; i-- {
		n := int64(v.runs[i]&63) + 1
		if below := high.Add(-n); !below.Before(seq) {
			high = below
			continue
		}
		if v.runs[i]>>6 != stateNotReceived {
			return
		}
		after, before := high.Sub(seq), n-1-high.Sub(seq)
		var parts []byte
		var room [3]byte
		parts = room[:0]
		if before > 0 {
			parts = append(parts, stateNotReceived<<6|byte(before-1))
		}
		parts = append(parts, 0)
		if after > 0 {
			parts = append(parts, stateNotReceived<<6|byte(after-1))
		}
		v.runs = append(v.runs, parts[1:]...) // makes room; the bytes are moved into place
		copy(v.runs[i+len(parts):], v.runs[i+1:len(v.runs)-len(parts)+1])
		copy(v.runs[i:], parts)
		v.bound()
		return
	}
}

// bound forgets the oldest runs of too many.
func (v *ackVector) bound() {
	most := maxRuns
	if v.most > 0 {
		most = v.most
	}
	if over := len(v.runs) - most; over > 0 {
		for _, r := range v.runs[:over] {
			v.low = v.low.Add(int64(r&63) + 1)
		}
		v.runs = append(v.runs[:0], v.runs[over:]...)
		v.forgotten += uint64(over)
	}
}

// dropThrough forgets the packets up to seq.
func (v *ackVector) dropThrough(seq Seq) {
	done := 0
	for done < len(v.runs) {
		n := int64(v.runs[done]&63) + 1
		old := seq.Sub(v.low) + 1 // of this run's packets, those to forget
		if old <= 0 {
			break
		}
		if old < n {
			v.runs[done] -= byte(old)
			v.low = v.low.Add(old)
			break
		}
		v.low = v.low.Add(n)
		done++
	}
	v.runs = append(v.runs[:0], v.runs[done:]...)
	kept := v.drops[:0]
	for _, d := range v.drops {
		if seq.Before(d.seq) {
			kept = append(kept, d)
		}
	}
	v.drops = kept
}

// trim forgets packets without data that nobody has to be told of, and reports whether
// there is something to tell.
func (v *ackVector) trim() bool {
	if v.started && v.data.Before(v.low) {
		v.dropThrough(v.newest)
	}
	return !v.empty()
}

// append appends Ack Vector options for a packet that acknowledges newest. Their ECN
// nonce is 0, as of an endpoint that cannot read ECN (section 12.2).
func (v *ackVector) append(b []byte) []byte {
	for end := len(v.runs); end > 0; {
		n := min(end, maxOptionData)
		b = append(b, optAckVector0, byte(2+n))
		for i := range n {
			b = append(b, v.runs[end-1-i])
		}
		end -= n
	}
	return b
}

// optionBytes is the length of what append appends.
func (v *ackVector) optionBytes() int {
	n := len(v.runs)
	return n + (n+maxOptionData-1)/maxOptionData*2
}

// dropped notes that the data of a packet was dropped.
func (v *ackVector) dropped(seq Seq, code DropCode) {
	if len(v.drops) == maxDrops {
		v.drops = append(v.drops[:0], v.drops[1:]...)
	}
	v.drops = append(v.drops, drop{seq, code})
}

// appendDrops appends a Data Dropped option for a packet that acknowledges ack, where
// there is something to tell (section 11.7). It ends b before the length limit.
func (v *ackVector) appendDrops(b []byte, ack Seq, limit int) []byte {
	if len(v.drops) == 0 {
		return b
	}
	start := len(b)
	limit = min(limit, start+maxOptionData+2)
	b = append(b, optDataDropped, 2)
	for next := ack; ; { // the newest packet without a block
		d, ok := v.newestDrop(next)
		normal := next.Sub(d.seq)
		if !ok || len(b)+int(normal/128)+2 > limit {
			break
		}
		for ; normal > 0; normal -= 128 {
			b = append(b, byte(min(normal, 128)-1))
		}
		b = append(b, 0x80|byte(d.code)<<4)
		next = d.seq.Add(-1)
	}
	if len(b) == start+2 {
		return b[:start]
	}
	b[start+1] = byte(len(b) - start)
	return b
}

// newestDrop returns the newest drop that is not after seq.
func (v *ackVector) newestDrop(seq Seq) (best drop, ok bool) {
	for _, d := range v.drops {
		if !seq.Before(d.seq) && (!ok || best.seq.Before(d.seq)) {
			best, ok = d, true
		}
	}
	return best, ok
}

// told notes that our packet at carried the vector.
func (v *ackVector) told(at Seq) {
	switch n := len(v.notes); {
	case n == 0:
		v.notes = make([]note, firstNotes)
	case n < maxNotes && v.notes[at%Seq(n)] != (note{}) && !v.notes[at%Seq(n)].told.Before(v.low):
		// It would overwrite one that may still be acknowledged.
		old := v.notes
		v.notes = make([]note, 2*n)
		for _, x := range old {
			if x != (note{}) {
				v.notes[x.at%Seq(2*n)] = x
			}
		}
	}
	v.notes[at%Seq(len(v.notes))] = note{at, v.newest}
}

// acked takes the acknowledgement of our packet at: what it told need not be told again.
func (v *ackVector) acked(at Seq) {
	if len(v.notes) == 0 {
		return
	}
	if n := &v.notes[at%Seq(len(v.notes))]; n.at == at && *n != (note{}) {
		v.dropThrough(n.told)
		*n = note{}
	}
}
