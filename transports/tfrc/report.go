package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

// Variant says which of the two specifications rules where they differ.
type Variant uint8

// Variants.
const (
	// RFC5348 is TFRC by itself: data packets carry the sender's round-trip time, losses
	// belong together by their times, and a timer paces the reports.
	RFC5348 Variant = iota
	// CCID3 is TFRC in DCCP (RFC 4342): data packets carry a window counter of quarter
	// round-trips, by which losses belong together and reports are paced.
	CCID3
)

func (v Variant) String() string {
	if v == CCID3 {
		return "ccid3"
	}
	return "rfc5348"
}

// Header is what a data packet carries for the machine at the other end (RFC 5348,
// section 3.2.1; RFC 4342, section 8.1).
type Header struct {
	SentAt        mihf.Time     // by the sender's clock
	RTT           time.Duration // the sender's estimate; 0: none yet
	WindowCounter uint8         // 0 to 15; CCID 3's CCVal
	Options       Options       // the sender's Freeze state
}

// Packet is a packet that arrived, of any type: in DCCP all types share the sequence
// numbers.
type Packet struct {
	Header // of data packets; SentAt may be zero where the packet has no timestamp

	// Seq is the sequence number, unwrapped (see [Unwrap]) and greater than 0.
	Seq uint64
	// NonData says that the packet carries no application data (DCCP-Ack, -Sync, ...).
	NonData bool
	// NonDataBefore counts the packets without data directly before this one (DCCP's NDP
	// Count); 0 where it is not known.
	NonDataBefore uint32
	// Bytes of application data.
	Bytes int
	// Marked says that a router marked it (ECN).
	Marked bool
}

// Report is a feedback packet (RFC 5348, section 3.2.2; RFC 4342, section 6).
type Report struct {
	// Seq is the greatest sequence number received: DCCP's Acknowledgement Number.
	Seq uint64
	// SentAt is the time that packet Seq carried (t_recvdata); zero where it carried none.
	// The sender then looks up when it sent Seq.
	SentAt mihf.Time
	// Delay is the time from the arrival of packet Seq to this report (t_delay).
	Delay time.Duration
	// ReceiveRate is X_recv; 0 in the first report.
	ReceiveRate Rate
	// LossRate is p, the loss event rate; 0 while nothing was lost.
	LossRate float64
	// Intervals are the newest loss intervals. A receiver that tells only p leaves them
	// empty.
	Intervals Intervals
	// Options is the receiver's Freeze state.
	Options Options
}

// Interval is a loss interval as RFC 4342, section 8.6, reports it.
type Interval struct {
	Lossless uint32  // packets of the lossless part, which comes last
	Loss     uint32  // packets of the lossy part; 0 in the first interval of a connection
	Data     float64 // data length: what counts for p; whole on the wire
}

// ReportedIntervals is how many loss intervals a report holds: NINTERVAL + 1 (RFC 4342,
// section 8.6.1).
const ReportedIntervals = historyLength + 1

// Intervals are loss intervals, newest first.
type Intervals struct {
	// Skip counts the packets up to and including the report's Seq that belong to no
	// interval yet; at most 3.
	Skip uint8
	// Nonce echoes are always 0: ECN nonces are historic (RFC 8311, section 3.1).
	list [ReportedIntervals]Interval
	n    int
}

// Len is the number of intervals.
func (v *Intervals) Len() int { return v.n }

// At returns interval i, 0 being the newest.
func (v *Intervals) At(i int) Interval { return v.list[i] }

// Append adds an older interval and reports whether there was room.
func (v *Intervals) Append(i Interval) bool {
	if v.n == len(v.list) {
		return false
	}
	v.list[v.n] = i
	v.n++
	return true
}

// Reset empties the list.
func (v *Intervals) Reset() { v.n, v.Skip = 0, 0 }

// LossRate is the loss event rate p that the intervals give by RFC 5348, section 5.4; 0
// while the newest is the first of the connection.
func (v *Intervals) LossRate() float64 {
	if v.n < 2 {
		return 0
	}
	var lengths [ReportedIntervals]float64
	for i := range v.n {
		lengths[i] = max(v.list[i].Data, 1)
	}
	return 1 / meanInterval(lengths[:v.n])
}

// EventSeq is the sequence number with which the newest loss event began, for a report
// that acknowledges seq; 0 while nothing was lost.
func (v *Intervals) EventSeq(seq uint64) uint64 {
	if v.n < 2 {
		return 0
	}
	back := uint64(v.Skip) + uint64(v.list[0].Lossless) + uint64(v.list[0].Loss)
	if back > seq {
		return 0
	}
	return seq - back + 1
}

// Unwrap extends a sequence number of the given bits to 64 bits that never wrap: it
// returns the value nearest to near, in either direction, whose low bits are seq.
func Unwrap(near, seq uint64, bits uint) uint64 {
	shift := 64 - bits
	return near + uint64(int64((seq-near)<<shift)>>shift)
}
