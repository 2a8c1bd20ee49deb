package tcp

import (
	"time"

	"mihf.dev/mihf"
)

// rack recovers by time (RFC 8985): a segment is lost when one that was sent later has arrived for
// longer than reordering explains. A probe of the tail finds losses that nothing follows. In a
// recovery the window goes down in proportion to what is delivered (RFC 6937).
type rack struct {
	fast     bool
	timedOut bool
	point    uint64 // where the recovery, or the time after a timeout, ends
	before   int    // segments in flight when the last was acknowledged, or the first out of order

	// Section 6. Names in comments are the RFC's.
	xmit       mihf.Time // RACK.xmit_ts and RACK.end_seq: of the newest that was delivered
	end        uint64
	rtt        time.Duration // RACK.rtt
	minRTT     time.Duration
	fack       uint64 // behind the highest that was delivered
	reordering bool   // was seen
	steps      int    // RACK.reo_wnd_mult, of a quarter of the least RTT; 0: 1
	persist    int    // recoveries for which more steps are kept
	round      uint64 // RACK.dsack_round; 0: none
	due        mihf.Time

	tail tail
	prr  prr
}

// The constants of RFC 8985.
const (
	persistence  = 16                     // 6.2, step 4
	worstDelay   = 200 * time.Millisecond // WCDelAckT, 7.2
	firstTimeout = time.Second            // of a probe before any RTT
)

func (r *rack) recovering() bool { return r.fast }

// inFlight leaves out, after a timeout, what is known to be lost, and never exceeds the window.
func (r *rack) inFlight(s *Sender) int {
	if r.timedOut {
		return s.board.pipe()
	}
	return min(s.board.outstanding(), max(s.allowed(), 1))
}

// delivered is steps 1 to 3: a segment came, whose retransmissions may be ambiguous.
func (r *rack) delivered(now mihf.Time, seq uint64, f *flight, echo mihf.Time) {
	rtt := now.Sub(f.sentAt)
	if f.times == 1 && (r.minRTT == 0 || rtt < r.minRTT) {
		r.minRTT = rtt
	}
	if f.times > 1 && (echo < f.sentAt || rtt < r.minRTT) {
		return // it is an earlier transmission that came
	}
	if seq+1 < r.fack && f.times == 1 {
		r.reordering = true
	}
	r.fack = max(r.fack, seq+1)
	r.rtt = rtt
	if sentAfter(f.sentAt, seq+1, r.xmit, r.end) {
		r.xmit, r.end = f.sentAt, seq+1
	}
}

// sentAfter is RACK_sent_after.
func sentAfter(at mihf.Time, seq uint64, than mihf.Time, thanSeq uint64) bool {
	return at > than || (at == than && seq > thanSeq)
}

func (r *rack) acked(s *Sender, e Event, fresh int, _ bool) {
	if e.Acked > 0 || s.board.sacked == fresh {
		r.before = e.InFlight
	}
	ended := false
	if (r.fast || r.timedOut) && s.board.una >= r.point {
		if r.fast {
			s.control.Recovered(e.Now, 0)
		}
		r.fast, r.timedOut, ended = false, false, true
	}
	r.adapt(s, ended)
	r.judgeProbe(s, e.Now)
	r.detect(s, e.Now)
	switch {
	case r.fast:
		r.prr.delivered(s, fresh)
	case e.Acked > 0 && !ended:
		s.control.Acked(e)
	}
	if e.Acked > 0 || s.board.sacked > 0 {
		r.schedule(s, e.Now)
	}
}

// adapt widens the time that reordering is given when a segment proves to have been sent again for
// nothing, at most once a round trip, and forgets that after some recoveries (6.2, step 4).
func (r *rack) adapt(s *Sender, ended bool) {
	if r.round > 0 && s.board.una >= r.round {
		r.round = 0
	}
	switch {
	case r.round == 0 && s.dsack:
		r.round = s.board.high
		r.steps = max(r.steps, 1) + 1
		r.persist = persistence
	case ended:
		if r.persist--; r.persist <= 0 {
			r.steps = 1
		}
	}
}

// patience is RACK.reo_wnd.
func (r *rack) patience(s *Sender) time.Duration {
	if !r.reordering && (r.fast || r.timedOut || s.board.sacked >= duplicateThreshold) {
		return 0
	}
	d := time.Duration(max(r.steps, 1)) * r.minRTT / 4
	if s.rto.srtt > 0 {
		d = min(d, s.rto.srtt)
	}
	return d
}

// detect is step 5: it marks losses, begins a recovery if there are any, and sets the timer for
// those that are not certain yet.
func (r *rack) detect(s *Sender, now mihf.Time) {
	r.due = 0
	b := &s.board
	if b.sacked == 0 && b.resent == 0 && !r.reordering {
		return // all that is outstanding was sent after what was delivered
	}
	patience, found := r.patience(s), false
	for seq := b.una; seq < b.high; seq++ {
		f := b.at(seq)
		if f.sacked || f.lost || !sentAfter(r.xmit, r.end, f.sentAt, seq+1) {
			continue
		}
		if at := f.sentAt.Add(r.rtt + patience); at > now {
			r.due = max(r.due, at)
			continue
		}
		b.lose(seq)
		found = true
	}
	if found && !r.fast && !r.timedOut {
		r.begin(s, now)
	}
}

func (r *rack) begin(s *Sender, now mihf.Time) {
	r.fast, r.point = true, s.board.high
	r.tail.at = 0
	s.stats.Recoveries++
	flight := max(r.before, 1)
	s.control.Congestion(now, flight)
	r.prr = prr{flight: flight, allowance: s.board.pipe() + 1}
}

func (r *rack) next() mihf.Time { return mihf.Sooner(r.due, r.tail.at) }

func (r *rack) advance(s *Sender, now mihf.Time) {
	if r.due.Due(now) {
		r.detect(s, now)
	}
	if r.tail.at.Due(now) {
		r.tail.at = 0
		r.tail.now = r.tail.end == 0 && !r.fast && s.board.outstanding() > 0
	}
}

func (r *rack) pick(s *Sender, now mihf.Time) (uint64, bool) {
	if r.tail.now {
		return r.tail.send(s, now), true
	}
	allowed := s.allowed()
	if r.fast && !s.paced() {
		allowed = r.prr.allowance
	}
	if s.board.pipe() >= allowed {
		return 0, false
	}
	if seq, lost := s.board.firstLost(); lost {
		return seq, true
	}
	if s.hasNew() {
		s.next = s.board.high + 1
		return s.board.high, true
	}
	return 0, false
}

func (r *rack) sent(s *Sender, now mihf.Time, f *flight) {
	if r.fast {
		r.prr.out++
	} else if f.times == 1 {
		r.schedule(s, now)
	}
}

// timeout marks the first segment and those for which the time is over (6.3).
func (r *rack) timeout(s *Sender, now mihf.Time) {
	r.fast, r.timedOut, r.point = false, true, s.board.high
	r.tail, r.due = tail{}, 0
	patience := r.patience(s)
	for seq := s.board.una; seq < s.board.high; seq++ {
		if seq == s.board.una || s.board.at(seq).sentAt.Add(r.rtt+patience) <= now {
			s.board.lose(seq)
		}
	}
}

// prr is Proportional Rate Reduction with its slow-start bound (RFC 6937, section 3).
type prr struct {
	flight    int // RecoverFS: when the recovery began
	got, out  int // delivered and sent since
	allowance int // of segments in the network
}

func (p *prr) delivered(s *Sender, fresh int) {
	p.got += fresh
	pipe, threshold := s.board.pipe(), int(s.control.Window())
	var more int
	if pipe > threshold {
		more = (p.got*threshold+p.flight-1)/p.flight - p.out
	} else {
		more = min(threshold-pipe, max(p.got-p.out, fresh)+1)
	}
	if p.out == 0 {
		more = max(more, 1) // the fast retransmission
	}
	p.allowance = pipe + max(more, 0)
}
