package dccp

import (
	"encoding/binary"
	"math"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/tfrc"
)

// numberBits is how long a sequence number is; TFRC reckons with longer ones, which never
// wrap and never are 0.
const numberBits = 48

// unwrapFrom is where TFRC's numbers start for a connection's first.
func unwrapFrom(s Seq) uint64 { return 1<<numberBits | uint64(s) }

// lossIntervalBytes is one Loss Interval of the option (RFC 4342, section 8.6).
const lossIntervalBytes = 9

// noLoss is what a Loss Event Rate option has before the first loss (section 8.5).
const noLoss = 1<<32 - 1

// maxPacingBurst is how much unused time to send is kept: what is sent at once is at most
// that much of the rate.
const maxPacingBurst = time.Millisecond

// sender3 is the sender of CCID 3, TFRC (RFC 4342).
type sender3 struct {
	conn   *Conn
	tfrc   *tfrc.Sender
	seq    uint64 // newest that was sent, unwrapped
	header tfrc.Header
	report tfrc.Report

	owesAck bool // the receiver waits for an acknowledgement of its Acks
	ackedAt mihf.Time
	credit  Seq   // newest that the receiver is known to have, or was waited for in vain
	most    int64 // packets beyond credit
	drops   Seq   // Data Dropped was answered up to here
}

func newSender3(c *Conn) *sender3 {
	s := &sender3{conn: c, seq: unwrapFrom(c.gss), drops: c.gss, credit: c.gss, most: minWindow}
	s.tfrc = s.fresh(c.timing.rtt)
	s.tfrc.SetExtension(c.freezeInForce())
	return s
}

// fresh returns a TFRC sender that has sent nothing.
func (s *sender3) fresh(rtt time.Duration) *tfrc.Sender {
	return tfrc.NewSender(tfrc.SenderConfig{
		Variant: tfrc.CCID3, MaxSegmentBytes: s.conn.MaxData(), RTT: rtt, MaxBurst: maxPacingBurst,
	})
}

// ready: no more goes without word from the receiver than fits its window, which a
// packet beyond would leave (RFC 4340, section 7.5.2).
func (s *sender3) ready(now mihf.Time, _ int) mihf.Time {
	if s.conn.gss.Sub(s.credit) >= s.most {
		return 0
	}
	return s.tfrc.NextSend(now)
}

func (s *sender3) data(now mihf.Time, seq Seq, bytes int) uint8 {
	s.seq = tfrc.Unwrap(s.seq, uint64(seq), numberBits)
	s.tfrc.Send(now, s.seq, bytes, &s.header)
	return s.header.WindowCounter
}

func (s *sender3) other(now mihf.Time, seq Seq) {
	s.seq = tfrc.Unwrap(s.seq, uint64(seq), numberBits)
	s.tfrc.SentOther(now, s.seq)
}

func (s *sender3) acknowledged() { s.owesAck = false }

// wantsAck: a receiver that reports dropped data or Ack Vectors is acknowledged about once
// a round-trip, so that it can forget (section 6.3).
func (s *sender3) wantsAck() bool { return s.owesAck }

func (s *sender3) options(b []byte) []byte {
	if s.header.Options.Has(tfrc.OptRestoring) {
		b = appendOption(b, optRestoring)
	}
	if s.header.Options.Has(tfrc.OptProbing) {
		b = appendOption(b, optProbing)
	}
	return b
}

// acked takes a feedback packet: one with the three options that make it one (section 6).
// Instead of loss intervals the loss event rate will do, which is all that some receivers
// send.
func (s *sender3) acked(now mihf.Time, a *arrival) {
	if a.ndrops+a.nvectors > 0 && now.Sub(s.ackedAt) >= s.conn.rtt() {
		s.owesAck, s.ackedAt = true, now
	}
	s.credit = later(s.credit, a.ack)
	if a.elapsed < 0 || !a.hasRate || !a.hasLoss && a.intervals == nil {
		return
	}
	r := &s.report
	*r = tfrc.Report{
		Seq: tfrc.Unwrap(s.seq, uint64(a.ack), numberBits), Delay: a.elapsed, ReceiveRate: tfrc.Rate(a.recvRate),
	}
	if len(a.intervals) > 0 {
		parseIntervals(a.intervals, &r.Intervals)
		r.LossRate = r.Intervals.LossRate()
	}
	if a.hasLoss {
		r.LossRate = 0
		if a.lossRate != noLoss {
			r.LossRate = 1 / float64(max(a.lossRate, 1))
		}
	}
	if a.unfrozen {
		r.Options |= tfrc.OptUnfrozen
	}
	s.slowDown(a)
	s.tfrc.Feedback(now, r)
	if rtt := s.tfrc.RTT(); rtt > 0 {
		s.conn.timing.rtt, s.conn.timing.sampled = rtt, now
	}
}

// slowDown lowers X_recv as Slow Receiver and Data Dropped ask for (section 5.2).
func (s *sender3) slowDown(a *arrival) {
	r, in := &s.report, float64(s.report.ReceiveRate)
	drop := math.Inf(1)
	if a.slow {
		drop = in
	}
	if n := countDrops(a, s.drops, DropReceiveBuffer); n > 0 && s.tfrc.RTT() > 0 {
		perRTT := s.tfrc.SegmentBytes() / s.tfrc.RTT().Seconds()
		drop = min(drop, max(in-float64(n)*perRTT, min(in, perRTT)))
	}
	s.drops = later(s.drops, a.ack)
	r.ReceiveRate = tfrc.Rate(min(in, drop/2))
}

// countDrops counts the packets after since that Data Dropped options report with a code.
func countDrops(a *arrival, since Seq, code DropCode) (n int64) {
	next := a.ack
	for _, blocks := range a.drops[:a.ndrops] {
		for _, b := range blocks {
			low, is := dropBlock(next, b)
			if is && DropCode(b>>4&7) == code {
				n += max(next.Sub(later(low, since.Add(1)))+1, 0)
			}
			next = low.Add(-1)
		}
	}
	return n
}

// dropBlock takes a block of a Data Dropped option, of which next is the newest packet.
func dropBlock(next Seq, b byte) (low Seq, isDrop bool) {
	if b&0x80 == 0 {
		return next.Add(-int64(b)), false
	}
	return next.Add(-int64(b & 15)), true
}

func (s *sender3) limit(window int64) { s.most = window / 2 }

func (s *sender3) window() int64 {
	return int64(float64(s.tfrc.Rate())*s.tfrc.RTT().Seconds()/s.tfrc.SegmentBytes()) + 1
}

func (s *sender3) wantsRatio() int { return 0 }

func (s *sender3) lost() uint64 { return 0 }

// freeze stops TFRC. How long it may last is the connection's business, which ends it
// before TFRC would.
func (s *sender3) freeze(now mihf.Time) { s.tfrc.Freeze(now, 2*s.conn.cfg.MaxFreeze) }

func (s *sender3) thaw(now mihf.Time, t *thaw) {
	size := s.tfrc.SegmentBytes()
	s.tfrc.Unfreeze(now, tfrc.Thaw{Recovery: t.recovery, Path: tfrc.Path{
		Capacity: tfrc.Rate(t.bytesPerSecond * size / (size + belowData)), RTT: t.rtt,
	}})
}

// belowData is what a packet needs beside its data: DCCP's, UDP's and IPv4's headers.
const belowData = 16 + 8 + 20

func (s *sender3) extension(has bool) { s.tfrc.SetExtension(has) }

func (s *sender3) moved(mihf.Time) {
	s.tfrc = s.fresh(0)
	s.tfrc.SetExtension(s.conn.freezeInForce())
}

func (s *sender3) next() mihf.Time { return s.tfrc.Next() }

func (s *sender3) advance(now mihf.Time) {
	if s.tfrc.Next().Due(now) {
		s.credit = s.conn.gss
		s.tfrc.Advance(now)
	}
}

// receiver3 is the receiver of CCID 3.
type receiver3 struct {
	conn   *Conn
	tfrc   *tfrc.Receiver
	seq    uint64 // newest that arrived, unwrapped
	due    bool
	packet tfrc.Packet
	report tfrc.Report
}

func newReceiver3(c *Conn) *receiver3 {
	return &receiver3{
		conn: c, seq: unwrapFrom(c.gsr),
		tfrc: tfrc.NewReceiver(tfrc.ReceiverConfig{Variant: tfrc.CCID3, RTT: c.timing.rtt}),
	}
}

func (r *receiver3) received(now mihf.Time, a *arrival) bool {
	seq := tfrc.Unwrap(r.seq, uint64(a.seq), numberBits)
	r.seq = max(r.seq, seq)
	p := &r.packet
	*p = tfrc.Packet{Seq: seq, NonData: !a.isData(), NonDataBefore: a.ndp, Bytes: a.bytes}
	p.WindowCounter = a.ccval
	if a.restoring {
		p.Options |= tfrc.OptRestoring
	}
	if a.probing {
		p.Options |= tfrc.OptProbing
	}
	r.due = r.tfrc.Receive(now, p) || r.due
	return r.due
}

func (r *receiver3) feedback(now mihf.Time, b []byte) []byte {
	if !r.due {
		return b
	}
	r.due = false
	if r.tfrc.RTT() == 0 {
		r.tfrc.SetRTT(r.conn.timing.rtt)
	}
	p := &r.report
	r.tfrc.Report(now, p)
	b = appendElapsed(b, now.Sub(r.conn.lastRxAt))
	b = appendOption32(b, optReceiveRate, uint32(min(p.ReceiveRate, noLoss)))
	b = appendIntervals(b, &p.Intervals)
	inverse := uint32(noLoss)
	if p.LossRate > 0 {
		inverse = uint32(min(math.Ceil(1/p.LossRate), noLoss-1))
	}
	b = appendOption32(b, optLossEventRate, inverse)
	if p.Options.Has(tfrc.OptUnfrozen) {
		b = appendOption(b, optUnfrozen)
	}
	return b
}

func (r *receiver3) usesVector() bool { return false }

func (r *receiver3) ackRatio(int) {}

func (r *receiver3) next() mihf.Time { return r.tfrc.Next() }

func (r *receiver3) advance(now mihf.Time) bool {
	r.due = r.tfrc.Advance(now) || r.due
	return r.due
}

// appendIntervals appends a Loss Intervals option (section 8.6).
func appendIntervals(b []byte, v *tfrc.Intervals) []byte {
	n := v.Len()
	b = append(b, optLossIntervals, byte(3+lossIntervalBytes*n), v.Skip)
	for i := range n {
		t := v.At(i)
		b = appendUint24(b, t.Lossless)
		b = appendUint24(b, t.Loss)
		b = appendUint24(b, uint32(min(t.Data, 1<<24-1)))
	}
	return b
}

// parseIntervals reads the data of a Loss Intervals option whose length is right.
func parseIntervals(b []byte, v *tfrc.Intervals) {
	v.Reset()
	v.Skip = min(b[0], dupAcks)
	for b = b[1:]; len(b) >= lossIntervalBytes; b = b[lossIntervalBytes:] {
		t := tfrc.Interval{
			Lossless: uint24(b), Loss: uint24(b[3:]) & 0x7fffff, Data: float64(uint24(b[6:])),
		}
		if !v.Append(t) {
			return
		}
	}
}

func appendUint24(b []byte, v uint32) []byte {
	return append(b, byte(v>>16), byte(v>>8), byte(v))
}

func uint24(b []byte) uint32 { return binary.BigEndian.Uint32([]byte{0, b[0], b[1], b[2]}) }
