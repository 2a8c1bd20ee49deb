package tfrc

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

// Feedback takes a report (RFC 5348, section 4.3). One that is older than another that
// came before it, or names a packet that was not sent, is ignored.
func (s *Sender) Feedback(now mihf.Time, r *Report) {
	if r.Seq < s.lastAck || r.Seq > s.sent.last.seq || s.timer == 0 || !(r.LossRate >= 0 && r.ReceiveRate >= 0) {
		return
	}
	if s.ignores(r) {
		return
	}
	packet, known := s.sent.find(r.Seq)
	at := packet.at
	if !r.SentAt.IsZero() {
		at = r.SentAt
	}
	if at.IsZero() && s.rtt == 0 {
		return // nothing to begin with
	}
	c := change{packets: r.Seq - s.lastAck, lossRate: s.lossRate}
	s.lastAck = r.Seq
	s.sent.acked(r.Seq)
	old := s.spacing()
	first := s.rtt == 0
	if !at.IsZero() {
		s.sample(now, at, r.Delay)
	}
	if known {
		s.answerCounter(now, packet.counter)
	}
	c.limited = s.limits.report(now, at, s.rtt)
	c.worse = s.losses(r)
	if first {
		// The first round-trip time: this replaces step 4 (section 4.2).
		s.doubled = now
		s.xRecv.replace(now, infinite)
		s.setRate(s.initialRate())
	} else {
		c.sent = at
		s.adapt(now, r, c)
	}
	s.repace(now, old)
	s.setTimer(now)
}

// sample takes a round-trip time (steps 1 and 2) from the time at which the packet was
// sent. A delay that cannot be true gives no sample, but for the first.
func (s *Sender) sample(now, sent mihf.Time, delay time.Duration) {
	sample := now.Sub(sent) - delay
	if sample <= 0 {
		if s.rtt > 0 {
			return
		}
		sample = now.Sub(sent)
	}
	sample = min(max(sample, minRTT), maxRTT)
	q := s.cfg.RTTWeight
	s.sampled = sample
	if f := &s.thawing; f.base == 0 || sample < f.base {
		f.base = sample
	}
	if s.rtt == 0 || s.thawing.fresh {
		s.rtt = sample
		s.thawing.fresh = false
	} else {
		s.rtt = mul(s.rtt, q) + mul(sample, 1-q)
	}
	if s.rttRoot == 0 {
		s.rttRoot = root(sample)
	} else {
		s.rttRoot = float64(q*s.rttRoot) + (1-q)*root(sample)
	}
}

// answerCounter makes what is sent from now on at least four quarters later than the
// packet that was acknowledged (RFC 4342, section 8.1).
func (s *Sender) answerCounter(now mihf.Time, acked int64) {
	if s.cfg.Variant == CCID3 && s.counter < acked+roundTrip {
		s.counter, s.turned = acked+roundTrip, now
	}
}

// losses takes p and the newest loss event and reports whether either is worse than in
// the last report.
func (s *Sender) losses(r *Report) bool {
	event := r.Intervals.EventSeq(r.Seq)
	newer := event > s.event && s.event > 0
	if newer && s.thawing.state == Probing {
		s.seed = seed{} // the receiver begins anew as well
	}
	p := r.LossRate
	if s.seed.length > 0 {
		seeded, counts := s.seed.lossRate(r)
		if p = seeded; !counts {
			s.seed = seed{}
		}
	}
	p = min(p, 1)
	worse := p > s.lossRate || newer
	if event > s.event {
		s.event = event
		s.size.next()
	}
	s.lossRate = p
	return worse
}

// update is step 4: the allowed rate.
func (s *Sender) update(now mihf.Time, received Rate, limited, worse bool) {
	var limit Rate
	switch {
	case received == 0: // the first report: not measured yet
		limit = 2 * s.xRecv.max()
	case limited && worse:
		s.xRecv.halve()
		s.xRecv.maximize(now, received*0.85)
		limit = s.xRecv.max()
	case limited:
		s.xRecv.maximize(now, received)
		limit = 2 * s.xRecv.max()
	default:
		s.xRecv.update(now, received, s.rtt)
		limit = 2 * s.xRecv.max()
	}
	s.noteBest(received, worse)
	s.reckon(now, s.restart(limit))
}

// reckon sets the rate from p and the limit by what was received.
func (s *Sender) reckon(now mihf.Time, limit Rate) {
	switch {
	case s.lossRate > 0:
		s.setRate(max(min(s.equation(), limit), s.minRate()))
	case now.Sub(s.doubled) >= s.rtt: // initial slow-start
		s.setRate(max(min(2*s.x, limit), s.initialRate()))
		s.doubled = now
	default:
		s.setRate(s.x)
	}
}

// equation is X_Bps.
func (s *Sender) equation() Rate { return Throughput(s.segment(), s.rtt, s.lossRate) }

// noteBest remembers the greatest rate received since a loss.
func (s *Sender) noteBest(received Rate, worse bool) {
	if worse {
		s.best /= 2
	}
	s.best = max(s.best, received)
}

// restart raises the limit to four times what was received, but not above the best, where
// faster restart is on.
func (s *Sender) restart(limit Rate) Rate {
	if !s.cfg.FasterRestart || math.IsInf(float64(limit), 1) {
		return limit
	}
	return max(limit, min(2*limit, s.best))
}

// timeout is how long to wait for a report: RTO of step 3.
func (s *Sender) timeout() time.Duration {
	return max(4*s.rtt, 2*interval(s.segment(), s.x))
}

func (s *Sender) setTimer(now mihf.Time) {
	s.timer = now.Add(s.timeout())
	s.idle = true
}

// expire is the nofeedback timer (RFC 5348, section 4.4). It ends Restoring and Probing.
func (s *Sender) expire(now mihf.Time) {
	s.settle()
	old := s.spacing()
	if s.rtt == 0 {
		if !s.idle {
			s.setRate(max(s.x/2, s.minRate()))
		}
		s.repace(now, old)
		s.timer = now.Add(max(firstTimeout, 2*interval(s.segment(), s.x)))
		s.idle = true
		return
	}
	received, restart := s.xRecv.max(), s.initialRate()
	switch p := s.lossRate; {
	case s.idle && ((p > 0 && received < restart) || (p == 0 && s.x < 2*restart)):
	case p == 0:
		s.setRate(max(s.x/2, s.minRate()))
	case s.equation() > 2*received:
		s.limitTo(now, received)
	default:
		s.limitTo(now, s.equation()/2)
	}
	s.repace(now, old)
	s.setTimer(now)
}

// limitTo is Update_Limits of section 4.4.
func (s *Sender) limitTo(now mihf.Time, limit Rate) {
	limit = max(limit, s.minRate())
	s.xRecv.replace(now, limit/2)
	s.reckon(now, limit)
}
