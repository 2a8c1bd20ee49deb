package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

// unknownRTT stands for a round-trip time of which nothing is known (RFC 4340, section
// 3.4).
const unknownRTT = 200 * time.Millisecond

// ReceiverConfig says how a [Receiver] works. The zero value is a receiver of [RFC5348].
type ReceiverConfig struct {
	Variant Variant
	// FirstSeq is the sequence number with which the sender begins, where that is known:
	// then the loss of the first packets is seen. 0: the first that arrives.
	FirstSeq uint64
	// SegmentBytes is s, the size of the sender's segments, for the first loss interval. 0:
	// the mean of what arrived.
	SegmentBytes int
	// RTT is the round-trip time from the handshake; 0: not known. Estimates from packets
	// take its place.
	RTT time.Duration
	// HistoryDiscounting is the optional mechanism of RFC 5348, section 5.5. The sender
	// cannot redo it from loss intervals; not for CCID 3.
	HistoryDiscounting bool
}

// Received counts what a [Receiver] saw.
type Received struct {
	Packets    uint64 // new ones with data
	Bytes      uint64 // of application data in them
	NonData    uint64 // new ones without data
	Lost       uint64 // taken for lost, less those that came late
	Marked     uint64
	Late       uint64 // came after they had been taken for lost
	Duplicates uint64 // came twice, or too late to be told from that
	LossEvents uint64 // begun, less those that late packets removed
	Reports    uint64
}

// Receiver is the data receiver of RFC 5348, section 6. It is used by one goroutine.
type Receiver struct {
	cfg ReceiverConfig
	Received

	now         mihf.Time // of the last packet
	highest     uint64    // greatest sequence number
	highestAt   mihf.Time
	highestData uint64        // the same of packets with data
	sentAt      mihf.Time     // what packet highest carried
	rtt         time.Duration // the sender's word; 0: none

	meter   meter
	clock   counterClock
	holes   holes
	history history

	maxRate       Rate // the greatest X_recv so far
	lossRate      float64
	reportedNow   int64 // window counter at the last report
	counterBefore int64 // window counter before the newest packet
	fresh         bool  // data since the last report
	silent        bool  // the timer expired without any: the next is reported at once
	deadline      mihf.Time

	dataAt  mihf.Time // when data last came
	resumed resumption
}

// NewReceiver returns a receiver that has received nothing.
func NewReceiver(cfg ReceiverConfig) *Receiver {
	r := &Receiver{cfg: cfg}
	r.history.first = cfg.FirstSeq
	return r
}

// RTT is the receiver's idea of the round-trip time; 0: none yet.
func (r *Receiver) RTT() time.Duration {
	switch {
	case r.rtt > 0:
		return r.rtt
	case r.clock.rtt > 0:
		return r.clock.rtt
	default:
		return r.cfg.RTT
	}
}

// SetRTT takes a round-trip time that was measured by other means, such as a timestamp
// that was echoed.
func (r *Receiver) SetRTT(rtt time.Duration) { r.cfg.RTT = rtt }

// LossRate is p, the loss event rate; 0 while nothing was lost.
func (r *Receiver) LossRate() float64 {
	return r.history.lossRate(r.highest, r.cfg.HistoryDiscounting)
}

// Receive takes a packet that arrived and reports whether a report is to be sent now.
func (r *Receiver) Receive(now mihf.Time, p *Packet) bool {
	if r.Packets+r.NonData == 0 {
		r.start(now, p)
	}
	r.now = now
	events, mended := r.LossEvents, false
	if p.Seq > r.highest {
		r.ahead(now, p)
	} else if known, m := r.behind(p); known {
		mended = m
		if !p.NonData && p.Seq > r.highestData { // only packets without data came before it
			r.data(now, p)
		}
	} else {
		r.Duplicates++
		return false
	}
	r.count(p)
	if p.Marked && !p.NonData {
		r.Marked++
		r.mark(now, p)
	}
	for {
		h, ok := r.holes.ripe(false)
		if !ok {
			break
		}
		r.lose(&h)
	}
	changed := r.LossEvents != events || mended
	if p.NonData {
		return changed
	}
	r.fresh, r.dataAt = true, now
	due := r.Reports == 0 || r.reportDue()
	r.resumed.passed(now, due)
	return changed || due
}

func (r *Receiver) count(p *Packet) {
	if p.NonData {
		r.NonData++
		return
	}
	r.Packets++
	r.Bytes += uint64(p.Bytes)
	r.meter.bytes += uint64(p.Bytes)
}

// start takes the first packet: what is before it is missing, if its sender began before.
func (r *Receiver) start(now mihf.Time, p *Packet) {
	if r.cfg.FirstSeq == 0 || p.Seq < r.cfg.FirstSeq {
		r.history.first = p.Seq
	}
	r.highest = r.history.first - 1
	r.highestAt = now
}

// ahead takes a packet with a new greatest sequence number.
func (r *Receiver) ahead(now mihf.Time, p *Packet) {
	missing := p.Seq - r.highest - 1
	nonData := uint32(min(uint64(p.NonDataBefore), missing))
	missing -= uint64(nonData)
	if p.NonData {
		nonData++
	}
	r.countNonData(nonData)
	r.holes.passed(p.Seq, 1, nonData)
	if missing > 0 {
		r.holes.add(hole{
			from: r.highest + 1, to: r.highest + 1 + missing,
			low: r.highest, high: p.Seq, before: r.highestAt, past: now,
			counter: r.clock.now, later: 1, laterNonData: nonData,
		})
	}
	r.highest, r.highestAt, r.sentAt = p.Seq, now, p.SentAt
	r.counterBefore = r.clock.now
	if !p.NonData {
		r.data(now, p)
	}
}

// data takes what the newest packet with data says.
func (r *Receiver) data(now mihf.Time, p *Packet) {
	r.highestData = p.Seq
	if r.Packets == 0 {
		r.clock.now = int64(p.WindowCounter)
	}
	if p.RTT > 0 {
		r.rtt = p.RTT
		if r.deadline != 0 && r.cfg.Variant == RFC5348 { // a sender that now hears sooner waits less long
			r.deadline = min(r.deadline, r.meter.reported.at.Add(r.rtt))
		}
	}
	r.follow(now, p)
	if r.cfg.Variant == CCID3 && r.clock.see(now, p.WindowCounter) {
		r.meter.mark(now)
	}
}

// behind takes a packet that came late; mended says that it removed a loss event.
func (r *Receiver) behind(p *Packet) (known, mended bool) {
	nonData, counter := uint32(0), int(p.WindowCounter)
	if p.NonData {
		nonData, counter = 1, -1
	}
	if r.holes.remove(p.Seq, counter) {
		r.countNonData(nonData)
		r.holes.passed(p.Seq, 1, nonData)
		return true, false
	}
	if !r.holes.found(p.Seq) {
		return false, false
	}
	r.Late++
	r.Lost--
	r.holes.passed(p.Seq, 1, nonData)
	if i := r.history.containing(p.Seq); i >= 0 && r.history.fill(i) {
		r.LossEvents--
		r.lossRate = r.LossRate()
		return true, true
	}
	return true, false
}

func (r *Receiver) countNonData(n uint32) {
	if r.history.n > 0 {
		r.history.events[0].nonData += n
	}
}

// reportDue says whether data that arrived ask for a report by the pace of reports
// (RFC 5348, sections 6.1 and 6.3; RFC 4342, section 10.3).
func (r *Receiver) reportDue() bool {
	if r.cfg.Variant == CCID3 {
		return r.clock.now-r.reportedNow >= roundTrip
	}
	return r.silent
}

// Next is when [Receiver.Advance] has something to do; zero: never.
func (r *Receiver) Next() mihf.Time {
	if r.cfg.Variant == CCID3 && !r.fresh {
		return 0
	}
	return r.deadline
}

// Advance does what is due and reports whether a report is to be sent now.
func (r *Receiver) Advance(now mihf.Time) bool {
	if !r.deadline.Due(now) {
		return false
	}
	if r.fresh {
		r.resumed.passed(now, true)
		return true
	}
	r.silent, r.deadline = true, 0
	return false
}

// Report fills in the report that is to be sent now, and starts the time to the next.
func (r *Receiver) Report(now mihf.Time, out *Report) {
	rtt := r.RTT()
	rate := Rate(0) // in the first report (RFC 5348, section 6.3)
	if r.Reports > 0 {
		rate = r.meter.rate(now, rtt, r.cfg.Variant)
	}
	r.maxRate = max(r.maxRate, rate)
	r.lossRate = r.LossRate()
	out.Seq, out.SentAt = r.highest, r.sentAt
	out.Delay = now.Sub(r.highestAt)
	out.ReceiveRate, out.LossRate = rate, r.lossRate
	out.Options = 0
	if r.resumed.state == Recovery1 {
		out.Options = OptUnfrozen
	}
	r.resumed.reported = true
	r.intervals(&out.Intervals)

	r.Reports++
	r.meter.report(now)
	r.reportedNow = r.clock.now
	r.fresh = false
	r.silent = rtt == 0 // each packet is reported until one tells a round-trip time
	r.deadline = 0
	if rtt > 0 {
		r.deadline = now.Add(rtt)
		if r.cfg.Variant == CCID3 { // paced by counters; the timer is for what they leave over
			r.deadline = now.Add(2 * rtt)
		}
	}
}

// intervals lists the loss intervals (RFC 4342, sections 6.1 and 8.6).
func (r *Receiver) intervals(out *Intervals) {
	out.Reset()
	skip := min(r.holes.skip(r.highest), dupThreshold)
	out.Skip = uint8(skip)
	h := &r.history
	if h.n == 0 {
		out.Append(Interval{Lossless: clampLength(r.highest + 1 - skip - h.first)})
		return
	}
	end := r.highest + 1 - skip
	for i := range h.n {
		e := &h.events[i]
		data := e.length
		if i == 0 {
			data = e.dataLength(r.highest + 1)
		}
		lossEnd := min(e.lossEnd, end)
		start := min(e.start, lossEnd)
		out.Append(Interval{Lossless: clampLength(end - lossEnd), Loss: clampLength(lossEnd - start), Data: data})
		end = start
	}
}

// maxLength is the longest part of a loss interval that a report can state.
const maxLength = 1<<23 - 1

func clampLength(n uint64) uint32 { return uint32(min(n, maxLength)) }
