package tfrc

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// A receiverTest drives a receiver alone.
type receiverTest struct {
	*testing.T
	r      *Receiver
	now    mihf.Time
	packet Packet // the template of what arrives
}

func newReceiverTest(t *testing.T, cfg ReceiverConfig) *receiverTest {
	t.Helper()
	rt := &receiverTest{T: t, r: NewReceiver(cfg), now: mihf.Time(time.Hour)}
	rt.packet.Bytes = 1000
	rt.packet.RTT = 100 * ms
	return rt
}

// get takes packets with the numbers given, each a millisecond after the one before, and
// returns how many of them asked for a report; each of those is made.
func (t *receiverTest) get(seqs ...uint64) (reports int) {
	for _, seq := range seqs {
		t.now = t.now.Add(ms)
		if due := t.r.Next().Due(t.now) && t.r.Advance(t.now); due {
			t.report()
			reports++
		}
		t.packet.Seq = seq
		if t.r.Receive(t.now, &t.packet) {
			t.report()
			reports++
		}
	}
	return reports
}

func (t *receiverTest) report() (r Report) {
	t.r.Report(t.now, &r)
	return r
}

func (t *receiverTest) span(from, to uint64) (reports int) {
	for seq := from; seq <= to; seq++ {
		reports += t.get(seq)
	}
	return reports
}

func (t *receiverTest) want(what string, lost, events uint64) {
	t.Helper()
	if t.r.Lost != lost || t.r.LossEvents != events {
		t.Errorf("%s: %d lost in %d loss events, want %d in %d", what, t.r.Lost, t.r.LossEvents, lost, events)
	}
}

// RFC 5348, section 5.1: "The loss of a packet is detected by the arrival of at least
// NDUPACK packets with a higher sequence number than the lost packet, for NDUPACK set to 3."
func TestThreeLaterPacketsMakeALoss(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	rt.span(1, 10)
	rt.get(12, 13)
	rt.want("two later packets", 0, 0)
	rt.get(11)
	rt.get(14, 15, 16, 17)
	rt.want("reordered by two", 0, 0)
	rt.get(20, 21, 19, 22)
	rt.want("three later packets, in any order", 1, 1)
	if d := rt.r.Duplicates; d != 0 {
		t.Errorf("%d duplicates", d)
	}
	rt.get(21, 5)
	rt.want("duplicates count nothing", 1, 1)
	if d := rt.r.Duplicates; d != 2 {
		t.Errorf("%d duplicates, want 2", d)
	}
}

// Loss history counts packets of all types: numbers that are taken by acknowledgements
// make no holes.
func TestOtherPacketsAreNoHoles(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: v})
		for seq := uint64(1); seq < 1000; seq++ {
			rt.packet.NonData = seq%3 == 0
			rt.get(seq)
		}
		rt.want(v.String(), 0, 0)
		if rt.r.Packets != 666 || rt.r.NonData != 333 {
			t.Errorf("%v: %d packets with data, %d without", v, rt.r.Packets, rt.r.NonData)
		}
	}
}

// RFC 4342, section 6.1: lost packets without data "may occur freely in the lossless part";
// "In the absence of better information, a receiver MUST conservatively assume that every
// lost packet was a data packet".
func TestLostPacketsWithoutData(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3})
	rt.span(1, 10)
	rt.packet.NonDataBefore = 2
	rt.get(13) // 11 and 12 had no data
	rt.packet.NonDataBefore = 0
	rt.get(14, 15, 16)
	rt.want("known to be without data", 0, 0)
	rt.packet.NonDataBefore = 1
	rt.get(20) // 17 and 18 may have had data, 19 did not
	rt.packet.NonDataBefore = 0
	rt.get(21, 22, 23)
	rt.want("not known", 2, 1)
	r := rt.report()
	want := []Interval{{Lossless: 5, Loss: 2, Data: 6}, {Lossless: 16, Loss: 0, Data: r.Intervals.At(1).Data}}
	if diff := cmp.Diff(want, listed(&r.Intervals)); diff != "" {
		t.Errorf("intervals (-want +got):\n%s", diff)
	}
}

func listed(v *Intervals) (l []Interval) {
	for i := range v.Len() {
		l = append(l, v.At(i))
	}
	return l
}

// RFC 5348, section 5.1: "the late packet can fill the hole in TFRC's reception record, and
// the receiver can recalculate the loss event rate"; section 6: a report goes out "whenever
// an out-of-order data packet is received that removes a loss event from the history".
func TestLatePacketsTakeLossesBack(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	rt.span(1, 200)
	rt.span(203, 400)
	rt.want("two lost", 2, 1)
	if n := rt.get(201); n != 0 {
		t.Error("a report although the loss event stands")
	}
	rt.want("one is back", 1, 1)
	if n := rt.get(202); n != 1 {
		t.Error("no report although the loss event is gone")
	}
	rt.want("both are back", 0, 0)
	if p := rt.r.LossRate(); p != 0 {
		t.Errorf("p = %v, although nothing was lost", p)
	}
	rt.span(402, 600)
	rt.span(602, 800)
	before := rt.report()
	rt.get(601)
	after := rt.report()
	rt.want("the newer of two is back", 1, 1)
	if after.LossRate > before.LossRate || after.Intervals.EventSeq(after.Seq) != 401 {
		t.Errorf("p %v became %v, newest event at %d", before.LossRate, after.LossRate, after.Intervals.EventSeq(after.Seq))
	}
}

// RFC 5348, section 5.2: "If T_old + R >= T_new, then S_new is part of the existing loss
// event. Otherwise, S_new is the first packet in a new loss event."
func TestLossesOfARoundTripAreOneEvent(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{}) // R = 100 packets
	rt.span(1, 1000)
	rt.span(1002, 1050)
	rt.span(1052, 1098)
	rt.span(1100, 1200)
	rt.want("three losses in a round-trip", 3, 1)
	rt.span(1202, 1300)
	rt.want("one after it", 4, 2)
}

// A hole longer than a round-trip is as many loss events as it has round-trips, by the
// interpolated times of arrival (RFC 5348, section 5.2); by window counters it is one.
func TestLongHole(t *testing.T) {
	for v, events := range map[Variant]uint64{RFC5348: 5, CCID3: 1} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: v})
		rt.span(1, 1000)
		rt.now = rt.now.Add(449 * ms)
		rt.span(1451, 1500) // 450 packets and milliseconds: at 1001, 1102, 1203, 1304, 1405
		rt.want(v.String(), 450, events)
	}
}

// However long a hole is, it costs the time of nine loss events.
func TestVeryLongHole(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	rt.span(1, 1000)
	rt.now = rt.now.Add(1e6 * time.Hour)
	rt.span(1e15, 1e15+10)
	rt.want("a million hours", 1e15-1001, historyLength+1)
}

// RFC 4342, section 10.2: "the receiver only considers losses X and Y as separate loss
// events if there exists some packet S received between X and Y, with the distance from
// C(X_prev) to C(S) greater than 4", and section 6.1: "the length of the lossy part MUST be
// less than or equal to 1 RTT."
func TestCountersTellLossEventsApart(t *testing.T) {
	for quarters, events := range map[int]uint64{3: 1, 4: 1, 5: 2, 15: 2, 16: 2, 40: 2} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3})
		seq := uint64(100)
		rt.span(1, seq)
		seq++ // lost
		for range quarters {
			rt.packet.WindowCounter = (rt.packet.WindowCounter + 1) % 16
			rt.get(seq+1, seq+2)
			seq += 2
		}
		rt.get(seq+2, seq+3, seq+4, seq+5)
		rt.want("", 2, events)
	}
}

// RFC 5348, section 5.1: "a marked packet is detected as a congestion event as soon as it
// arrives"; "The first congestion event detected begins with the lost packet n."
func TestMarks(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: v})
		rt.span(1, 200)
		rt.get(202)
		rt.packet.Marked = true
		if rt.get(203) != 1 {
			t.Errorf("%v: no report on a mark", v)
		}
		rt.packet.Marked = false
		rt.want("a loss and a mark", 1, 1)
		r := rt.report()
		if got := r.Intervals.EventSeq(r.Seq); got != 201 {
			t.Errorf("%v: the event begins with %d, want the lost packet", v, got)
		}
		if got := r.Intervals.At(0); got.Loss != 3 || got.Lossless != 0 {
			t.Errorf("%v: interval %+v, want a lossy part of three packets", v, got)
		}
		rt.get(201)
		if rt.r.LossEvents != 1 {
			t.Errorf("%v: a late packet took back an event that has a mark", v)
		}
		rt.packet.Marked, rt.packet.NonData = true, true
		rt.get(204)
		if rt.r.Marked != 1 {
			t.Errorf("%v: a mark on a packet without data counts", v)
		}
	}
}

// RFC 5348, section 6.3.1: "This section describes the procedure that MUST be used for
// initializing the loss history after the first loss event": the interval that gives
// "the maximum value of X_recv so far", within 5 %.
func TestFirstLoss(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: v, RTT: 100 * ms})
		for seq := uint64(1); seq <= 1000; seq++ {
			rt.packet.WindowCounter = uint8(seq / 25 % 16)
			rt.get(seq)
		}
		rt.get(1002, 1003, 1004) // a thousand packets a second, so far
		near(t, v.String(), float64(Throughput(1000, rt.r.RTT(), rt.r.LossRate())), 1e6, 0.05)
	}
}

// RFC 5348, section 6.3.1: "The TFRC receiver uses 0.5/R packets per second as the minimum
// value for X_target", and that where the first packets are lost.
func TestFirstPacketLost(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{FirstSeq: 1})
	rt.get(2, 3, 4)
	rt.want("the first packet is missing", 1, 1)
	r := rt.report()
	near(t, "rate", float64(Throughput(1000, 100*ms, r.LossRate)), 0.5*1000/0.1, 0.05)

	rt = newReceiverTest(t, ReceiverConfig{})
	rt.get(2, 3, 4, 5)
	rt.want("the first number is not known", 0, 0)
}

// RFC 5348, section 5.3: "if that loss event started with packet sequence number S_A, and
// S_C is the highest received sequence number so far, then the size of I_0 is
// S_C - S_A + 1."
func TestIntervalSizes(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	rt.span(1, 999)
	rt.span(1001, 1499) // lost: 1000
	rt.span(1501, 1700) // and 1500
	r := rt.report()
	if a, b := r.Intervals.At(0).Data, r.Intervals.At(1).Data; a != 201 || b != 500 {
		t.Errorf("I_0 = %v, I_1 = %v; want 201 and 500", a, b)
	}
	near(t, "p by the intervals", r.Intervals.LossRate(), r.LossRate, 1e-9)
}

// RFC 4342, section 6.1.1: "the minimum data length is one packet."
func TestIntervalWithoutData(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3})
	rt.span(1, 100)
	rt.packet.NonData = true
	rt.span(102, 200)
	if got := rt.report().Intervals; got.At(0).Data != 1 {
		t.Errorf("data length %v of an interval with one packet that may have had data", got.At(0).Data)
	}
}

// RFC 4342, section 8.6.1: "The options MUST contain information about at least the most
// recent NINTERVAL + 1 = 9 loss intervals"; Skip Length is at most NDUPACK.
func TestReportedIntervals(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3, FirstSeq: 1})
	r := Report{}
	seq := uint64(1)
	for events := range 12 {
		for range 20 {
			rt.packet.WindowCounter = (rt.packet.WindowCounter + 1) % 16
			rt.get(seq)
			seq++
		}
		r = rt.report()
		if got, want := r.Intervals.Len(), min(events+1, 9); got != want {
			t.Fatalf("%d intervals after %d loss events, want %d", got, events, want)
		}
		seq++ // lost
	}
	total := uint64(r.Intervals.Skip)
	for i := range r.Intervals.Len() {
		total += uint64(r.Intervals.At(i).Lossless + r.Intervals.At(i).Loss)
	}
	if want := uint64(9 * 21); total != want {
		t.Errorf("the intervals cover %d packets, want %d", total, want)
	}
	rt.get(seq, seq+1)
	if r := rt.report(); r.Intervals.Skip != 3 {
		t.Errorf("skip length %d with a hole of one before two packets, want 3", r.Intervals.Skip)
	}
	rt = newReceiverTest(t, ReceiverConfig{Variant: CCID3, FirstSeq: 1})
	rt.get(1, 100)
	if r := rt.report(); r.Intervals.Skip > dupThreshold {
		t.Errorf("skip length %d, at most %d is allowed", r.Intervals.Skip, dupThreshold)
	}
}

// The example of RFC 4342, section 8.6.2.
func TestExampleOfIntervals(t *testing.T) {
	v := Intervals{Skip: 2}
	for _, i := range []Interval{{10, 1, 10}, {8, 5, 10}, {8, 1, 8}, {10, 0, 15}} {
		v.Append(i)
	}
	if got := v.EventSeq(44); got != 32 {
		t.Errorf("L3 begins with %d, want 32", got)
	}
	near(t, "p", v.LossRate(), 3.0/33, 1e-9) // S1 = 10 + 8 + 15 over three intervals
}

// RFC 5348, section 6.3: "When the first packet is received: Set p = 0. Set X_recv = 0.
// Prepare and send a feedback packet. Set the feedback timer to expire after R_i seconds",
// and without an estimate "a feedback packet for every arriving data packet".
func TestFirstReports(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	rt.packet.RTT = 0
	if n := rt.get(1, 2, 3); n != 3 {
		t.Errorf("%d reports on three packets without a round-trip time", n)
	}
	rt = newReceiverTest(t, ReceiverConfig{})
	rt.now = rt.now.Add(ms)
	rt.packet.Seq, rt.packet.SentAt = 7, 42
	if !rt.r.Receive(rt.now, &rt.packet) {
		t.Fatal("no report on the first packet")
	}
	rt.now = rt.now.Add(3 * ms)
	got := rt.report()
	want := Report{Seq: 7, SentAt: 42, Delay: 3 * ms}
	want.Intervals.Append(Interval{Lossless: 1})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Intervals{})); diff != "" {
		t.Errorf("first report (-want +got):\n%s", diff)
	}
	if got := rt.r.Next().Sub(rt.now); got != 100*ms {
		t.Errorf("next report in %v, want 100ms", got)
	}
}

// RFC 5348, section 6.2: one report a round-trip; "If no data packets have been received
// since the last feedback was sent, then no feedback packet is sent", and the next packet
// is reported at once (section 6.1, step 4).
func TestReportsByTimer(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	if n := rt.span(1, 1000); n < 10 || n > 11 {
		t.Errorf("%d reports in ten round-trips", n)
	}
	rt.now = rt.now.Add(100 * ms)
	if rt.r.Advance(rt.now) {
		rt.report()
	}
	rt.now = rt.now.Add(time.Second)
	if rt.r.Advance(rt.now) || rt.r.Next() != 0 {
		t.Error("a report, or a timer, without data")
	}
	if n := rt.get(1001); n != 1 {
		t.Error("no report on the first packet after a silence")
	}
}

// RFC 4342, section 10.3: "If the receiver receives a data packet with a window counter
// value greater than or equal to last_counter + 4, then the receiver sends a new feedback
// packet."
func TestReportsByCounter(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3, RTT: time.Hour})
	rt.get(1)
	var at []int
	for i := 1; i <= 40; i++ {
		rt.packet.WindowCounter = uint8(i % 16)
		if rt.get(uint64(i+1)) > 0 {
			at = append(at, i)
		}
	}
	if diff := cmp.Diff([]int{4, 8, 12, 16, 20, 24, 28, 32, 36, 40}, at); diff != "" {
		t.Errorf("counters with a report (-want +got):\n%s", diff)
	}
	rt.packet.WindowCounter = (40 + 5) % 16 // less than a packet a round-trip: each is reported
	if rt.get(43) != 1 {
		t.Error("no report on a packet five quarters later")
	}
}

// What counters leave over is reported two round-trips later, so that the sender's timer
// does not expire for the want of packets.
func TestLeftOverIsReported(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3, RTT: 100 * ms})
	rt.get(1)
	if rt.r.Next() != 0 {
		t.Error("a timer without data to report")
	}
	rt.get(2, 3)
	rt.now = rt.r.Next()
	if !rt.r.Advance(rt.now) {
		t.Error("packets without a report")
	}
	if got := rt.now.Sub(mihf.Time(time.Hour).Add(ms)); got != 200*ms {
		t.Errorf("reported %v after the last report, want two round-trips", got)
	}
}

// RFC 5348, section 6.2: X_recv is measured over the last round-trip; RFC 4342, section
// 8.3: over "the larger of the estimated round-trip time and the time since the last
// Receive Rate option was sent."
func TestReceiveRate(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: v, RTT: 100 * ms})
		rates := []Rate{}
		for seq := uint64(1); seq <= 1000; seq++ {
			rt.packet.WindowCounter = uint8(seq / 25 % 16)
			rt.now = rt.now.Add(ms)
			rt.packet.Seq = seq
			due := rt.r.Next().Due(rt.now) && rt.r.Advance(rt.now)
			if rt.r.Receive(rt.now, &rt.packet) || due {
				rates = append(rates, rt.report().ReceiveRate)
			}
		}
		if rates[0] != 0 {
			t.Errorf("%v: the first report has X_recv %v", v, rates[0])
		}
		for _, x := range rates[1:] {
			near(t, v.String(), float64(x), 1e6, 0.05)
		}
	}
}

// The first report after a pause: RFC 5348's X_recv is the packet in a round-trip, RFC
// 4342's covers the whole pause.
func TestReceiveRateAfterPause(t *testing.T) {
	for v, want := range map[Variant]float64{RFC5348: 1000 / 0.15, CCID3: 1000 / 10.05} {
		rt := newReceiverTest(t, ReceiverConfig{Variant: v, RTT: 100 * ms})
		for seq := uint64(1); seq <= 100; seq++ {
			rt.packet.WindowCounter = uint8(seq / 25 % 16)
			rt.get(seq)
		}
		rt.report()
		rt.now = rt.now.Add(100 * ms)
		rt.r.Advance(rt.now)
		rt.now = rt.now.Add(9950 * ms)
		rt.packet.Seq, rt.packet.WindowCounter = 101, (rt.packet.WindowCounter+5)%16
		if !rt.r.Receive(rt.now, &rt.packet) {
			t.Fatalf("%v: no report", v)
		}
		near(t, v.String(), float64(rt.report().ReceiveRate), want, 0.01)
	}
}

// RFC 4342, section 8.1: "(T(K+D) - T(K)) * 4/D MAY serve as an estimate of the round-trip
// time"; packets five apart give none.
func TestRoundTripTimeByCounters(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3})
	rt.packet.RTT = 0
	for i := range uint64(400) {
		rt.packet.WindowCounter = uint8(i / 5 % 16) // a quarter is 5 ms
		rt.get(i + 1)
	}
	if got := rt.r.RTT(); got.Round(ms) != 20*ms {
		t.Errorf("R = %v, want 20ms", got)
	}
	rt = newReceiverTest(t, ReceiverConfig{Variant: CCID3, RTT: 70 * ms})
	rt.packet.RTT = 0
	for i := range uint64(40) {
		rt.now = rt.now.Add(time.Second)
		rt.packet.WindowCounter = uint8(i * 5 % 16)
		rt.get(i + 1)
	}
	if got := rt.r.RTT(); got != 70*ms {
		t.Errorf("R = %v, want that of the handshake", got)
	}
}

// RFC 5348, section 5.5: history discounting raises the weight of a long current interval.
func TestHistoryDiscounting(t *testing.T) {
	with, without := newReceiverTest(t, ReceiverConfig{HistoryDiscounting: true}), newReceiverTest(t, ReceiverConfig{})
	for _, rt := range []*receiverTest{with, without} {
		seq := uint64(1)
		for range 9 {
			rt.span(seq, seq+198)
			seq += 200 // one in 200 is lost
		}
		rt.span(seq, seq+198)
		near(t, "p while losses come evenly", rt.r.LossRate(), 1.0/200, 0.05)
		rt.span(seq+199, seq+199+800)
	}
	// I_0 = 1199, all others 200: DF = 2*200/1199, p = (1 + 5 DF)/(1199 + 1000 DF)
	df := 400.0 / with.r.history.events[0].dataLength(with.r.highest+1)
	i0 := 400 / df
	near(t, "with", with.r.LossRate(), (1+5*df)/(i0+1000*df), 0.01)
	near(t, "without", without.r.LossRate(), 6/(i0+1000), 0.01)
	if d := math.Abs(with.r.LossRate() - without.r.LossRate()); d < 1e-4 {
		t.Error("discounting makes no difference")
	}
}
