package tfrc

import (
	"fmt"
	"math"
	"testing"
	"time"

	"mihf.dev/mihf"
)

const ms = time.Millisecond

// A senderTest drives a sender alone.
type senderTest struct {
	*testing.T
	s   *Sender
	now mihf.Time
	seq uint64
	h   Header
}

func newSenderTest(t *testing.T, cfg SenderConfig) *senderTest {
	t.Helper()
	if cfg.SegmentBytes == 0 {
		cfg.SegmentBytes = 1000
	}
	return &senderTest{T: t, s: NewSender(cfg), now: mihf.Time(time.Hour)}
}

func (t *senderTest) advance(d time.Duration) {
	t.now = t.now.Add(d)
	t.s.Advance(t.now)
}

// send sends a packet now, allowed or not.
func (t *senderTest) send() {
	t.seq++
	t.s.Send(t.now, t.seq, int(t.s.SegmentBytes()), &t.h)
}

// burst sends what is allowed now, at most limit packets.
func (t *senderTest) burst(limit int) int {
	n := 0
	for ; n < limit && t.s.NextSend(t.now).Due(t.now); n++ {
		t.send()
	}
	return n
}

// greedy sends for d all that is allowed, and returns how many packets that were.
func (t *senderTest) greedy(d time.Duration) int {
	n := 0
	for end := t.now.Add(d); ; n++ {
		at := t.s.NextSend(t.now)
		for next := t.s.Next(); !next.IsZero() && next <= min(at, end); next = t.s.Next() {
			t.now = max(t.now, next)
			t.s.Advance(t.now)
			at = t.s.NextSend(t.now)
		}
		if at > end {
			t.now = end
			return n
		}
		t.now = max(t.now, at)
		t.send()
	}
}

// report is a report on the newest packet, as if it had been sent rtt ago.
func (t *senderTest) report(rtt time.Duration, received Rate, p float64) {
	r := Report{Seq: t.seq, SentAt: t.now.Add(-rtt), ReceiveRate: received, LossRate: p}
	t.s.Feedback(t.now, &r)
}

func (t *senderTest) wantRate(what string, want float64) {
	t.Helper()
	near(t.T, what, float64(t.s.Rate()), want, 1e-6)
}

func (t *senderTest) wantTimer(what string, after time.Duration) {
	t.Helper()
	if got := t.s.Next().Sub(t.now); got.Round(time.Microsecond) != after.Round(time.Microsecond) {
		t.Errorf("%s: timer in %v, want %v", what, got, after)
	}
}

// steady brings the sender to rate x with loss events and the given round-trip time.
func (t *senderTest) steady(x Rate, rtt time.Duration) {
	t.Helper()
	p := LossRate(t.s.SegmentBytes(), rtt, x)
	t.send()
	for range 8 {
		t.advance(rtt)
		t.send()
		t.report(rtt, x, p)
	}
	t.greedy(rtt) // nothing is left unused
	t.report(rtt, x, p)
	near(t.T, "steady rate", float64(t.s.Rate()), float64(x), 1e-3)
}

// RFC 5348, section 4.2: "the value of X is set to s bytes per second, for segment size s,
// the nofeedback timer is set to expire after two seconds".
func TestStartWithoutRoundTripTime(t *testing.T) {
	st := newSenderTest(t, SenderConfig{})
	if st.s.Next() != 0 || !st.s.NextSend(st.now).Due(st.now) {
		t.Error("a sender that has sent nothing has a timer, or may not send")
	}
	st.send()
	st.wantRate("initial", 1000)
	st.wantTimer("initial", 2*time.Second)
	if got := st.s.NextSend(st.now).Sub(st.now); got != time.Second {
		t.Errorf("next packet after %v, want 1 s", got)
	}
}

// RFC 5348, section 4.2: "initial_rate = W_init/R; W_init = min(4*MSS, max(2*MSS, 4380))".
func TestInitialRate(t *testing.T) {
	for mss, window := range map[int]float64{500: 2000, 1000: 4000, 1460: 4380, 2190: 4380, 3000: 6000} {
		byReport := newSenderTest(t, SenderConfig{SegmentBytes: mss})
		byReport.send()
		byReport.advance(100 * ms)
		byReport.report(100*ms, 0, 0)
		byReport.wantRate(fmt.Sprint("first report, MSS ", mss), window/0.1)

		handshake := newSenderTest(t, SenderConfig{SegmentBytes: mss, RTT: 200 * ms})
		handshake.wantRate(fmt.Sprint("handshake, MSS ", mss), window/0.2)
		handshake.send()
		handshake.wantTimer("handshake", max(800*ms, time.Duration(2*float64(mss)/window*0.2*1e9)))
	}
}

// RFC 5348, section 4.3, step 4: "initial slow-start: X = max(min(2*X, recv_limit),
// initial_rate)", once a round-trip, and without a limit in the first two.
func TestSlowStart(t *testing.T) {
	st := newSenderTest(t, SenderConfig{})
	st.send()
	st.advance(100 * ms)
	st.report(100*ms, 0, 0)
	st.greedy(130 * ms)
	st.report(100*ms, 10000, 0)
	st.wantRate("doubled, not limited by the first reports", 80000)
	st.report(100*ms, 40000, 0)
	st.wantRate("not twice in a round-trip", 80000)
	st.greedy(130 * ms)
	st.report(100*ms, 30000, 0)
	st.wantRate("doubled, or limited by what was received", 80000)
	st.greedy(201 * ms)
	st.report(100*ms, 30000, 0)
	st.wantRate("limited by what was received", 60000)
	st.greedy(201 * ms)
	st.report(100*ms, 100, 0)
	st.greedy(201 * ms)
	st.report(100*ms, 100, 0)
	st.wantRate("never below the initial rate", 40000)
}

// RFC 5348, section 4.3, step 4: "X = max(min(X_Bps, recv_limit), s/t_mbi)".
func TestCongestionAvoidance(t *testing.T) {
	for _, c := range []struct {
		name     string
		p        float64
		received Rate
		want     float64
	}{
		{"equation", 0.01, 1e9, float64(Throughput(1000, 100*ms, 0.01))},
		{"received", 0.0001, 30000, 60000},
		{"floor", 1, 1, 1000 / 64.0},
	} {
		st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
		st.send()
		for range 5 {
			st.greedy(201 * ms)
			st.report(100*ms, c.received, c.p)
		}
		st.wantRate(c.name, c.want)
	}
}

// RFC 5348, section 4.3: X_recv_set holds "values with timestamps from the two most recent
// round-trip times", and the greatest counts.
func TestReceiveRatesOfTwoRoundTrips(t *testing.T) {
	st := newSenderTest(t, SenderConfig{})
	st.steady(50000, 100*ms)
	st.greedy(150 * ms)
	st.report(100*ms, 10000, 1e-6)
	st.wantRate("the older rate still counts", 100000)
	st.greedy(150 * ms)
	st.report(100*ms, 10000, 1e-6)
	st.wantRate("it is older than two round-trips", 20000)
}

// RFC 5348, section 4.3, steps 1 and 2: "R_sample = (t_now - t_recvdata) - t_delay" and
// "R = q*R + (1-q)*R_sample".
func TestRoundTripTime(t *testing.T) {
	st := newSenderTest(t, SenderConfig{})
	st.send()
	st.advance(412 * ms)
	r := Report{Seq: st.seq, SentAt: st.now.Add(-412 * ms), Delay: 400 * ms}
	st.s.Feedback(st.now, &r)
	if st.s.RTT() != 12*ms {
		t.Fatalf("first sample: R = %v, want 12ms", st.s.RTT())
	}
	st.send()
	st.advance(1022 * ms)
	r = Report{Seq: st.seq, Delay: time.Second, ReceiveRate: 1000} // times are looked up
	st.s.Feedback(st.now, &r)
	if st.s.RTT().Round(time.Microsecond) != 13*ms {
		t.Errorf("R = %v, want 0.9*12 + 0.1*22 ms", st.s.RTT())
	}
	st.send()
	st.advance(20 * ms)
	r = Report{Seq: st.seq, Delay: time.Second, ReceiveRate: 1000} // cannot be
	st.s.Feedback(st.now, &r)
	if st.s.RTT().Round(time.Microsecond) != 13*ms {
		t.Errorf("R = %v after a delay that is longer than the round-trip", st.s.RTT())
	}
}

// RFC 5348, section 4.3, steps 3 and 6: "RTO = max(4*R, 2*s/X)"; "Reset the nofeedback
// timer to expire after RTO seconds."
func TestNofeedbackTimerIsSet(t *testing.T) {
	st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	st.steady(1e6, 100*ms)
	st.wantTimer("many packets a round-trip", 400*ms)
	st.steady(2000, 100*ms)
	st.wantTimer("few packets", time.Second)
}

// RFC 5348, section 4.4: "If the nofeedback timer expires, the sender MUST perform the
// following actions".
func TestNofeedbackTimerExpires(t *testing.T) {
	const rtt = 100 * ms
	for _, c := range []struct {
		name  string
		p     float64
		x     Rate // before
		idle  bool
		times int
		want  float64
	}{
		{"no loss yet", 0, 160000, false, 1, 80000},
		{"limited by what was received", 1e-6, 200000, false, 1, 100000},
		{"limited by the equation", 0.01, Throughput(1000, rtt, 0.01), false, 1, float64(Throughput(1000, rtt, 0.01)) / 2},
		{"three times", 0.01, Throughput(1000, rtt, 0.01), false, 3, float64(Throughput(1000, rtt, 0.01)) / 8},
		{"at most a segment in 64 s", 0.01, Throughput(1000, rtt, 0.01), false, 30, 1000 / 64.0},
		{"idle, fast", 1e-6, 200000, true, 1, 100000},
		{"idle, down to the initial rate", 1e-6, 200000, true, 30, 50000},
		{"idle, slow", 0.05, Throughput(1000, rtt, 0.05), true, 1, float64(Throughput(1000, rtt, 0.05))},
		{"idle, no loss yet", 0, 160000, true, 30, 40000},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
			st.send()
			for range 10 {
				st.greedy(rtt)
				received := c.x / 2
				if c.p > 1e-5 {
					received = c.x
				}
				st.report(rtt, received, c.p)
			}
			st.wantRate("before", float64(c.x))
			for range c.times {
				if !c.idle {
					st.send()
				}
				st.advance(st.s.Next().Sub(st.now))
			}
			st.wantRate("after", c.want)
			st.wantTimer("restarted", max(4*rtt, interval(2000, st.s.Rate())))
		})
	}
}

// RFC 5348, section 4.4: without a round-trip time and reports "Halve the allowed sending
// rate", unless the sender was idle.
func TestNofeedbackTimerBeforeAnyReport(t *testing.T) {
	st := newSenderTest(t, SenderConfig{})
	st.send()
	st.advance(2 * time.Second)
	st.wantRate("first", 500)
	st.wantTimer("first", 4*time.Second)
	st.advance(4 * time.Second) // idle
	st.wantRate("idle", 500)
	for range 20 {
		st.send()
		st.advance(st.s.Next().Sub(st.now))
	}
	st.wantRate("floor", 1000/64.0)
}

// The model of a disconnection: the sender goes on without reports; what it sends is lost.
// Packets counted from the last start of the nofeedback timer, for a rate of the whole
// capacity.
func TestDisconnection(t *testing.T) {
	for _, c := range []struct {
		mbps    float64
		rtt     time.Duration
		seconds float64
		halved  int
		lost    float64
	}{
		{10, ms, 1, 10, 31.9},
		{10, ms, 3, 11, 35.2},
		{10, ms, 10, 13, 38.6},
		{10, ms, 60, 16, 43.8},
		{10, 10 * ms, 1, 9, 204.8},
		{10, 10 * ms, 60, 16, 217.2},
		{10, 100 * ms, 1, 2, 1625},
		{10, 100 * ms, 3, 7, 1988},
		{10, 100 * ms, 60, 16, 2010},
		{54, ms, 1, 12, 119.9},
		{54, ms, 60, 18, 131.7},
		{54, 10 * ms, 60, 18, 1097},
		{54, 100 * ms, 3, 7, 10737},
		{54, 100 * ms, 60, 18, 10810},
		{100, ms, 1, 13, 211.9},
		{100, ms, 60, 19, 223.7},
		{100, 10 * ms, 60, 19, 2017},
		{100, 100 * ms, 1, 2, 16250},
		{100, 100 * ms, 60, 19, 20010},
	} {
		t.Run(fmt.Sprintf("%v Mb/s %v %v s", c.mbps, c.rtt, c.seconds), func(t *testing.T) {
			st := newSenderTest(t, SenderConfig{SegmentBytes: 500, NoOscillationReduction: true})
			x := Rate(c.mbps * 1e6 / 8)
			st.steady(x, c.rtt)
			lost := st.greedy(time.Duration(c.seconds * 1e9))
			// A packet is a whole one here, and X is known to 1e-3 only.
			if diff := math.Abs(float64(lost) - c.lost); diff > 2+c.lost*0.06 {
				t.Errorf("lost %d, want %.1f", lost, c.lost)
			}
			if n := math.Round(math.Log2(float64(x / st.s.Rate()))); int(n) != c.halved {
				t.Errorf("halved %v times, want %d", n, c.halved)
			}
		})
	}
}

// RFC 5348, section 4.5: "X_inst = X * R_sqmean / sqrt(R_sample)".
func TestOscillationReduction(t *testing.T) {
	on := newSenderTest(t, SenderConfig{})
	on.steady(100000, 100*ms)
	on.advance(100 * ms)
	on.report(200*ms, 100000, on.s.LossRate())
	mean := 0.9*math.Sqrt(0.1) + 0.1*math.Sqrt(0.2)
	near(t, "X_inst", float64(on.s.PacedRate()), float64(on.s.Rate())*mean/math.Sqrt(0.2), 1e-4)

	off := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	off.steady(100000, 100*ms)
	off.advance(100 * ms)
	off.report(200*ms, 100000, off.s.LossRate())
	if off.s.PacedRate() != off.s.Rate() {
		t.Errorf("paced at %v, allowed %v, although switched off", off.s.PacedRate(), off.s.Rate())
	}
}

// RFC 5348, section 4.6: "a TFRC implementation MUST prevent bursts of arbitrary size.
// This limit MUST be less than or equal to one round-trip time's worth of packets."
func TestBursts(t *testing.T) {
	for _, c := range []struct {
		max  time.Duration
		want int
	}{{0, 10}, {time.Hour, 10}, {30 * ms, 3}, {ms, 1}} {
		st := newSenderTest(t, SenderConfig{MaxBurst: c.max, NoOscillationReduction: true})
		st.steady(100000, 100*ms) // ten packets a round-trip
		st.now = st.now.Add(350 * ms)
		if got := st.burst(1000); got < c.want || got > c.want+1 {
			t.Errorf("MaxBurst %v: burst of %d packets, want %d and the one that is due", c.max, got, c.want)
		}
		// A burst is on account of what was not sent: on the whole the rate holds.
		if got := st.greedy(350 * ms); got > 36 {
			t.Errorf("MaxBurst %v: %d packets in the 350 ms after the burst", c.max, got)
		}
	}
}

// RFC 5348, section 8.3: "t_delta = min(t_ipi, t_gran, rtt)/2".
func TestSendingEarly(t *testing.T) {
	for _, c := range []struct{ granularity, early time.Duration }{
		{0, 0}, {4 * ms, 2 * ms}, {time.Second, 5 * ms},
	} {
		st := newSenderTest(t, SenderConfig{Granularity: c.granularity, NoOscillationReduction: true})
		st.steady(100000, 100*ms)
		st.burst(100)
		exact := st.s.gate
		if got := exact.Sub(st.s.NextSend(st.now)); got.Round(ms/10) != c.early {
			t.Errorf("granularity %v: early by %v, want %v", c.granularity, got, c.early)
		}
	}
}

// RFC 5348, section 4.3: what was received in a data-limited interval does not lower the
// rate; a loss in it does.
func TestDataLimited(t *testing.T) {
	trickle := func(st *senderTest, rtts int) {
		for range rtts {
			st.advance(100 * ms)
			st.send()
			st.s.Feedback(st.now, &Report{Seq: st.seq - 1, ReceiveRate: 10000, LossRate: st.s.LossRate()})
		}
	}
	st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	st.steady(100000, 100*ms)
	x := float64(st.s.Rate())
	trickle(st, 10)
	near(t, "rate after ten data-limited round-trips", float64(st.s.Rate()), x, 1e-6)

	st.advance(100 * ms)
	st.send()
	st.s.Feedback(st.now, &Report{Seq: st.seq - 1, ReceiveRate: 10000, LossRate: st.s.LossRate() * 1.0001})
	near(t, "rate after a loss in one", float64(st.s.Rate()), x/2, 1e-3)
	limited := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	limited.steady(100000, 100*ms)
	trickle(limited, 3)
	limited.advance(100 * ms)
	limited.send()
	limited.s.Feedback(limited.now, &Report{Seq: limited.seq - 1, ReceiveRate: 80000, LossRate: limited.s.LossRate() * 1.0001})
	near(t, "rate after a loss in one that was nearly full", float64(limited.s.Rate()), 0.85*80000, 1e-3)

	for range 3 { // at full rate what is received counts again
		st.greedy(100 * ms)
		st.s.Feedback(st.now, &Report{Seq: st.seq, SentAt: st.now.Add(-100 * ms), ReceiveRate: 10000, LossRate: st.s.LossRate()})
	}
	near(t, "rate when all is used and little arrives", float64(st.s.Rate()), 20000, 1e-6)
}

// RFC 5348, section 4.1: "the sender SHOULD estimate the segment size, s, as the average
// segment size over the last four loss intervals."
func TestSegmentSize(t *testing.T) {
	s := NewSender(SenderConfig{MaxSegmentBytes: 1400})
	if s.SegmentBytes() != 1400 {
		t.Errorf("before anything was sent: %v", s.SegmentBytes())
	}
	var h Header
	now, seq := mihf.Time(time.Hour), uint64(0)
	for interval := range 6 {
		size := 1000
		if interval >= 2 {
			size = 100
		}
		for range 160 {
			seq++
			now = now.Add(ms)
			s.Send(now, seq, size, &h)
		}
		r := Report{Seq: seq, LossRate: 0.01, ReceiveRate: 1000}
		r.Intervals.Append(Interval{Lossless: 10, Loss: 1, Data: 11}) // a new event each time
		r.Intervals.Append(Interval{Lossless: 100, Data: 100})
		now = now.Add(ms)
		s.Feedback(now, &r)
	}
	if s.SegmentBytes() != 100 {
		t.Errorf("four loss intervals after the change of size: %v, want 100", s.SegmentBytes())
	}
}

// What cannot be a report of this connection changes nothing.
func TestReportsThatAreIgnored(t *testing.T) {
	for name, spoil := range map[string]func(r *Report){
		"older than another":   func(r *Report) { r.Seq = 1 },
		"of what was not sent": func(r *Report) { r.Seq += 10 },
		"p is no number":       func(r *Report) { r.LossRate = math.NaN() },
		"p is negative":        func(r *Report) { r.LossRate = -1 },
		"rate is no number":    func(r *Report) { r.ReceiveRate = Rate(math.NaN()) },
	} {
		st := newSenderTest(t, SenderConfig{})
		st.steady(50000, 100*ms)
		x, timer := st.s.Rate(), st.s.Next()
		r := Report{Seq: st.seq, SentAt: st.now.Add(-100 * ms), ReceiveRate: 100, LossRate: 0.5}
		spoil(&r)
		st.s.Feedback(st.now.Add(ms), &r)
		if st.s.Rate() != x || st.s.Next() != timer {
			t.Errorf("%s: changed the rate from %v to %v", name, x, st.s.Rate())
		}
	}
}

// Faster restart is off unless asked for, and bounded by what was received before.
func TestFasterRestart(t *testing.T) {
	for _, faster := range []bool{false, true} {
		st := newSenderTest(t, SenderConfig{FasterRestart: faster, NoOscillationReduction: true})
		st.steady(400000, 100*ms)
		for range 20 { // idle
			st.advance(st.s.Next().Sub(st.now))
		}
		st.send()
		for _, c := range []struct {
			received Rate
			off, on  float64
		}{{30000, 60000, 120000}, {60000, 120000, 240000}, {150000, 300000, 400000}, {400000, 400000, 400000}} {
			st.greedy(201 * ms)
			st.report(100*ms, c.received, st.s.LossRate())
			want := c.off
			if faster {
				want = c.on
			}
			near(t, fmt.Sprintf("faster %v, received %v", faster, c.received), float64(st.s.Rate()), want, 1e-2)
		}
	}
}

// RFC 4342, section 8.1: the window counter moves on by one a quarter round-trip, by five
// at most; "The sender MUST avoid wrapping CCVal on adjacent packets"; "after receiving an
// acknowledgement for a packet sent with window counter WC, the sender SHOULD increase its
// window counter, if necessary, so that subsequent packets have window counter value at
// least (WC + 4) mod 16."
func TestWindowCounter(t *testing.T) {
	st := newSenderTest(t, SenderConfig{Variant: CCID3, RTT: 100 * ms})
	want := func(what string, counter uint8) {
		t.Helper()
		st.send()
		if st.h.WindowCounter != counter {
			t.Errorf("%s: counter %d, want %d", what, st.h.WindowCounter, counter)
		}
	}
	want("first", 0)
	st.advance(24 * ms)
	want("less than a quarter", 0)
	st.advance(ms)
	want("a quarter", 1)
	st.advance(60 * ms)
	want("two quarters and a bit", 3)
	st.advance(time.Hour)
	want("an hour", 8)
	st.advance(10 * ms)
	st.s.Feedback(st.now, &Report{Seq: st.seq, ReceiveRate: 1000})
	want("after a report on counter 8", 12)
	st.s.Feedback(st.now, &Report{Seq: st.seq - 1, ReceiveRate: 1000})
	want("a report that asks for no more", 12)
	st.advance(st.s.RTT() + ms)
	want("a round-trip later, wrapped", 0)
}

// RFC 5348, section 4.3: "recv_limit is set to Infinity for the first two round-trip times
// of the connection", with a round-trip time from the handshake as well.
func TestNoLimitAtFirst(t *testing.T) {
	st := newSenderTest(t, SenderConfig{RTT: 100 * ms, NoOscillationReduction: true})
	st.send()
	st.greedy(100 * ms)
	st.report(100*ms, 1000, 0.01)
	st.wantRate("first report", float64(Throughput(1000, 100*ms, 0.01)))
}

// A new rate counts from the last packet on: the next one waits for as long as the new
// rate asks for.
func TestSpacingAfterNewRate(t *testing.T) {
	st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	st.steady(10000, 100*ms)
	st.advance(st.s.Next().Sub(st.now) - 1)
	last := st.now
	st.s.gate = last // the next packet is due, and goes
	st.send()
	x := st.s.Rate()
	st.advance(1)
	if got, want := st.s.gate.Sub(last), interval(1000, st.s.Rate()); st.s.Rate() >= x || got.Round(ms) != want.Round(ms) {
		t.Errorf("rate %v became %v: the next packet %v after the last, want %v", x, st.s.Rate(), got, want)
	}
}
