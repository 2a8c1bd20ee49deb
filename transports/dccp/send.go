package dccp

import (
	"encoding/binary"
	"hash/crc32"

	"mihf.dev/mihf"
)

// answer is a Sync or SyncAck that waits to be sent.
type answer struct {
	typ Type
	ack Seq
}

// maxAnswers bounds those that wait; the oldest gives way.
const maxAnswers = 4

func (c *Conn) reply(typ Type, ack Seq) {
	if c.nansw == maxAnswers {
		copy(c.answer[:], c.answer[1:])
		c.nansw--
	}
	c.answer[c.nansw] = answer{typ, ack}
	c.nansw++
}

// outReset is a Reset that waits to be sent.
type outReset struct {
	due   bool
	loose bool // its numbers are given, not the connection's
	code  ResetCode
	data  [3]byte
	seq   Seq
	ack   Seq
}

// enter changes the state.
func (c *Conn) enter(now mihf.Time, s State) {
	c.state = s
	c.back, c.deadline, c.repeatDue, c.readyAt = backoff{}, 0, false, 0
	switch s {
	case StateOpen:
		c.heard = now
	case StateClosed, StateTimeWait:
		c.tx, c.rx, c.nansw, c.ackDue, c.respond, c.cookies = nil, nil, 0, false, false, nil
		c.vec = ackVector{forgotten: c.vec.forgotten, drops: nil}
		c.freeze = freezing{}
	default:
	}
}

// endWith resets the connection and closes it.
func (c *Conn) endWith(now mihf.Time, code ResetCode, data [3]byte, err error) {
	c.reset = outReset{due: true, code: code, data: data}
	if c.err == nil {
		c.err = err
	}
	if c.tx != nil {
		c.stats.DataLost = c.tx.lost()
	}
	c.enter(now, StateClosed)
}

// Close ends the connection in an orderly way; datagrams that wait are the caller's to
// send before. A server asks the client to close, which then has the TIMEWAIT.
func (c *Conn) Close(now mihf.Time) {
	switch c.state {
	case StateRequest, StateRespond:
		c.err = ErrClosed
		c.endWith(now, ResetAborted, [3]byte{}, ErrClosed)
	case StatePartOpen:
		c.startClosing(now, StateClosing)
	case StateOpen:
		if c.server {
			c.startClosing(now, StateCloseReq)
			return
		}
		c.startClosing(now, StateClosing)
	default:
	}
}

func (c *Conn) startClosing(now mihf.Time, s State) {
	c.enter(now, s)
	c.deadline, c.repeatDue = now.Add(handshakeMost/4), true
}

// Abort ends the connection at once: the peer is sent a Reset, if it gets through.
func (c *Conn) Abort(now mihf.Time) {
	if c.state != StateClosed && c.state != StateTimeWait {
		c.err = ErrClosed
		c.endWith(now, ResetAborted, [3]byte{}, ErrClosed)
	}
}

// Refuse ends the connection with a Reset of the given code.
func (c *Conn) Refuse(now mihf.Time, code ResetCode) {
	if c.state != StateClosed && c.state != StateTimeWait {
		c.endWith(now, code, [3]byte{}, ErrClosed)
	}
}

// Poll appends the next packet that may be sent now to dst, and returns it; where there
// is none, it returns dst as it was. next is the application's next datagram, if waiting
// is set; it may be empty. took tells that the packet carries it. Poll is to be called
// until it appends nothing.
//
// A datagram longer than [Conn.MaxData] is the caller's to refuse.
func (c *Conn) Poll(now mihf.Time, dst, next []byte, waiting bool) (out []byte, took bool) {
	if c.reset.due {
		return c.pollReset(dst), false
	}
	switch c.state {
	case StateClosed, StateTimeWait:
		return dst, false
	case StateRequest:
		return c.pollRequest(now, dst), false
	case StateRespond:
		if c.respond {
			c.respond = false
			c.handshakeSent(now)
			return c.build(now, dst, TypeResponse, c.gsr, nil), false
		}
		if c.nansw > 0 {
			return c.pollAnswer(now, dst), false
		}
		return dst, false
	default:
	}
	if c.nansw > 0 {
		return c.pollAnswer(now, dst), false
	}
	if c.repeatDue {
		c.repeatDue = false
		c.back.arm(now, 2*c.rtt())
		typ := TypeClose
		if c.state == StateCloseReq {
			typ = TypeCloseReq
		}
		return c.build(now, dst, typ, c.gsr, nil), false
	}
	if typ, ok := c.freeze.signal(now, c.rtt()); ok {
		return c.build(now, dst, typ, c.gsr, nil), false
	}
	return c.pollOpen(now, dst, next, waiting)
}

// pollOpen sends data and Acks.
func (c *Conn) pollOpen(now mihf.Time, dst, next []byte, waiting bool) (out []byte, took bool) {
	ready := false
	c.readyAt = 0
	if waiting && c.Open() && c.tx != nil && !c.freeze.frozen() {
		if at := c.tx.ready(now, len(next)); at.Due(now) {
			ready = true
		} else {
			c.readyAt = at
		}
	}
	switch {
	case c.ackDue && ready && c.ackBytes()+len(next) <= c.cfg.MTU, c.ackDue && !ready:
		if !ready {
			next = nil
		}
		c.ackDue = false
		if c.state == StatePartOpen {
			c.back.arm(now, partOpenFirst)
		}
		typ := TypeAck
		if ready {
			typ = TypeDataAck
		}
		return c.build(now, dst, typ, c.gsr, next), ready
	case c.ackDue: // too much for one packet
		c.ackDue = false
		return c.build(now, dst, TypeAck, c.gsr, nil), false
	case ready:
		typ := TypeData
		if c.state == StatePartOpen || c.tx.wantsAck() {
			typ = TypeDataAck
		}
		return c.build(now, dst, typ, c.gsr, next), true
	}
	return dst, false
}

// ackBytes is the most that a DataAck's header can be now.
func (c *Conn) ackBytes() int {
	return headerBytes(TypeDataAck, true) + optionsMost + c.vec.optionBytes() + len(c.cookies)
}

// optionsMost is the most that all options but Ack Vectors and cookies take on an Ack.
const optionsMost = 240

func (c *Conn) pollRequest(now mihf.Time, dst []byte) []byte {
	first := c.gss == c.iss.Add(-1)
	if !first && !c.repeatDue {
		return dst
	}
	if first {
		c.deadline = now.Add(c.cfg.ConnectTimeout)
		c.back.arm(now, requestFirst)
	}
	c.repeatDue = false
	c.feat.resend()
	c.handshakeSent(now)
	return c.build(now, dst, TypeRequest, 0, nil)
}

// handshakeSent notes when the only packet of a kind was sent, to measure by its answer.
func (c *Conn) handshakeSent(now mihf.Time) {
	if c.gss == c.iss.Add(-1) {
		c.handshake = now
	} else {
		c.handshake = 0
	}
}

func (c *Conn) sampleHandshake(now mihf.Time) {
	if !c.handshake.IsZero() {
		c.timing.sample(now, now.Sub(c.handshake))
	}
}

func (c *Conn) pollAnswer(now mihf.Time, dst []byte) []byte {
	a := c.answer[0]
	copy(c.answer[:], c.answer[1:c.nansw])
	c.nansw--
	return c.build(now, dst, a.typ, a.ack, nil)
}

func (c *Conn) pollReset(dst []byte) []byte {
	r := c.reset
	c.reset = outReset{}
	p := Packet{
		SrcPort: c.cfg.SrcPort, DstPort: c.cfg.DstPort, Type: TypeReset, Extended: true,
		Seq: r.seq, Ack: r.ack, Code: r.code, CodeData: r.data,
	}
	if !r.loose {
		c.gss = c.gss.Add(1)
		p.Seq, p.Ack = c.gss, c.gsr // gsr is 0 where the peer was never heard: section 8.1.1
	}
	c.stats.PacketsSent++
	start := len(dst)
	dst = append(p.appendHeader(dst), c.cookies...)
	return finishHeader(dst, start)
}

// build appends a packet with the next number. data is of the application on types that
// carry it.
func (c *Conn) build(now mihf.Time, dst []byte, typ Type, ack Seq, data []byte) []byte {
	c.gss = c.gss.Add(1)
	if !c.sentFar && c.gss.Sub(c.iss) > int64(c.feat.value(local, fSeqWindow)) {
		c.sentFar = true
	}
	if c.feat.fgss.Sub(c.gss) > 0 && c.gss != c.iss { // erratum 974
		c.feat.fgss = c.gss.Add(-maxWindow)
	}
	carries := typ == TypeData || typ == TypeDataAck
	p := Packet{
		SrcPort: c.cfg.SrcPort, DstPort: c.cfg.DstPort, Type: typ,
		Extended: !typ.mayBeShort() || c.feat.value(local, fShortSeqnos) == 0,
		Seq:      c.gss, Ack: ack, Service: c.cfg.Service,
	}
	if !p.Extended {
		p.Seq, p.Ack = p.Seq&0xffffff, p.Ack&0xffffff
	}
	if carries {
		p.CsCov = c.coverage(len(data))
		p.CCVal = c.tx.data(now, c.gss, len(data))
	}
	start := len(dst)
	dst = p.appendHeader(dst)
	dst = c.appendOptions(now, dst, typ, start+MaxHeaderBytes-optionsBehind)
	if carries {
		dst = c.tx.options(dst)
		if c.cfg.DataChecksum {
			dst = binary.BigEndian.AppendUint32(append(dst, optDataChecksum, 6), crc32.Checksum(data, castagnoli))
		}
	}
	dst = append(finishHeader(dst, start), data...)
	c.sent(now, typ, carries, len(data))
	return dst
}

// coverage is the CsCov of a packet with n bytes of data.
func (c *Conn) coverage(n int) uint8 {
	least := uint8(c.feat.value(remote, fMinCsCov))
	if c.cfg.Coverage == 0 || least == 0 || c.cfg.Coverage < least || int(c.cfg.Coverage-1)*4 > n {
		return 0
	}
	return c.cfg.Coverage
}

// optionsBehind is the most that follows the Data Dropped option: a Timestamp, or what is
// for data, and padding.
const optionsBehind = 6 + 2 + 2 + 6 + 3

// appendOptions appends what goes on a packet of the type, but for what is for data. What
// the peer can make long at will ends before the length limit.
func (c *Conn) appendOptions(now mihf.Time, dst []byte, typ Type, limit int) []byte {
	if typ.HasAck() {
		dst = append(dst, c.cookies...)
	}
	if c.feat.value(local, fSendNDP) == 1 {
		dst = appendNDPCount(dst, c.ndp)
	}
	if c.timing.owed {
		dst = appendTimestampEcho(dst, c.timing.stamp, now.Sub(c.timing.owedAt))
		c.timing.owed = false
	}
	if c.slow {
		dst = append(dst, optSlowReceiver)
	}
	if typ == TypeData {
		return dst
	}
	if typ <= TypeResponse && len(c.cfg.Hello) > 0 {
		dst = appendOption(dst, optHello, c.cfg.Hello...)
	}
	dst = c.feat.append(dst, c.gss, typ.HasAck())
	if !typ.HasAck() {
		return dst
	}
	dst = c.freeze.append(dst, c.gss)
	if typ != TypeAck && typ != TypeDataAck {
		return dst
	}
	if c.rx != nil {
		dst = c.rx.feedback(now, dst)
	}
	if c.vecTx || c.rx != nil && c.rx.usesVector() {
		if c.vec.trim() {
			dst = c.vec.append(dst)
			c.vec.told(c.gss)
		}
		if held := now.Sub(c.lastRxAt); held >= hundredths && c.rx != nil && c.rx.usesVector() {
			dst = appendElapsed(dst, held)
		}
	}
	if n := len(dst); c.rx != nil {
		if dst = c.vec.appendDrops(dst, c.gsr, limit); len(dst) > n {
			c.vec.told(c.gss)
		}
	}
	if typ == TypeAck && c.state == StateOpen && c.timing.wants(now) {
		c.timing.asked = now
		dst = appendOption32(dst, optTimestamp, stampOf(now))
	}
	return dst
}

// sent accounts a packet.
func (c *Conn) sent(now mihf.Time, typ Type, carries bool, bytes int) {
	c.stats.PacketsSent++
	if typ.CarriesData() {
		c.ndp = 0
	} else {
		c.ndp++
	}
	if carries {
		c.stats.DataSent++
		c.stats.BytesSent += uint64(bytes)
	}
	if c.tx != nil {
		if !carries {
			c.tx.other(now, c.gss)
		}
		if typ.HasAck() {
			c.tx.acknowledged()
		}
		c.adaptFeatures(now)
	}
}

// adaptFeatures tells the peer of a Sequence Window and an Ack Ratio that suit the rate,
// each once an earlier one is agreed.
func (c *Conn) adaptFeatures(now mihf.Time) {
	w := &c.feat.at[local][fSeqWindow]
	if want := uint64(c.tx.window()) * 5; want > w.value && w.state == stable && c.state == StateOpen {
		c.feat.begin(local, fSeqWindow, min(2*want, maxWindow), false)
		c.afterFeatures(now)
	}
	r := &c.feat.at[local][fAckRatio]
	if want := c.tx.wantsRatio(); want > 0 && uint64(want) != r.value && r.state == stable && c.state == StateOpen {
		c.feat.begin(local, fAckRatio, uint64(want), false)
		c.afterFeatures(now)
	}
}
