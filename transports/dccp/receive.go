package dccp

import (
	"hash/crc32"
	"time"

	"mihf.dev/mihf"
)

// arrival is what one packet told.
type arrival struct {
	typ    Type
	seq    Seq
	ack    Seq // where typ.HasAck
	ccval  uint8
	bytes  int   // of data
	missed int64 // packets between this one and the newest before it
	ndp    uint32

	vectors  [4][]byte // Ack Vector options
	nvectors int
	drops    [2][]byte // Data Dropped options
	ndrops   int
	elapsed  time.Duration // since ack arrived there; -1: not told

	lossRate   uint32 // of CCID 3
	recvRate   uint32
	intervals  []byte
	hasLoss    bool
	hasRate    bool
	slow       bool
	restoring  bool
	probing    bool
	unfrozen   bool
	checked    bool // has a Data Checksum
	crc        uint32
	stateReset bool // the options demand a reset
}

// isData reports whether the packet is one that congestion control counts as data.
func (a *arrival) isData() bool { return a.typ == TypeData || a.typ == TypeDataAck }

// Receive takes a packet that arrived for this connection, of which at least the ports
// are known to be right, and, where there is one, the checksum. It returns the datagram
// that the packet brings the application, which lies in b; ok tells that there is one,
// for it may be empty.
//
// What does not belong to the connection by its numbers changes nothing; at most it is
// answered by a Sync, a few times a second (RFC 4340, section 7.5.4).
func (c *Conn) Receive(now mihf.Time, b []byte) (data []byte, ok bool) {
	var p Packet
	if p.Parse(b) != nil {
		c.stats.Malformed++
		return nil, false
	}
	c.stats.PacketsReceived++
	switch c.state {
	case StateClosed:
		return nil, false
	case StateTimeWait:
		c.refuse(now, &p)
		return nil, false
	case StateRequest:
		if !c.enterRequest(now, &p) {
			return nil, false
		}
	default:
		if !c.valid(now, &p) || !c.expected(now, &p) {
			return nil, false
		}
	}
	return c.process(now, &p)
}

// enterRequest is step 4 of section 8.5: the first word of the server. Anything else is
// of an older connection, which a Reset ends; its numbers are those that the packet asks
// for, as in CLOSED, for our own mean nothing there.
func (c *Conn) enterRequest(now mihf.Time, p *Packet) bool {
	if p.Type != TypeResponse && p.Type != TypeReset || !p.Ack.In(c.iss, c.gss) {
		c.stats.Unexpected++
		if p.Type != TypeReset && c.resets.allow(now) {
			c.reset = looseReset(p, ResetPacketError)
			c.reset.data[0] = byte(p.Type)
		}
		return false
	}
	c.isr, c.gsr = p.Seq, p.Seq.Add(-1)
	c.feat.fgsr = p.Seq.Add(-1)
	c.advanceGSR(now, p.Seq)
	c.gar = p.Ack
	return true
}

// windows (section 7.5.1).
func (c *Conn) swl() Seq {
	low := c.gsr.Add(1 - int64(c.feat.value(remote, fSeqWindow)/4))
	if c.heardFar || !low.Before(c.isr) {
		return low
	}
	return c.isr
}

func (c *Conn) swh() Seq {
	w := int64(c.feat.value(remote, fSeqWindow))
	return c.gsr.Add(w - w/4)
}

func (c *Conn) awl() Seq {
	low := c.gss.Add(1 - int64(c.feat.value(local, fSeqWindow)))
	if c.sentFar || !low.Before(c.iss) {
		return low
	}
	return c.iss
}

// valid is steps 5 and 6 of section 8.5: whether the numbers fit, which then are noted.
func (c *Conn) valid(now mihf.Time, p *Packet) bool {
	if !p.Extended {
		if c.feat.value(remote, fShortSeqnos) == 0 {
			c.stats.Invalid++
			return false
		}
		p.Seq = extend(p.Seq, c.gsr)
		if p.Type.HasAck() {
			p.Ack = extend(p.Ack, c.gss)
		}
	}
	sync := p.Type == TypeSync || p.Type == TypeSyncAck
	ok := false
	switch {
	case sync && !p.Ack.In(c.awl(), c.gss):
	case sync && now.Sub(c.heard) < 3*c.rtt(): // section 7.5.3: stricter while active
		ok = p.Seq.In(c.swl(), c.swh())
	case sync:
		ok = !p.Seq.Before(c.swl())
	case p.Type == TypeCloseReq || p.Type == TypeClose || p.Type == TypeReset:
		ok = p.Seq.In(c.gsr.Add(1), c.swh()) && p.Ack.In(c.gar, c.gss)
	default:
		ok = p.Seq.In(c.swl(), c.swh()) && (!p.Type.HasAck() || p.Ack.In(c.awl(), c.gss))
	}
	if !ok {
		c.stats.Invalid++
		switch {
		case sync:
		case p.Type == TypeReset:
			c.sync(now, c.gsr)
		default:
			c.sync(now, p.Seq)
		}
		return false
	}
	return true
}

// expected is step 7 of section 8.5.
func (c *Conn) expected(now mihf.Time, p *Packet) bool {
	late := c.state >= StateOpen && !p.Seq.Before(c.osr)
	if c.server && (p.Type == TypeCloseReq || p.Type == TypeResponse) ||
		!c.server && p.Type == TypeRequest ||
		late && (p.Type == TypeRequest || p.Type == TypeResponse) ||
		c.state == StateRespond && p.Type == TypeData {
		c.stats.Unexpected++
		c.note(now, p)
		c.sync(now, p.Seq)
		return false
	}
	return true
}

// sync answers a packet that does not fit, within the rate limit.
func (c *Conn) sync(now mihf.Time, ack Seq) {
	if !c.syncs.allow(now) {
		c.stats.SyncsSuppressed++
		return
	}
	c.reply(TypeSync, ack)
}

// note takes the numbers of a valid packet and returns how many packets before it are
// missing.
func (c *Conn) note(now mihf.Time, p *Packet) (missed int64) {
	if d := p.Seq.Sub(c.gsr); d > 0 {
		missed = d - 1
		c.advanceGSR(now, p.Seq)
	}
	if p.Type.HasAck() && p.Type != TypeSync {
		c.gar = later(c.gar, p.Ack)
	}
	return missed
}

func (c *Conn) advanceGSR(now mihf.Time, seq Seq) {
	c.gsr, c.lastRxAt = seq, now
	if !c.heardFar && c.gsr.Sub(c.isr) > int64(c.feat.value(remote, fSeqWindow)) {
		c.heardFar = true
	}
	if c.feat.fgsr.Sub(c.gsr) > 0 { // erratum 974
		c.feat.fgsr = c.gsr.Add(-maxWindow)
	}
}

// process is steps 8 to 16 of section 8.5, for a packet with valid numbers.
func (c *Conn) process(now mihf.Time, p *Packet) (data []byte, ok bool) {
	if !c.seen.add(p.Seq) {
		c.stats.Duplicates++
		return nil, false
	}
	a := &c.in
	*a = arrival{typ: p.Type, seq: p.Seq, ack: p.Ack, ccval: p.CCVal, bytes: len(p.Data), elapsed: -1}
	a.missed = c.note(now, p)
	c.heard, c.probe = now, backoff{}
	if !p.Type.CarriesData() {
		a.bytes = 0
	}
	c.takeOptions(now, p, a)
	if a.stateReset {
		return nil, false
	}
	if p.Type == TypeReset {
		c.takeReset(now, p)
		return nil, false
	}
	if c.takeHandshake(now, p) {
		return nil, false
	}
	c.account(now, a)
	switch p.Type {
	case TypeCloseReq:
		if c.state < StateCloseReq {
			c.startClosing(now, StateClosing)
		}
	case TypeClose:
		c.endWith(now, ResetClosed, [3]byte{}, nil)
	case TypeSync:
		c.reply(TypeSyncAck, p.Seq)
	default:
	}
	return c.deliver(p, a)
}

// takeReset is step 9.
func (c *Conn) takeReset(now mihf.Time, p *Packet) {
	if p.Code != ResetClosed {
		c.err = &ResetError{Code: p.Code, Data: p.CodeData}
	} else if c.state == StateRequest {
		c.err = &ResetError{Code: p.Code}
	}
	c.enter(now, StateTimeWait)
	c.deadline = now.Add(TimeWait)
}

// takeHandshake is steps 10 to 12. It reports whether the packet is done with.
func (c *Conn) takeHandshake(now mihf.Time, p *Packet) (all bool) {
	switch c.state {
	case StateRequest: // p is a Response
		c.sampleHandshake(now)
		c.enter(now, StatePartOpen)
		c.deadline = now.Add(handshakeMost)
		c.activate(now)
		c.keepCookies(p)
		c.ackDue = true
	case StateRespond:
		if p.Type == TypeRequest {
			c.respond = true
			c.offer()
			c.feat.resend()
			return true
		}
		c.sampleHandshake(now)
		c.osr = p.Seq
		c.enter(now, StateOpen)
		c.activate(now)
		c.afterFeatures(now)
		c.response, c.greeting = c.gss, true
	case StatePartOpen:
		switch p.Type {
		case TypeResponse:
			c.ackDue = true
		case TypeSync:
		default:
			c.osr, c.cookies = p.Seq, nil
			c.enter(now, StateOpen)
			c.afterFeatures(now)
		}
	default:
	}
	// A client that has heard the Response only waits for a sign that its Ack came.
	if c.greeting {
		if !p.Type.HasAck() || p.Ack == c.response {
			c.ackDue = true
		} else {
			c.greeting = false
		}
	}
	return false
}

// account tells the congestion controls of a packet.
func (c *Conn) account(now mihf.Time, a *arrival) {
	if a.typ.HasAck() && a.typ != TypeSync {
		c.vec.acked(a.ack)
		if c.tx != nil {
			c.tx.acked(now, a)
		}
		c.freeze.acked(a.ack)
	}
	if c.rx != nil {
		if c.rx.received(now, a) {
			c.ackDue = true
		}
	}
	switch {
	case c.rx == nil:
	case c.vecTx || c.rx.usesVector():
		c.vec.add(a.seq)
		if a.isData() {
			c.vec.data = later(c.vec.data, a.seq)
		}
	default:
		c.vec.pass(a.seq)
	}
}

// deliver is step 16: the datagram for the application, if the packet has one.
func (c *Conn) deliver(p *Packet, a *arrival) (data []byte, ok bool) {
	if p.Type == TypeRequest || p.Type == TypeResponse {
		if len(p.Data) > 0 { // not taken from either: section 8.1.3 lets us
			c.refuseData(p.Seq, DropProtocol)
		}
		return nil, false
	}
	if a.checked && crc32.Checksum(p.Data, castagnoli) != a.crc {
		c.refuseData(p.Seq, DropCorrupt) // section 9.3
		return nil, false
	}
	if p.Type != TypeData && p.Type != TypeDataAck {
		return nil, false
	}
	if c.feat.value(local, fECNIncapable) != 1 {
		c.refuseData(p.Seq, DropProtocol) // section 12.1: not before the peer knows
		return nil, false
	}
	if least := uint8(c.feat.value(local, fMinCsCov)); p.CsCov != 0 && (least == 0 || p.CsCov < least) {
		c.refuseData(p.Seq, DropProtocol) // section 9.2.1
		return nil, false
	}
	if c.state != StateOpen && c.state != StatePartOpen && c.state != StateCloseReq && c.state != StateClosing {
		return nil, false
	}
	c.lastRecv = p.Seq
	c.stats.DataReceived++
	c.stats.BytesReceived += uint64(len(p.Data))
	return p.Data, true
}

func (c *Conn) refuseData(seq Seq, code DropCode) {
	c.stats.DataRefused++
	c.vec.dropped(seq, code)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// refuse answers a packet for a connection that is gone (section 8.3.1).
func (c *Conn) refuse(now mihf.Time, p *Packet) {
	if p.Type != TypeReset && c.resets.allow(now) {
		c.reset = looseReset(p, ResetNoConnection)
	}
}

// looseReset is a Reset whose numbers come from the packet that it answers.
func looseReset(p *Packet, code ResetCode) outReset {
	r := outReset{due: true, loose: true, code: code, ack: p.Seq}
	if p.Type.HasAck() {
		r.seq = p.Ack.Add(1)
		if !p.Extended {
			r.seq &= 0xffffff
		}
	}
	return r
}

// seenSet remembers which of the newest packets came.
type seenSet struct {
	bits    [4]uint64 // packet s at bit s mod 256
	newest  Seq
	started bool
}

const seenPackets = 256

// add notes a packet, and reports false where it came before or is too old to tell.
func (s *seenSet) add(seq Seq) bool {
	if !s.started {
		s.started, s.newest = true, seq.Add(-1)
	}
	d := seq.Sub(s.newest)
	switch {
	case d >= seenPackets:
		s.bits = [4]uint64{}
	case d > 0:
		for q := s.newest.Add(1); q != seq; q = q.Add(1) {
			s.bits[q>>6&3] &^= 1 << (q & 63)
		}
	case d <= -seenPackets:
		return false
	case s.bits[seq>>6&3]&(1<<(seq&63)) != 0:
		return false
	}
	if d > 0 {
		s.newest = seq
	}
	s.bits[seq>>6&3] |= 1 << (seq & 63)
	return true
}
