package tcp

import "mihf.dev/mihf"

// duplicateThreshold is DupThresh of RFC 6675.
const duplicateThreshold = 3

// scoreboard recovers by selective acknowledgements (RFC 6675). What is lost is marked on the
// board; the window is filled by what is estimated to be in the network.
type scoreboard struct {
	noTimers
	fast       bool
	timedOut   bool   // until all that was outstanding then is acknowledged
	point      uint64 // RecoveryPoint: where the recovery, or the time after a timeout, ends
	scanned    uint64 // below it losses were looked for
	duplicates int
	before     int  // segments in flight when the first duplicate came
	resend     bool // the first retransmission of a recovery leaves whatever the window says
}

func (r *scoreboard) recovering() bool { return r.fast }

// inFlight leaves out, after a timeout, what is known to be lost, and never exceeds the window: beyond
// it is what the receiver has out of order.
func (r *scoreboard) inFlight(s *Sender) int {
	if r.timedOut {
		return s.board.pipe()
	}
	return min(s.board.outstanding(), max(s.allowed(), 1))
}

func (r *scoreboard) acked(s *Sender, e Event, fresh int, _ bool) {
	switch {
	case e.Acked > 0:
		r.duplicates, r.before = 0, e.InFlight
	case fresh > 0:
		r.duplicates++
		if r.duplicates == 1 {
			r.before = e.InFlight
		}
	}
	ended := false
	if (r.fast || r.timedOut) && s.board.una >= r.point {
		if r.fast {
			s.control.Recovered(e.Now, 0)
		}
		r.fast, r.timedOut, ended = false, false, true
	}
	lost := r.detect(s)
	switch {
	case r.fast:
	case lost && !r.timedOut:
		r.fast, r.resend, r.point = true, true, s.board.high
		s.stats.Recoveries++
		s.control.Congestion(e.Now, r.before)
	case e.Acked > 0 && !ended:
		s.control.Acked(e)
	}
}

// detect marks the segments with enough that are reported above them (IsLost, and step 1 of
// section 5), and says whether there are any.
func (r *scoreboard) detect(s *Sender) bool {
	b := &s.board
	if b.sacked == 0 {
		return false
	}
	bound, above := b.top, 0
	for bound > b.una && above < duplicateThreshold {
		bound--
		if b.at(bound).sacked {
			above++
		}
	}
	if above < duplicateThreshold {
		if r.duplicates < duplicateThreshold {
			return false
		}
		bound = b.una + 1
	}
	found := false
	for seq := max(r.scanned, b.una); seq < bound; seq++ {
		if f := b.at(seq); !f.sacked && !f.lost {
			b.lose(seq)
			found = true
		}
	}
	r.scanned = max(r.scanned, bound)
	return found
}

func (r *scoreboard) pick(s *Sender, _ mihf.Time) (uint64, bool) {
	seq, lost := s.board.firstLost()
	if r.resend && lost {
		r.resend = false
		return seq, true
	}
	if s.board.pipe() >= s.allowed() {
		return 0, false
	}
	if lost { // NextSeg, rule 1
		return seq, true
	}
	if s.hasNew() { // rule 2
		s.next = s.board.high + 1
		return s.board.high, true
	}
	return 0, false
}

// timeout marks all that the receiver hasn't reported as lost (section 5.1).
func (r *scoreboard) timeout(s *Sender, _ mihf.Time) {
	*r = scoreboard{timedOut: true, point: s.board.high, scanned: s.board.high}
	s.board.loseAll()
}
