package tfrc

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// Freeze-DCCP, figure 7b: the receiver's states, step by step. Between two steps a
// packet comes every millisecond; R is 20 ms.
func TestReceiverStates(t *testing.T) {
	type step struct {
		do   string
		want ReceiverState
	}
	for name, steps := range map[string][]step{
		"all goes well": {
			{"restoring", Restoration},
			{"restoring 15", Restoration},
			{"restoring 10", Recovery1},
			{"restoring 5", Recovery1},
			{"probing", Probed},
			{"probing 30", Probed},
			{"normal", ReceiverNormal},
		},
		"a loss in Restoration": {
			{"restoring", Restoration},
			{"lose", Restoration},
			{"restoring 3", Recovery2},
			{"restoring 30", Recovery2},
			{"normal", ReceiverNormal},
		},
		"a loss in Recovery1": {
			{"restoring 25", Recovery1}, {"lose", Recovery1}, {"restoring 3", Recovery2}, {"normal", ReceiverNormal},
		},
		"a loss in Probed": {
			{"restoring 25", Recovery1},
			{"probing", Probed},
			{"lose", Probed},
			{"probing 3", ReceiverNormal},
			{"probing 20", ReceiverNormal},
			{"normal", ReceiverNormal},
		},
		"the sender gave up in Restoration": {{"restoring 5", Restoration}, {"normal", ReceiverNormal}},
		"the sender gave up in Recovery1":   {{"restoring 25", Recovery1}, {"normal", ReceiverNormal}},
		"a loss from before the restart": {
			{"lose", ReceiverNormal}, {"restoring 3", Restoration}, {"restoring 25", Recovery1},
		},
		"frozen again in Probed":    {{"restoring 25", Recovery1}, {"probing", Probed}, {"restoring", Restoration}},
		"frozen again in Recovery1": {{"restoring 25", Recovery1}, {"pause", Recovery1}, {"restoring", Restoration}},
		"frozen again in Recovery2": {
			{"restoring", Restoration}, {"lose", Restoration}, {"restoring 3", Recovery2}, {"pause", Recovery2}, {"restoring", Restoration},
		},
		"probing without a restart": {{"probing 10", ReceiverNormal}},
	} {
		for _, v := range []Variant{RFC5348, CCID3} {
			t.Run(name+"/"+v.String(), func(t *testing.T) {
				rt := thawedTest(t, v)
				for i, s := range steps {
					rt.do(s.do)
					if got := rt.r.State(); got != s.want {
						t.Fatalf("step %d, %s: %v, want %v", i, s.do, got, s.want)
					}
					if got := rt.report().Options.Has(OptUnfrozen); got != (s.want == Recovery1) {
						t.Fatalf("step %d, %s: the report says unfrozen: %v in %v", i, s.do, got, s.want)
					}
				}
			})
		}
	}
}

// thawedTest is a receiver that had a thousand packets, then a pause.
func thawedTest(t *testing.T, v Variant) *receiverTest {
	t.Helper()
	rt := newReceiverTest(t, ReceiverConfig{Variant: v, RTT: 20 * ms})
	rt.packet.RTT = 20 * ms
	rt.do("normal 500")
	rt.packet.Seq += 2
	rt.do("normal 500")
	rt.do("pause")
	return rt
}

// do takes packets with the option named, or loses one, or pauses.
func (t *receiverTest) do(what string) {
	t.Helper()
	options := map[string]Options{"normal": 0, "restoring": OptRestoring, "probing": OptProbing}
	verb, n := what, 1
	for i, c := range what {
		if c == ' ' {
			verb, n = what[:i], 0
			for _, d := range what[i+1:] {
				n = 10*n + int(d-'0')
			}
			break
		}
	}
	switch o, ok := options[verb]; {
	case verb == "pause":
		t.now = t.now.Add(3 * time.Second)
		t.packet.WindowCounter = (t.packet.WindowCounter + 5) % counterValues
	case verb == "lose":
		t.packet.Seq++
	case !ok:
		t.Fatalf("unknown step %q", what)
	default:
		t.packet.Options = o
		for range n {
			if t.packet.Seq%5 == 0 {
				t.packet.WindowCounter = (t.packet.WindowCounter + 1) % counterValues
			}
			t.get(t.packet.Seq + 1)
		}
	}
}

// A loss in Probed makes X_recv the whole history: all intervals are that of its rate.
func TestHistoryAfterProbing(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		rt := thawedTest(t, v)
		rt.do("restoring 25")
		rt.do("probing 100") // a thousand packets a second
		rt.do("lose")
		rt.do("probing 3")
		r := rt.report()
		near(t, v.String(), float64(Throughput(1000, rt.r.RTT(), r.LossRate)), 1e6, 0.06)
		if got := r.Intervals.Len(); got != ReportedIntervals {
			t.Errorf("%v: %d intervals", v, got)
		}
		for i := 1; i < r.Intervals.Len(); i++ {
			if got, want := r.Intervals.At(i).Data, r.Intervals.At(1).Data; got != want {
				t.Errorf("%v: interval %d is %v, others %v", v, i, got, want)
			}
		}
		events := rt.r.LossEvents
		for range 5 { // the sender does not know yet
			rt.do("probing 25")
			rt.do("lose")
		}
		rt.do("probing 3")
		if got := rt.r.LossEvents - events; got != 0 {
			t.Errorf("%v: %d more loss events before the sender left Probing", v, got)
		}
		rt.do("normal 30")
		rt.do("lose")
		rt.do("normal 3")
		if got := rt.r.LossEvents - events; got != 1 {
			t.Errorf("%v: %d loss events for a loss after Probing", v, got)
		}
	}
}

// After a restart X_recv covers what came since, in both variants.
func TestReceiveRateAfterRestart(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		rt := thawedTest(t, v)
		rt.do("restoring 25")
		near(t, v.String(), float64(rt.report().ReceiveRate), 1e6, 0.05)
	}
}

// The round-trip time from before a restart is no measure of what comes after it: X_recv
// covers no more than the time since, and the next round-trip begins a new estimate.
func TestStaleRoundTripTime(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3})
	rt.packet.RTT = 0
	quarters := func(n, packets int) {
		for range n {
			rt.packet.WindowCounter = (rt.packet.WindowCounter + 1) % counterValues
			for range packets {
				rt.get(rt.packet.Seq + 1)
			}
		}
	}
	for range 4 {
		quarters(8, 50) // 200 ms a round-trip
	}
	rt.do("pause")
	rt.packet.Options = OptRestoring
	rt.get(rt.packet.Seq + 1)
	quarters(1, 5) // 20 ms a round-trip
	near(t, "X_recv of a quarter", float64(rt.report().ReceiveRate), 1e6, 0.06)
	quarters(7, 5)
	if got := rt.r.RTT(); got > 25*ms {
		t.Errorf("R = %v two round-trips of 20 ms after the restart", got)
	}
}

// A sender that measures a much shorter round-trip hears from its receiver sooner.
func TestShorterRoundTripTime(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{})
	rt.packet.RTT = 700 * ms
	rt.get(1)
	reported := rt.now
	rt.packet.RTT = 20 * ms
	rt.get(2)
	if got := rt.r.Next().Sub(reported); got != 20*ms {
		t.Errorf("next report %v after the last, want 20ms", got)
	}
}

// A data packet that comes behind one without data, sent later, still tells its counter.
func TestCounterOfLatePacket(t *testing.T) {
	rt := newReceiverTest(t, ReceiverConfig{Variant: CCID3})
	rt.span(1, 100)
	rt.get(102, 103, 104) // 101 lost, at counter 0
	rt.packet.WindowCounter, rt.packet.NonData = 5, true
	rt.get(106)
	rt.packet.NonData = false
	rt.get(105)
	rt.get(108, 109, 110) // 107 lost, behind counter 5
	rt.want("five quarters apart", 2, 2)
}

// chaos is a path that loses what it likes while it is rough.
type chaos struct {
	*path
	t     *rapid.T
	saved Rate
	trace []float64
}

func newChaos(t *rapid.T) *chaos {
	v := rapid.SampledFrom([]Variant{RFC5348, CCID3}).Draw(t, "variant")
	s := NewSender(SenderConfig{
		Variant: v, SegmentBytes: 500, NoOscillationReduction: rapid.Bool().Draw(t, "steady"),
		FasterRestart: rapid.Bool().Draw(t, "faster"),
	})
	p := newPath(s, NewReceiver(ReceiverConfig{Variant: v}), 8e5, 20*ms)
	p.queue = 20
	c := &chaos{path: p, t: t}
	p.turned = c.check
	p.reported = func(r *Report) { c.trace = append(c.trace, float64(s.Rate()), r.LossRate, float64(r.Seq)) }
	return c
}

// check is what must hold at any moment.
func (c *chaos) check() {
	s := c.s
	if x := float64(s.Rate()); x < float64(s.minRate())*0.999 || x > 1e8 || math.IsNaN(x) {
		c.t.Fatalf("X = %v", x)
	}
	if s.State() == Frozen {
		if s.NextSend(c.now) != 0 {
			c.t.Fatal("sends while frozen")
		}
		return
	}
	if s.State() == Restoring && (s.Rate() > c.saved*1.0001 || s.PacedRate() > c.saved*1.0001) {
		c.t.Fatalf("restoring at %v, paced at %v, above the %v before", s.Rate(), s.PacedRate(), c.saved)
	}
	if p := s.LossRate(); s.State() == Normal && p > 0 && s.RTT() > 0 && s.thawing.restart > 0 &&
		s.Rate() > max(s.equation(), s.initialRate())*1.0001 && !s.thawing.waiting {
		c.t.Fatalf("X = %v, the equation gives %v", s.Rate(), s.equation())
	}
}

// act does one thing that can happen to a flow.
func (c *chaos) act(kind, amount int) {
	span := time.Duration(amount+1) * 13 * ms
	switch kind {
	case 0:
		if c.s.State() == Normal {
			c.saved = c.s.Rate()
		}
		c.s.Freeze(c.now, time.Duration(amount)*100*ms)
	case 1, 2:
		t := Thaw{Recovery: amount%7 == 0}
		if amount%3 == 0 {
			t.Path = Path{Capacity: Rate(1000 * (amount + 1)), RTT: time.Duration(amount%5) * 30 * ms}
		}
		c.s.Unfreeze(c.now, t)
	case 3:
		c.down = !c.down
	case 4:
		c.link(1e5*float64(amount%20+1), time.Duration(amount%9+1)*10*ms)
	case 5:
		c.strip(Options(amount & 7))
	case 6:
		c.drop = func(seq uint64) bool { return seq*2654435761%100 < uint64(amount) }
	case 7:
		n := 0
		c.loseBack = func() bool { n++; return n*7919%100 < 2*amount }
	default:
		c.wakeSender()
		c.run(span)
	}
	c.wakeSender()
}

// strip takes options off everything that passes.
func (c *chaos) strip(o Options) {
	c.arrival = func(p *Packet) { p.Options &^= o }
	seen := c.reported
	c.reported = func(r *Report) {
		seen(r)
		r.Options &^= o
	}
	if o == 0 {
		c.reported = func(r *Report) { c.trace = append(c.trace, float64(c.s.Rate()), r.LossRate, float64(r.Seq)) }
	}
}

// "Whatever options and reports are lost, both machines come back to Normal", "Restoring
// never exceeds the rate before the freeze", and the bounds of the rate.
func TestChaos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.IntRange(0, 14), 1, 40).Draw(t, "kinds")
		amounts := rapid.SliceOfN(rapid.IntRange(0, 49), len(kinds), len(kinds)).Draw(t, "amounts")
		c := newChaos(t)
		c.run(time.Second)
		for i, k := range kinds {
			c.act(k, amounts[i])
		}
		// The path is well again, but for the options, which may go on being lost.
		c.down, c.drop, c.loseBack = false, nil, nil
		c.link(8e5, 20*ms)
		if c.s.State() == Frozen {
			c.s.Unfreeze(c.now, Thaw{})
		}
		c.wakeSender()
		for range 40 {
			c.run(10 * time.Second)
			if c.s.State() == Normal && c.r.State() == ReceiverNormal {
				return
			}
		}
		t.Fatalf("sender %v, receiver %v, after 400 s", c.s.State(), c.r.State())
	})
}

// "The same calls give the same answers."
func TestDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.IntRange(0, 14), 1, 30).Draw(t, "kinds")
		amounts := rapid.SliceOfN(rapid.IntRange(0, 49), len(kinds), len(kinds)).Draw(t, "amounts")
		v := rapid.SampledFrom([]Variant{RFC5348, CCID3}).Draw(t, "variant")
		one := func() []float64 {
			p := newPath(NewSender(SenderConfig{Variant: v, SegmentBytes: 500}), NewReceiver(ReceiverConfig{Variant: v}), 8e5, 20*ms)
			c := &chaos{path: p, t: t}
			p.reported = func(r *Report) { c.trace = append(c.trace, float64(p.s.Rate()), r.LossRate, float64(r.Seq)) }
			p.run(time.Second)
			for i, k := range kinds {
				c.act(k, amounts[i])
			}
			return append(c.trace, float64(p.s.Rate()), float64(p.sent))
		}
		if diff := cmp.Diff(one(), one()); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
	})
}

// Unwrapping is the inverse of cutting to some bits, for numbers that are near.
func TestUnwrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.UintRange(8, 48).Draw(t, "bits")
		near := rapid.Uint64Range(1<<49, 1<<60).Draw(t, "near")
		half := int64(1) << (bits - 1)
		seq := near + uint64(rapid.Int64Range(-half, half-1).Draw(t, "distance"))
		if got := Unwrap(near, seq&(1<<bits-1), bits); got != seq {
			t.Fatalf("near %d: got %d, want %d", near, got, seq)
		}
	})
}

// The sender remembers 128 packets and reads the others from between: as long as it sends
// evenly, the times are right.
func TestSentTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l sentLog
		n := rapid.IntRange(1, 20000).Draw(t, "packets")
		start, every := mihf.Time(time.Hour), mihf.Time(rapid.IntRange(1, 1000).Draw(t, "µs"))*1000
		for seq := range uint64(n) {
			l.add(sentPacket{seq: seq + 1, at: start + mihf.Time(seq)*every})
		}
		seq := rapid.Uint64Range(1, uint64(n)).Draw(t, "seq")
		got, ok := l.find(seq)
		if want := start + mihf.Time(seq-1)*every; !ok || got.seq != seq || max(got.at, want)-min(got.at, want) > 2 {
			t.Fatalf("packet %d: %v %v, want %v", seq, got, ok, want)
		}
		l.acked(seq)
		if _, ok := l.find(uint64(n)); !ok {
			t.Fatal("the newest packet is forgotten")
		}
		if _, ok := l.find(uint64(n) + 1); ok {
			t.Fatal("a packet that was not sent")
		}
	})
}
