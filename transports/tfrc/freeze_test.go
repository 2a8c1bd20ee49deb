package tfrc

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

const testRTT = 100 * ms

// frozenTest is a sender at 100 kB/s that was frozen at testRTT.
func frozenTest(t *testing.T, lease time.Duration) *senderTest {
	t.Helper()
	st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	st.steady(100000, testRTT)
	st.s.Freeze(st.now, lease)
	return st
}

// restored is the same after a break of 3 s; one packet was sent since.
func restored(t *testing.T, path Path) *senderTest {
	t.Helper()
	st := frozenTest(t, 0)
	st.advance(3 * time.Second)
	st.s.Unfreeze(st.now, Thaw{Path: path})
	st.send()
	return st
}

// hear sends at the full rate for d and takes a report on the packet before the last.
func (t *senderTest) hear(d time.Duration, received Rate, p float64, o Options) {
	t.greedy(d)
	r := Report{Seq: t.seq, SentAt: t.now.Add(-testRTT), ReceiveRate: received, LossRate: p, Options: o}
	t.s.Feedback(t.now, &r)
}

// probing is a sender that has just begun to probe.
func probing(t *testing.T) *senderTest {
	t.Helper()
	st := restored(t, Path{})
	st.hear(testRTT, 300, st.s.LossRate(), 0)
	st.hear(testRTT, 100000, st.s.LossRate(), OptUnfrozen)
	st.wantState("unfrozen", Probing)
	return st
}

func (t *senderTest) wantState(what string, want State) {
	t.Helper()
	if got := t.s.State(); got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// "A frozen sender sends nothing and forgets nothing".
func TestFrozen(t *testing.T) {
	st := frozenTest(t, 5*time.Second)
	x, p, rtt := st.s.Rate(), st.s.LossRate(), st.s.RTT()
	st.wantState("frozen", Frozen)
	for range 40 {
		st.advance(100 * ms)
		if at := st.s.NextSend(st.now); at != 0 {
			t.Fatalf("may send at %v", at)
		}
		st.report(3*testRTT, 10, 0.9)
	}
	if st.s.Rate() != x || st.s.LossRate() != p || st.s.RTT() != rtt {
		t.Errorf("X %v, p %v, R %v became %v, %v, %v", x, p, rtt, st.s.Rate(), st.s.LossRate(), st.s.RTT())
	}
	if got := st.s.FreezeCounts(); got != (FreezeCounts{Freezes: 1, Ignored: 40}) {
		t.Errorf("counts %+v", got)
	}
	st.s.Unfreeze(st.now, Thaw{})
	st.wantState("thawed", Restoring)
	st.wantRate("thawed", float64(x))
	if !st.s.NextSend(st.now).Due(st.now) {
		t.Error("the first packet does not go at once")
	}
	st.send()
	if st.h.Options != OptRestoring {
		t.Errorf("options %b on a packet while restoring", st.h.Options)
	}
	if n := st.burst(100); n > 1 {
		t.Errorf("a burst of %d packets for the time that it was frozen", n)
	}
}

// "... and thaws to the initial rate when its lease lapses."
func TestLease(t *testing.T) {
	st := frozenTest(t, 5*time.Second)
	st.advance(4 * time.Second)
	st.s.Freeze(st.now, 5*time.Second) // renewed
	st.wantTimer("renewed", 5*time.Second)
	st.advance(5*time.Second - 1)
	st.wantState("before the end", Frozen)
	st.advance(1)
	st.wantState("lapsed", Normal)
	st.wantRate("lapsed", 40000)
	if got := st.s.FreezeCounts(); got != (FreezeCounts{Freezes: 1, Lapsed: 1, Recoveries: 1}) {
		t.Errorf("counts %+v", got)
	}
	st.s.Unfreeze(st.now, Thaw{})
	st.wantState("an Unfreeze that came too late", Normal)

	st = frozenTest(t, 0)
	st.wantTimer("no lease given", DefaultLease)
}

// Recovery probes with what was known: it grows by what arrives, up to what p allows.
func TestRecovery(t *testing.T) {
	st := frozenTest(t, 0)
	p := st.s.LossRate()
	st.advance(3 * time.Second)
	st.s.Unfreeze(st.now, Thaw{Recovery: true})
	st.wantState("thawed", Normal)
	st.wantRate("thawed", 40000)
	st.send()
	if st.h.Options != 0 {
		t.Errorf("options %b", st.h.Options)
	}
	st.hear(testRTT, 1000, p, 0) // covers the pause
	st.wantRate("the report that covers the pause says nothing", 40000)
	st.hear(testRTT, 40000, p, 0)
	st.wantRate("twice what arrived", 80000)
	st.hear(testRTT, 80000, p, 0)
	near(t, "what p allows", float64(st.s.Rate()), 100000, 1e-3)
}

// Freeze-DCCP, figure 7a: what ends Restoring.
func TestRestoring(t *testing.T) {
	st := restored(t, Path{})
	p := st.s.LossRate()
	st.hear(testRTT, 300, p, 0)
	st.wantState("a report that covers the pause", Restoring)
	near(t, "its X_recv", float64(st.s.Rate()), 100000, 1e-3)
	st.hear(testRTT, 100000, p, OptUnfrozen)
	st.wantState("unfrozen", Probing)
	near(t, "rate", float64(st.s.Rate()), 200000, 1e-3)
	st.send()
	if st.h.Options != OptProbing {
		t.Errorf("options %b on a packet while probing", st.h.Options)
	}

	st = restored(t, Path{})
	st.hear(testRTT, 300, p, 0)
	st.hear(testRTT, 70000, p, 0)
	st.wantState("a whole report without the option", Normal)
	near(t, "rate", float64(st.s.Rate()), 100000, 1e-3)

	st = restored(t, Path{})
	st.hear(testRTT, 300, 2*p, 0)
	st.wantState("p rose", Normal)
	near(t, "rate by p, not by the pause", float64(st.s.Rate()), float64(Throughput(1000, testRTT, 2*p)), 1e-3)

	st = restored(t, Path{})
	st.hear(testRTT, 100000, p, OptUnfrozen)
	st.wantState("the first report was lost", Probing)

	st = restored(t, Path{})
	st.advance(restoringRTTs*testRTT - 1)
	st.wantState("no report", Restoring)
	st.advance(1)
	st.wantState("no report in 4 round-trips", Normal)
	near(t, "rate after the nofeedback timer", float64(st.s.Rate()), 50000, 1e-3)
}

// Reports that come soon after one another do not make one that lies wholly after the
// restart, and do not prolong Restoring.
func TestRestoringIsBounded(t *testing.T) {
	st := restored(t, Path{})
	p := st.s.LossRate()
	first := st.now
	st.greedy(testRTT)
	for i := range 3 {
		r := Report{Seq: st.seq, SentAt: first.Add(time.Duration(i+1) * ms), ReceiveRate: 300, LossRate: p}
		st.s.Feedback(st.now, &r)
		st.wantState("a report on what was sent at once", Restoring)
	}
	st.greedy(restoringRTTs*testRTT - testRTT - ms)
	st.s.Feedback(st.now, &Report{Seq: st.seq, SentAt: first.Add(4 * ms), ReceiveRate: 300, LossRate: p})
	st.wantState("a report near the end", Restoring)
	st.advance(ms)
	st.wantState("four round-trips", Normal)
	near(t, "rate, the timer not having expired", float64(st.s.Rate()), 100000, 1e-3)
}

// What was sent before the restart, and what was lost then, says nothing of the path.
func TestReportsFromBefore(t *testing.T) {
	st := frozenTest(t, 0)
	p, seq := st.s.LossRate(), st.seq
	st.s.Unfreeze(st.now, Thaw{})
	st.s.Feedback(st.now, &Report{Seq: seq, ReceiveRate: 5, LossRate: 0.5, Options: OptUnfrozen})
	st.wantState("nothing was sent yet", Restoring)
	st.send()
	st.s.Feedback(st.now, &Report{Seq: seq, ReceiveRate: 5, LossRate: 0.5, Options: OptUnfrozen})
	st.wantState("on a packet from before", Restoring)
	if got := st.s.FreezeCounts().Ignored; got != 2 {
		t.Errorf("%d ignored, want 2", got)
	}
	st.greedy(testRTT)
	r := Report{Seq: st.seq, SentAt: st.now.Add(-testRTT), ReceiveRate: 300, LossRate: 2 * p}
	r.Intervals.Append(Interval{Lossless: uint32(st.seq - seq + 4), Loss: 3, Data: 20}) // lost at the break
	r.Intervals.Append(Interval{Lossless: 100, Data: 1 / p})
	st.s.Feedback(st.now, &r)
	st.wantState("a loss from before the restart", Restoring)
	r.Intervals.Reset()
	r.Intervals.Append(Interval{Lossless: 1, Loss: 3, Data: 4})
	r.Intervals.Append(Interval{Lossless: 100, Data: 1 / p})
	st.s.Feedback(st.now, &r)
	st.wantState("a loss after it", Normal)
}

// A round-trip time on the new path begins a new estimate.
func TestRoundTripTimeAfterRestart(t *testing.T) {
	st := restored(t, Path{})
	st.advance(30 * ms)
	st.report(30*ms, 100, st.s.LossRate())
	if got := st.s.RTT(); got != 30*ms {
		t.Errorf("R = %v, want that of the first sample", got)
	}
	st.send()
	st.advance(50 * ms)
	st.report(50*ms, 100, st.s.LossRate())
	if got := st.s.RTT().Round(time.Microsecond); got != 40*ms { // q is 0.5 here
		t.Errorf("R = %v, want a mean", got)
	}
}

// Freeze-DCCP, equations (8) and (9): p that falls by less than its least change, or not
// at all where it would have to, is no sign of loss; the bounds are for I packets a report.
func TestProbingBounds(t *testing.T) {
	for _, c := range []struct {
		packets uint64
		p       float64
		least   float64
	}{
		{10, 0.01, -1.639344e-4}, {50, 0.01, -7.692308e-4}, {100, 1e-3, -1.639344e-5}, {1000, 1e-4, -1.639344e-6},
	} {
		near(t, "least change of p", lossless(c.p, float64(c.packets), allWeights)-c.p, c.least, 1e-6)
		inverse := func(p, by float64) float64 { return 1 / (1/p + by) } // p whose interval is longer by so much
		for _, v := range []struct {
			name string
			p    float64
			ends bool
		}{
			{"half the change", c.p + c.least/2, false},
			{"the whole change", c.p + c.least, false},
			{"and the rounding of an interval", inverse(c.p+c.least, 0.99), false},
			{"more", inverse(c.p+c.least, 1.01), true},
			{"twice the change", c.p + 2*c.least, true},
			{"p does not change", c.p, false},
			{"p rises by more than a rounding", inverse(c.p, -1.01), true},
		} {
			s := NewSender(SenderConfig{})
			s.lossRate = v.p
			if got := s.probed(&Report{}, change{packets: c.packets, lossRate: c.p}); got != v.ends {
				t.Errorf("p %v, %d packets, %s: ends %v, want %v", c.p, c.packets, v.name, got, v.ends)
			}
		}
	}
}

// A single report with the same p does not end Probing; one after p has fallen does.
func TestProbingEndsByStandstill(t *testing.T) {
	st := probing(t)
	p := st.s.LossRate()
	st.hear(testRTT, 150000, p, 0)
	st.hear(testRTT, 300000, p, 0)
	st.wantState("p has not moved yet", Probing)
	p = lossless(p, 20, allWeights)
	st.hear(testRTT, 400000, p, 0)
	st.wantState("p falls", Probing)
	st.hear(testRTT, 400000, p, 0)
	st.wantState("p stands still after it fell", Normal)
}

// In Probing "the sending rate is doubled every RTT", although p > 0 would allow less.
func TestProbingGrows(t *testing.T) {
	st := probing(t)
	p := st.s.LossRate()
	near(t, "at once", float64(st.s.Rate()), 200000, 1e-3)
	st.hear(testRTT/2, 150000, p, 0)
	near(t, "not twice in a round-trip", float64(st.s.Rate()), 200000, 1e-3)
	st.hear(testRTT/2, 200000, p, 0)
	near(t, "a round-trip later", float64(st.s.Rate()), 400000, 1e-3)
	st.greedy(testRTT)
	st.hear(testRTT+ms, 250000, p, 0)
	near(t, "at most twice what arrives", float64(st.s.Rate()), 500000, 1e-3)
	st.hear(testRTT, 250000, 2*p, 0)
	st.wantState("p rose", Normal)
	near(t, "and the equation rules", float64(st.s.Rate()), float64(Throughput(1000, testRTT, 2*p)), 1e-2)
}

// Probing that no longer grows, and none that hears nothing, goes on.
func TestProbingDoesNotStay(t *testing.T) {
	st := probing(t)
	p := st.s.LossRate()
	for range 2 + stallRTTs {
		st.hear(2*testRTT+ms, 100000, p, 0)
	}
	st.wantState("no growth", Normal)

	st = probing(t)
	st.advance(4 * testRTT)
	st.wantState("no report", Normal)
	near(t, "rate", float64(st.s.Rate()), 50000, 1e-3) // half of what the equation gives
}

// A freeze while Restoring or Probing keeps what the first one kept.
func TestFrozenAgain(t *testing.T) {
	for _, st := range []*senderTest{restored(t, Path{}), probing(t)} {
		st.s.Freeze(st.now, 0)
		st.advance(time.Second)
		st.s.Unfreeze(st.now, Thaw{})
		st.wantState("thawed", Restoring)
		near(t, "rate", float64(st.s.Rate()), 100000, 1e-3)
	}
}

// A receiver without the extension: the sender stops, and goes on as after an idle time.
func TestWithoutExtension(t *testing.T) {
	st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	st.s.SetExtension(false)
	st.steady(100000, testRTT)
	st.s.Freeze(st.now, 0)
	for st.now < mihf.Time(time.Hour).Add(20*time.Second) {
		st.advance(st.s.Next().Sub(st.now))
		if st.s.NextSend(st.now) != 0 {
			t.Fatal("sends while frozen")
		}
	}
	st.s.Unfreeze(st.now, Thaw{Path: Path{Capacity: 1e9}})
	st.wantState("thawed", Normal)
	near(t, "rate after the idle time", float64(st.s.Rate()), 50000, 1e-3)
	st.send()
	if st.h.Options != 0 {
		t.Errorf("options %b for a receiver that does not know them", st.h.Options)
	}
}

// A flow that has lost nothing yet is in slow-start anyway, and that goes on.
func TestProbingIsSlowStartWithoutLosses(t *testing.T) {
	st := newSenderTest(t, SenderConfig{NoOscillationReduction: true})
	st.send()
	for range 4 {
		st.hear(130*ms, st.s.Rate(), 0, 0)
	}
	x := st.s.Rate()
	st.s.Freeze(st.now, 0)
	st.advance(time.Second)
	st.s.Unfreeze(st.now, Thaw{})
	st.wantRate("restored", float64(x))
	st.send()
	st.hear(testRTT, 100, 0, 0)
	st.hear(testRTT, x, 0, OptUnfrozen)
	st.wantState("unfrozen", Normal)
	st.wantRate("goes on", float64(2*x))
}

// What is known of a path bounds the restored rate, whatever it was.
func TestPathBoundsRestoring(t *testing.T) {
	for _, recovery := range []bool{false, true} {
		st := frozenTest(t, 0)
		st.s.Unfreeze(st.now, Thaw{Recovery: recovery, Path: Path{Capacity: 20000, RTT: 300 * ms}})
		want := 20000.0
		if recovery {
			want = 4000 / 0.3 // the initial rate, which is less
		}
		st.wantRate("bound", want)
		if got := st.s.RTT(); got != 300*ms {
			t.Errorf("R = %v, want that of the path", got)
		}
	}
}

// intervalsOf is a loss history of equal intervals without losses since from.
func intervalsOf(r *Report, from uint64, length float64) {
	r.Intervals.Append(Interval{Lossless: uint32(r.Seq - from + 50), Loss: 1, Data: float64(r.Seq - from + 51)})
	for range historyLength {
		r.Intervals.Append(Interval{Lossless: uint32(length) - 1, Loss: 1, Data: length})
	}
	r.LossRate = r.Intervals.LossRate()
}

// From what the path is said to carry Probing goes on in small steps that double, in case
// it carries more, and ends without a loss when a queue shows that it does not. What has
// arrived is then what p stands for, until losses say otherwise.
func TestProbingEndsAtCapacity(t *testing.T) {
	st := restored(t, Path{Capacity: 300000})
	restart, length := st.seq, 1/st.s.LossRate()
	rates := []float64{}
	step := func(rtt time.Duration, received Rate, o Options) {
		st.greedy(rtt + 5*ms)
		r := Report{Seq: st.seq, SentAt: st.now.Add(-rtt), ReceiveRate: received, Options: o}
		intervalsOf(&r, restart, length)
		st.s.Feedback(st.now, &r)
		rates = append(rates, float64(st.s.Rate()))
	}
	step(testRTT, 500, 0)
	step(testRTT, 100000, OptUnfrozen)
	step(testRTT, 200000, 0)
	step(testRTT, 300000, 0)
	step(testRTT, 310000, 0)
	step(testRTT, 310000, 0)
	st.wantState("above the capacity", Probing)
	step(125*ms, 310000, 0) // an eighth longer, and two packets
	st.wantState("a queue", Normal)
	for i, want := range []float64{100000, 200000, 300000, 300000 * 17 / 16, 300000 * 17 / 16, 300000 * 18 / 16, 310000} {
		near(t, "rate", rates[i], want, 1e-2)
	}
	for range 5 {
		step(testRTT, 310000, 0)
	}
	if x := float64(st.s.Rate()); x < 310000*0.99 || x > 400000 {
		t.Errorf("rate %v after five round-trips without a loss or a queue, want it to creep up from 310000", x)
	}
}

// The losses after the restart take the seed's place one by one.
func TestSeedIsReplaced(t *testing.T) {
	d := seed{from: 1000, length: 500}
	report := func(events int) *Report {
		r := &Report{Seq: 1000 + uint64(events)*100 + 49}
		for range events { // one lost in a hundred, the last of them 50 packets ago
			r.Intervals.Append(Interval{Lossless: 99, Loss: 1, Data: 100})
		}
		if events > 0 {
			r.Intervals.list[0] = Interval{Lossless: 49, Loss: 1, Data: 50}
		}
		r.Intervals.Append(Interval{Lossless: 299, Loss: 1, Data: 300}) // begun before it
		for r.Intervals.Append(Interval{Lossless: 10, Loss: 1, Data: 11}) {
		}
		return r
	}
	for _, c := range []struct {
		events int
		mean   float64
		counts bool
	}{
		{0, 500, true},                 // I_0 of 50 is less than the mean
		{1, (100 + 500*5) / 6.0, true}, // the hundred packets from the restart to the loss
		{2, (100*2 + 500*4) / 6.0, true},
		{4, (100*4 + 500*2) / 6.0, true},
		{8, 100, true},
		{9, 100, false},
	} {
		p, counts := d.lossRate(report(c.events))
		near(t, "mean interval", 1/p, c.mean, 1e-9)
		if counts != c.counts {
			t.Errorf("%d loss events since the restart: the seed counts: %v", c.events, counts)
		}
	}
	d.planted = 1200
	if p, _ := d.lossRate(report(1)); 1/p != 500 {
		t.Errorf("mean interval %v after a loss in Probing, which the seed has made good", 1/p)
	}
	if p, counts := d.lossRate(&Report{LossRate: 0.25}); p != 0.25 || counts {
		t.Errorf("without intervals: p %v, the seed counts: %v", p, counts)
	}
}

func TestPathFrom(t *testing.T) {
	lci := &mihf.LCI{
		CapacityUpBPS:   mihf.Characteristic{Value: 8e6, Source: mihf.SourceMeasured},
		CapacityDownBPS: mihf.Characteristic{Value: 16e6, Source: mihf.SourcePHY},
		RTTSeconds:      mihf.Characteristic{Value: 0.05, Source: mihf.SourceHistory},
	}
	if got, want := PathFrom(lci, true, 900, 100), (Path{Capacity: 900000, RTT: 50 * ms}); got != want {
		t.Errorf("up: %+v, want %+v", got, want)
	}
	if got, want := PathFrom(lci, false, 900, 100), (Path{Capacity: 1800000, RTT: 50 * ms}); got != want {
		t.Errorf("down: %+v, want %+v", got, want)
	}
	if got := PathFrom(&mihf.LCI{}, true, 900, 100); got != (Path{}) {
		t.Errorf("nothing known: %+v", got)
	}
	if got := PathFrom(nil, true, 900, 100); got != (Path{}) {
		t.Errorf("no characteristics: %+v", got)
	}
}
