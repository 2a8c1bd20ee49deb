package tcp

import "mihf.dev/mihf"

// tail is the tail loss probe (RFC 8985, section 7).
type tail struct {
	at     mihf.Time // when a probe is due; zero: none is
	now    bool      // it is sent next
	end    uint64    // TLP.end_seq: behind what was sent with the probe; 0: none is out
	resent bool      // TLP.is_retrans
}

// schedule sets the time of a probe while nothing is known to be lost or out of order (7.2).
func (r *rack) schedule(s *Sender, now mihf.Time) {
	r.tail.at = 0
	if r.fast || r.timedOut || r.tail.end > 0 || s.board.sacked > 0 || s.board.outstanding() == 0 {
		return
	}
	d := firstTimeout
	if s.rto.srtt > 0 {
		d = 2 * s.rto.srtt
		if s.board.outstanding() == 1 {
			d += worstDelay
		}
	}
	r.tail.at = now.Add(d)
	if !s.expires.IsZero() {
		r.tail.at = min(r.tail.at, s.expires)
	}
}

// send chooses the probe: new data if there is some, else the highest that was sent (7.3).
func (t *tail) send(s *Sender, now mihf.Time) uint64 {
	t.now = false
	s.stats.TailProbes++
	s.expires = now.Add(s.rto.timeout())
	if s.hasNew() {
		t.resent, t.end = false, s.board.high+1
		s.next = t.end
		return s.board.high
	}
	t.resent, t.end = true, s.board.high
	return s.board.high - 1
}

// judgeProbe finds out whether a probe that was a retransmission has repaired a loss: nobody said
// that it came twice. Then the loss has to be answered (7.4).
func (r *rack) judgeProbe(s *Sender, now mihf.Time) {
	t := &r.tail
	if t.end == 0 || s.board.una < t.end {
		return
	}
	switch {
	case !t.resent, s.dsack:
		t.end = 0
	case s.board.una > t.end:
		t.end = 0
		if !r.fast && !r.timedOut {
			s.control.Congestion(now, max(r.before, 1))
			s.control.Recovered(now, 0)
		}
	}
}
