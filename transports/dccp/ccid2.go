package dccp

import (
	"time"

	"mihf.dev/mihf"
)

// Times and limits of CCID 2.
const (
	firstRTO  = time.Second
	minRTO    = 200 * time.Millisecond // more than an Ack is delayed
	maxRTO    = 64 * time.Second
	dupAcks   = 3 // NUMDUPACK
	firstRing = 16
	// latePackets is how far back one that was taken as lost is still looked for.
	latePackets = 256
	maxRing     = 1 << 16 // packets between the oldest without word and the newest
)

// fate is what the sender knows of a packet.
type fate uint8

const (
	fateNone    fate = iota // without data, or not sent yet
	fateFlying              // with data, no word of it
	fateArrived             // of either kind
	fateLost
)

type sentPacket struct {
	at   mihf.Time
	fate fate
}

// sender2 is the sender of CCID 2, TCP-like congestion control (RFC 4341).
type sender2 struct {
	conn *Conn

	// Counted in packets (section 5).
	cwnd, ssthresh, pipe int64
	most                 int64 // cwnd's limit: the Sequence Window

	ring []sentPacket // by sequence number modulo its length
	una  Seq          // oldest without word
	end  Seq          // behind the newest
	high Seq          // greatest that is known to have arrived

	grown    int64 // newly acknowledged since cwnd grew
	full     bool  // the window was used up since the last Ack
	recover  Seq   // losses before it belong to the congestion event that was answered
	timed    Seq   // the next RTT sample is of this packet or a later one
	srtt     time.Duration
	rttvar   time.Duration
	rto      time.Duration
	timer    mihf.Time
	lastData mihf.Time
	holdSlow mihf.Time // Slow Receiver: no growth before

	sinceAck  int64 // packets with data since one acknowledged
	losses    uint64
	doubtful  bool // a packet that is taken as lost may still come
	doubt     Seq  // the oldest such
	frozen    bool
	dropsSeen Seq // Data Dropped was answered up to here

	// Ack Ratio (section 6.1.2).
	ratio     int64
	windowEnd Seq // when this window of data is acknowledged, acksLost is judged
	acksLost  int64
	clean     int64 // windows without a lost Ack
}

func newSender2(now mihf.Time, c *Conn) *sender2 {
	s := &sender2{conn: c, ratio: 2, ssthresh: 1 << 40, rto: firstRTO, most: 1 << 40}
	s.cwnd = s.initial()
	s.una, s.end, s.timed, s.windowEnd = c.gss.Add(1), c.gss.Add(1), c.gss.Add(1), c.gss.Add(1)
	s.recover, s.high, s.dropsSeen = c.gss, c.gss, c.gss
	s.lastData = now
	if rtt := c.timing.rtt; rtt > 0 {
		s.sample(rtt)
	}
	return s
}

// initial is the initial window of RFC 3390.
func (s *sender2) initial() int64 {
	size := int64(max(s.conn.MaxData(), 1))
	return min(4, max(2, 4380/size))
}

func (s *sender2) ready(now mihf.Time, _ int) mihf.Time {
	s.idle(now)
	if s.pipe >= min(s.cwnd, s.most) {
		s.full = true
		return 0
	}
	return now
}

// idle halves cwnd for each RTO without data (section 5.1, RFC 2861).
func (s *sender2) idle(now mihf.Time) {
	if s.pipe > 0 || s.cwnd <= s.initial() {
		return
	}
	for now.Sub(s.lastData) >= s.rto && s.cwnd > s.initial() {
		s.ssthresh = max(s.ssthresh, s.cwnd*3/4)
		s.cwnd = max(s.cwnd/2, s.initial())
		s.lastData = s.lastData.Add(s.rto)
	}
}

func (s *sender2) at(seq Seq) *sentPacket { return &s.ring[seq&Seq(len(s.ring)-1)] }

// push makes room for the packet seq and notes it.
func (s *sender2) push(seq Seq, p sentPacket) {
	if n := int64(len(s.ring)); seq.Sub(s.una) >= n {
		s.grow(seq)
	}
	*s.at(seq) = p
	s.end = seq.Add(1)
}

// grow doubles the ring. At its greatest, the oldest packet is taken as lost.
func (s *sender2) grow(seq Seq) {
	n := max(len(s.ring), firstRing/2)
	for n < maxRing && seq.Sub(s.una) >= int64(n) {
		n *= 2
	}
	old := *s
	s.ring = make([]sentPacket, n)
	for q := s.una; q != s.end; q = q.Add(1) {
		*s.at(q) = *old.at(q)
	}
	for seq.Sub(s.una) >= int64(n) {
		s.lose(s.una)
		s.una = s.una.Add(1)
	}
}

func (s *sender2) data(now mihf.Time, seq Seq, _ int) uint8 {
	s.push(seq, sentPacket{now, fateFlying})
	s.pipe++
	s.lastData = now
	s.sinceAck++
	if s.timer.IsZero() {
		s.timer = now.Add(s.rto)
	}
	return 0
}

func (s *sender2) other(now mihf.Time, seq Seq) {
	if s.una == s.end { // nothing to be told apart from
		s.una, s.end = seq.Add(1), seq.Add(1)
		return
	}
	s.push(seq, sentPacket{now, fateNone})
}

func (s *sender2) acknowledged() { s.sinceAck = 0 }

// wantsAck: once a window the receiver's Acks are acknowledged, so that it can forget
// (section 6.2).
func (s *sender2) wantsAck() bool { return s.sinceAck >= s.cwnd-1 }

func (s *sender2) options(b []byte) []byte { return b }

func (s *sender2) limit(window int64) { s.most = window }

func (s *sender2) window() int64 { return s.cwnd }

func (s *sender2) lost() uint64 { return s.losses }

// acked takes an acknowledgement with its Ack Vectors (section 5).
func (s *sender2) acked(now mihf.Time, a *arrival) {
	s.countAcks(a)
	before := s.pipe
	var newly, marked int64
	s.measure(now, a)
	s.walk(a, &newly, &marked)
	event := s.findLosses() || marked > 0
	s.sweep()
	if a.ndrops > 0 || a.slow {
		event = s.takeDrops(now, a) || event
	}
	if event {
		s.congestion()
	} else if newly > 0 && a.ndrops == 0 && !now.Before(s.holdSlow) && (s.full || before*2 >= s.cwnd) {
		s.growWindow(newly)
	}
	if newly > 0 {
		s.full = false
		s.timer = 0
		if s.srtt > 0 {
			s.setRTO()
		}
	}
	if s.pipe > 0 && s.timer.IsZero() {
		s.timer = now.Add(s.rto)
	} else if s.pipe == 0 {
		s.timer = 0
	}
	s.adaptRatio(a.ack)
}

// measure takes an RTT sample at most once a window (section 5, "Transmit timeouts").
func (s *sender2) measure(now mihf.Time, a *arrival) {
	if a.ack.Before(s.timed) || !a.ack.In(s.una, s.end.Add(-1)) || s.una == s.end {
		return
	}
	p := s.at(a.ack)
	if p.fate == fateArrived || p.at.IsZero() {
		return
	}
	rtt := now.Sub(p.at) - max(a.elapsed, 0)
	if rtt <= 0 {
		rtt = now.Sub(p.at)
	}
	s.timed = s.end
	s.sample(rtt)
	s.conn.timing.sample(now, rtt)
}

// sample is RFC 2988's average.
func (s *sender2) sample(rtt time.Duration) {
	if s.srtt == 0 {
		s.srtt, s.rttvar = rtt, rtt/2
	} else {
		s.rttvar += ((s.srtt - rtt).Abs() - s.rttvar) / 4
		s.srtt += (rtt - s.srtt) / 8
	}
	s.setRTO()
}

func (s *sender2) setRTO() { s.rto = min(max(s.srtt+4*s.rttvar, minRTO), maxRTO) }

// walk notes what the Ack Vectors tell.
func (s *sender2) walk(a *arrival, newly, marked *int64) {
	if a.nvectors == 0 {
		s.arrive(a.ack, newly)
		return
	}
	floor := s.una
	if s.doubtful {
		if floor = s.doubt; s.una.Sub(s.doubt) > latePackets {
			s.doubtful, floor = false, s.una
		}
	}
	next := a.ack
	for _, v := range a.vectors[:a.nvectors] {
		for _, run := range v {
			low := next.Add(-int64(run & 63))
			if run>>6 == stateReceived || run>>6 == stateMarked {
				was := *newly
				for q := later(low, floor); !next.Before(q); q = q.Add(1) {
					s.arrive(q, newly)
				}
				if run>>6 == stateMarked && *newly > was {
					*marked++
				}
			}
			if low.Before(floor) {
				return
			}
			next = low.Add(-1)
		}
	}
}

// arrive notes that a packet arrived.
func (s *sender2) arrive(seq Seq, newly *int64) {
	if !seq.Before(s.end) || s.end.Sub(seq) > int64(len(s.ring)) {
		return
	}
	p := s.at(seq)
	if p.fate == fateLost { // only late: counted once more, as what it is
		s.losses--
		p.fate = fateArrived
	}
	if p.fate == fateFlying {
		s.pipe--
		*newly++
	}
	p.fate = fateArrived
	s.high = later(s.high, seq)
}

// findLosses takes packets as lost that have three behind them that arrived, and reports
// whether that is a new congestion event.
func (s *sender2) findLosses() (event bool) {
	arrived := 0
	for q := s.high; !q.Before(s.una); q = q.Add(-1) {
		switch p := s.at(q); {
		case p.fate == fateArrived:
			arrived++
		case p.fate == fateFlying && arrived >= dupAcks:
			s.lose(q)
			if s.recover.Before(q) {
				event = true
			}
		}
	}
	return event
}

func (s *sender2) lose(seq Seq) {
	if p := s.at(seq); p.fate == fateFlying {
		p.fate = fateLost
		s.pipe--
		s.losses++
		if !s.doubtful || seq.Before(s.doubt) {
			s.doubtful, s.doubt = true, seq
		}
	}
}

// sweep passes over the packets whose fate is known.
func (s *sender2) sweep() {
	for s.una != s.end && s.at(s.una).fate != fateFlying {
		s.una = s.una.Add(1)
	}
}

// congestion halves the window (section 5).
func (s *sender2) congestion() {
	s.recover = s.end.Add(-1)
	s.cwnd = max(s.cwnd/2, 1)
	s.ssthresh = max(s.cwnd, 2)
	s.grown = 0
}

// growWindow is slow-start, with Appropriate Byte Counting, or congestion avoidance.
func (s *sender2) growWindow(newly int64) {
	if s.cwnd < s.ssthresh {
		s.grown += newly
		s.cwnd += min(s.grown/2, max(s.ratio/2, 1))
		s.grown &= 1
		return
	}
	if s.grown += newly; s.grown >= s.cwnd {
		s.grown -= s.cwnd
		s.cwnd++
	}
}

// takeDrops answers Slow Receiver and Data Dropped options (section 5.2; RFC 4340,
// section 11.7), and reports whether one is to be taken as a mark.
func (s *sender2) takeDrops(now mihf.Time, a *arrival) (mark bool) {
	if a.slow {
		s.holdSlow = now.Add(s.conn.rtt())
	}
	if n := countDrops(a, s.dropsSeen, DropReceiveBuffer); n > 0 {
		s.cwnd = max(s.cwnd-n, 1)
	}
	s.ssthresh = min(s.ssthresh, max(s.cwnd, 2)) // out of slow-start
	for _, code := range []DropCode{DropNotListening, DropCorrupt, DropDeliveredCorrupt} {
		mark = mark || countDrops(a, later(s.dropsSeen, s.recover), code) > 0
	}
	s.dropsSeen = later(s.dropsSeen, a.ack)
	return mark
}

// countAcks notices packets of the receiver that are missing, to keep its Acks from
// crowding the way back (section 6.1.1). Without better word each is taken for an Ack.
func (s *sender2) countAcks(a *arrival) {
	if gap := a.missed; gap > 0 {
		s.acksLost += gap
	}
}

// adaptRatio judges the Acks of a window of data (section 6.1.2).
func (s *sender2) adaptRatio(ack Seq) {
	if ack.Before(s.windowEnd) {
		return
	}
	s.windowEnd = s.end
	most := max((s.cwnd+1)/2, 2)
	switch {
	case s.acksLost >= dupAcks:
		s.ratio, s.clean = s.ratio*2, 0
	case s.ratio > 2:
		if s.clean++; s.clean >= max(s.cwnd/(s.ratio*s.ratio-s.ratio), 1) {
			s.ratio, s.clean = s.ratio-1, 0
		}
	}
	s.acksLost = 0
	s.ratio = min(s.ratio, most)
}

func (s *sender2) wantsRatio() int { return int(s.ratio) }

func (s *sender2) freeze(mihf.Time) { s.frozen, s.timer = true, 0 }

// thaw goes on with the window from before the freeze, not above what the path is known
// to hold; to recovery with slow-start up to it. What was in the air is neither waited for
// nor counted as lost.
func (s *sender2) thaw(now mihf.Time, t *thaw) {
	s.frozen = false
	s.settle(now)
	if rate := t.bytesPerSecond; rate > 0 && s.srtt > 0 {
		packets := int64(rate * max(s.srtt, t.rtt).Seconds() / float64(s.conn.cfg.MTU))
		s.cwnd = min(s.cwnd, max(packets, 2))
	}
	if t.recovery {
		s.ssthresh = max(s.cwnd, 2)
		s.cwnd = min(s.cwnd, s.initial())
	}
}

func (s *sender2) extension(bool) {} // its freeze is this end's alone

func (s *sender2) moved(now mihf.Time) {
	s.settle(now)
	s.cwnd, s.ssthresh = s.initial(), 1<<40
	s.srtt, s.rttvar, s.rto = 0, 0, firstRTO
}

// settle closes the books over what is in the air.
func (s *sender2) settle(now mihf.Time) {
	s.una, s.pipe, s.timer, s.grown = s.end, 0, 0, 0
	s.recover, s.lastData = s.end.Add(-1), now
}

func (s *sender2) next() mihf.Time {
	if s.frozen {
		return 0
	}
	return s.timer
}

// advance is the transmit timeout.
func (s *sender2) advance(now mihf.Time) {
	if !s.timer.Due(now) || s.frozen {
		return
	}
	for q := s.una; q != s.end; q = q.Add(1) {
		s.lose(q)
	}
	s.ssthresh = max(s.cwnd/2, 2)
	s.cwnd = 1
	s.rto = min(2*s.rto, maxRTO)
	rto := s.rto
	s.settle(now)
	s.rto = rto
}
