package dccp

import (
	"time"

	"mihf.dev/mihf"
)

// backoff is a timer that doubles. Its zero value is off.
type backoff struct {
	at    mihf.Time
	every time.Duration
}

// arm starts the timer with the first interval, unless it runs.
func (b *backoff) arm(now mihf.Time, first time.Duration) {
	if b.at.IsZero() {
		b.every = first
		b.at = now.Add(first)
	}
}

// fire reports whether the timer is due, and starts it again with twice the interval, up
// to 64 s.
func (b *backoff) fire(now mihf.Time) bool {
	if !b.at.Due(now) {
		return false
	}
	b.every = min(2*b.every, backoffMost)
	b.at = now.Add(b.every)
	return true
}

// limiter lets rate events a second pass, as many at once.
type limiter struct {
	rate  int
	since mihf.Time
	n     int
}

func (l *limiter) allow(now mihf.Time) bool {
	if l.since.IsZero() || now.Sub(l.since) >= time.Second {
		l.since, l.n = now, 0
	}
	l.n++
	return l.n <= l.rate
}

// timing measures the round-trip time outside of the congestion controls, and answers
// the peer's timestamps (RFC 4340, section 13).
type timing struct {
	rtt time.Duration // smoothed; 0: not known

	owed    bool // a Timestamp waits for its echo
	owedSeq Seq
	owedAt  mihf.Time
	stamp   uint32

	asked   mihf.Time // when a Timestamp was sent last
	sampled mihf.Time // when the RTT was measured last
}

// stampEvery is how often an end that has no other measure puts a Timestamp on its Acks.
const stampEvery = time.Second

// sample takes a measurement.
func (t *timing) sample(now mihf.Time, rtt time.Duration) {
	rtt = max(rtt, time.Microsecond)
	t.sampled = now
	if t.rtt == 0 {
		t.rtt = rtt
		return
	}
	t.rtt += (rtt - t.rtt) / 8
}

// owe notes the Timestamp of the packet with the greatest number.
func (t *timing) owe(now mihf.Time, seq Seq, stamp uint32) {
	if t.owed && seq.Before(t.owedSeq) {
		return
	}
	t.owed, t.owedSeq, t.owedAt, t.stamp = true, seq, now, stamp
}

// stampOf is the time as a Timestamp has it.
func stampOf(now mihf.Time) uint32 { return uint32(time.Duration(now) / hundredths) }

// echoed takes the echo of a Timestamp of ours.
func (t *timing) echoed(now mihf.Time, stamp uint32, held time.Duration) {
	d := time.Duration(stampOf(now)-stamp) * hundredths
	// Not one of ours, or older than anything that is awaited.
	if t.asked.IsZero() || d > time.Minute || held > d {
		return
	}
	t.sample(now, d-held)
}

// wants reports whether an Ack is to carry a Timestamp.
func (t *timing) wants(now mihf.Time) bool {
	return now.Sub(t.sampled) >= stampEvery && now.Sub(t.asked) >= stampEvery
}

// Next returns when [Conn.Advance] and then [Conn.Poll] are to be called; zero: when
// something arrives or is to be sent.
func (c *Conn) Next() mihf.Time {
	if c.state == StateClosed {
		return 0
	}
	next := mihf.Sooner(c.deadline, c.back.at)
	if c.state == StateTimeWait {
		return next
	}
	if c.state >= StateOpen { // before, Changes are repeated with the handshake
		next = mihf.Sooner(next, c.featBack.at)
	}
	next = mihf.Sooner(next, c.readyAt)
	next = mihf.Sooner(next, c.freeze.next())
	next = mihf.Sooner(next, c.keepaliveAt())
	if c.tx != nil {
		next = mihf.Sooner(next, c.tx.next())
	}
	if c.rx != nil {
		next = mihf.Sooner(next, c.rx.next())
	}
	return next
}

// Advance does what is due.
func (c *Conn) Advance(now mihf.Time) {
	if c.deadline.Due(now) {
		c.deadline = 0
		c.giveUp(now)
	}
	switch c.state {
	case StateClosed, StateTimeWait:
		return
	case StateRequest:
		if c.back.fire(now) {
			c.repeatDue = true // another Request
		}
	case StatePartOpen:
		if c.back.fire(now) {
			c.ackDue = true
			c.feat.resend()
		}
	case StateCloseReq, StateClosing:
		if c.back.fire(now) {
			c.repeatDue = true
		}
	default:
	}
	if c.state >= StateOpen && c.featBack.fire(now) && c.feat.resend() {
		c.ackDue = true
	}
	c.advanceFreeze(now)
	c.advanceKeepalive(now)
	if c.tx != nil {
		c.tx.advance(now)
	}
	if c.rx != nil && c.rx.advance(now) {
		c.ackDue = true
	}
}

// giveUp ends a state that lasted too long.
func (c *Conn) giveUp(now mihf.Time) {
	switch c.state {
	case StateTimeWait:
		c.state = StateClosed
	case StateRequest, StateRespond, StatePartOpen:
		c.endWith(now, ResetAborted, [3]byte{}, ErrTimeout)
	case StateCloseReq, StateClosing:
		c.endWith(now, ResetAborted, [3]byte{}, c.err)
	default:
	}
}

// keepaliveAt returns when the silence is to be broken, or was too long.
func (c *Conn) keepaliveAt() mihf.Time {
	switch {
	case c.state != StateOpen || c.cfg.Keepalive < 0 || c.freeze.frozen():
		return 0
	case c.probe.at.IsZero():
		return c.heard.Add(c.cfg.Keepalive)
	default:
		return mihf.Sooner(c.probe.at, c.heard.Add(2*c.cfg.Keepalive))
	}
}

// advanceKeepalive asks a silent peer whether it is there: a Sync has to be answered. A
// peer that is silent for twice the time is given up.
func (c *Conn) advanceKeepalive(now mihf.Time) {
	if !c.keepaliveAt().Due(now) {
		return
	}
	if now.Sub(c.heard) >= 2*c.cfg.Keepalive {
		c.endWith(now, ResetAborted, [3]byte{}, ErrTimeout)
		return
	}
	if c.probe.at.IsZero() {
		c.probe.arm(now, max(c.cfg.Keepalive/16, c.rtt()))
	} else {
		c.probe.fire(now)
	}
	c.reply(TypeSync, c.gsr)
}
