package tcp

import "mihf.dev/mihf"

// newReno recovers by duplicate acknowledgements alone (RFC 6582); the steps are those of its
// section 3.2. The retransmission timer begins anew with each partial acknowledgement, the
// "slow but steady" variant of section 4.
type newReno struct {
	noTimers
	fast       bool
	point      uint64 // behind "recover": what was sent when the last recovery or timeout began
	duplicates int
	before     int // segments in flight when the first duplicate came
	inflation  int // of the window: segments that have left the network
	resend     bool
}

func (r *newReno) recovering() bool { return r.fast }

// inFlight is at most the window: beyond it is what the receiver has out of order.
func (r *newReno) inFlight(s *Sender) int { return min(int(s.next-s.board.una), s.allowed()) }

func (r *newReno) acked(s *Sender, e Event, _ int, duplicate bool) {
	switch {
	case duplicate:
		r.duplicate(s, e)
	case e.Acked == 0:
	case !r.fast:
		r.duplicates, r.inflation = 0, 0
		s.control.Acked(e)
	case s.board.una >= r.point: // step 3, full
		r.fast, r.duplicates, r.inflation = false, 0, 0
		s.control.Recovered(e.Now, float64(max(r.inFlight(s), 1)+1))
	default: // step 3, partial
		r.inflation += 1 - e.Acked
		r.resend = true
	}
}

func (r *newReno) duplicate(s *Sender, e Event) {
	r.duplicates++
	if r.duplicates == 1 {
		r.before = e.InFlight
	}
	switch {
	case r.fast:
		r.inflation++ // RFC 5681, 3.2, step 4
	case r.duplicates < duplicateThreshold:
		r.inflation = r.duplicates // limited transmit, RFC 3042
	case r.duplicates == duplicateThreshold && (r.point == 0 || s.board.una > r.point): // step 2
		s.stats.Recoveries++
		r.fast, r.point = true, s.board.high
		s.control.Congestion(e.Now, r.before)
		r.inflation = duplicateThreshold
		r.resend = true
	}
}

func (r *newReno) pick(s *Sender, _ mihf.Time) (uint64, bool) {
	if r.resend {
		r.resend = false
		return s.board.una, true
	}
	if int(s.next-s.board.una) >= max(s.allowed()+r.inflation, 1) {
		return 0, false
	}
	if s.next == s.board.high && !s.hasNew() {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// timeout goes back to the first segment that is not acknowledged (step 4).
func (r *newReno) timeout(s *Sender, _ mihf.Time) {
	*r = newReno{point: s.board.high}
	s.next = s.board.una
}
