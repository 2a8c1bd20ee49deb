package lci_test

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/lci"
)

const (
	wlan  = mihf.LinkID("wifi-00000001")
	start = mihf.Time(time.Hour)
	poll  = 200 * time.Millisecond
	ms    = time.Millisecond
)

// way is a flow that a test lets do something between two readings.
type way struct {
	ends                                  mihf.Endpoints
	rtt, base, receive                    time.Duration
	deviation                             time.Duration
	up, down                              float64 // bit/s, with headers
	again                                 float64 // share of the segments
	appLimited, windowLimited, unmeasured bool

	sent, repeated, received float64 // segments, segments, octets
	busy, held               time.Duration
}

func (w *way) pass(d time.Duration) {
	n := w.up * d.Seconds() / 8 / 1500
	w.sent += n * (1 + w.again)
	w.repeated += n * w.again
	w.received += w.down * d.Seconds() / 8 * 1448 / 1500
	if w.up > 0 {
		w.busy += d
	}
	if w.windowLimited {
		w.held += d
	}
}

func (w *way) reading() *mihf.FlowReading {
	delivered := w.sent - w.repeated
	r := &mihf.FlowReading{
		Endpoints: w.ends, RTT: mihf.Some(w.rtt), RTTVar: mihf.Some(w.deviation), MinRTT: mihf.Some(w.base),
		AppLimited: w.appLimited, PathMTUBytes: mihf.Some[uint64](1500),
		AckedBytes: mihf.Some(uint64(delivered * 1448)), ReceivedBytes: mihf.Some(uint64(w.received)),
		SentSegments: mihf.Some(uint64(w.sent)), RetransSegments: mihf.Some(uint64(w.repeated)), DeliveredSegments: mihf.Some(uint64(delivered)),
		Busy: mihf.Some(w.busy), WindowLimited: mihf.Some(w.held), BufferLimited: mihf.Some[time.Duration](0),
		DeliveryRateBPS: mihf.Some(w.up * 1448 / 1500),
	}
	if w.receive > 0 {
		r.ReceiveRTT = mihf.Some(w.receive)
	}
	if w.unmeasured {
		r.RTT, r.MinRTT = mihf.Opt[time.Duration]{}, mihf.Opt[time.Duration]{}
	}
	return r
}

// estimatorTest reads flows every poll.
type estimatorTest struct {
	t    *testing.T
	e    *lci.Estimator
	now  mihf.Time
	ways []*way
}

func newEstimator(t *testing.T) *estimatorTest {
	t.Helper()
	h := &estimatorTest{t: t, e: lci.New(wlan), now: start}
	h.e.Attach("a", nil)
	return h
}

func (h *estimatorTest) flow(w way) *way {
	w.ends = mihf.Endpoints{
		Protocol: 6, Local: netip.MustParseAddrPort("192.0.2.7:1000"),
		Remote: netip.AddrPortFrom(netip.MustParseAddr("203.0.113.1"), uint16(len(h.ways)+1)),
	}
	h.ways = append(h.ways, &w)
	return h.ways[len(h.ways)-1]
}

// pass lets time pass, with readings.
func (h *estimatorTest) pass(d time.Duration) {
	for end := h.now.Add(d); h.now < end; {
		for _, w := range h.ways {
			h.e.Flow(h.now, h.now, w.reading())
		}
		h.e.Advance(h.now.Add(30 * ms))
		h.now = h.now.Add(poll)
		for _, w := range h.ways {
			w.pass(poll)
		}
	}
}

func (h *estimatorTest) lci() *mihf.LCI { return h.e.Now(h.now) }

// near fails unless a value is within a share of what it should be.
func (h *estimatorTest) near(what string, c mihf.Characteristic, want, share float64, from mihf.Source) {
	h.t.Helper()
	if c.Source != from || math.Abs(c.Value-want) > share*want || !(c.Confidence > 0 && c.Confidence <= 1) {
		h.t.Errorf("%s is %+v, want %v within %v of itself, %v", what, c, want, share, from)
	}
}

func (h *estimatorTest) unknown(what string, c mihf.Characteristic) {
	h.t.Helper()
	if c.Known() {
		h.t.Errorf("%s is %+v, want it unknown", what, c)
	}
}

func loaded(up, down float64) way {
	return way{rtt: 60 * ms, base: 40 * ms, receive: 60 * ms, up: up, down: down}
}

// A rate is a capacity where a queue stood at both ends of the interval and the network alone held the flow up.
func TestCapacity(t *testing.T) {
	h := newEstimator(t)
	h.flow(loaded(20e6, 0))
	h.pass(2 * time.Second)
	h.near("capacity up", h.lci().CapacityUpBPS, 20e6, 0.02, mihf.SourceMeasured)
	h.unknown("capacity down", h.lci().CapacityDownBPS)
	h.near("RTT", h.lci().RTTSeconds, 0.040, 0.001, mihf.SourceMeasured)

	h = newEstimator(t)
	h.flow(loaded(0, 8e6))
	h.pass(2 * time.Second)
	h.near("capacity down", h.lci().CapacityDownBPS, 8e6, 0.02, mihf.SourceMeasured)
	h.unknown("capacity up", h.lci().CapacityUpBPS)
}

func TestNoCapacity(t *testing.T) {
	for name, change := range map[string]func(*way){
		"the application limits it": func(w *way) { w.appLimited = true },
		"the peer's window does":    func(w *way) { w.windowLimited = true },
		"no queue, and it grows":    func(w *way) { w.rtt = w.base },
		"losses hold it down":       func(w *way) { w.rtt, w.again = w.base, 0.02 },
		"its RTT is not known":      func(w *way) { w.unmeasured = true },
	} {
		t.Run(name, func(t *testing.T) {
			h := newEstimator(t)
			w := h.flow(loaded(5e6, 0))
			change(w)
			for range 10 {
				h.pass(poll)
				w.up *= 1.12
			}
			h.unknown("capacity", h.lci().CapacityUpBPS)
		})
	}
}

// A rate that stays the same without losses is the way's, by a sender that leaves no queue.
func TestSteadyRate(t *testing.T) {
	h := newEstimator(t)
	w := h.flow(loaded(10e6, 0))
	w.rtt = w.base
	h.pass(time.Second)
	h.unknown("capacity after a second", h.lci().CapacityUpBPS)
	h.pass(2 * time.Second)
	h.near("capacity", h.lci().CapacityUpBPS, 10e6, 0.02, mihf.SourceMeasured)
}

// "With two flows sharing the link the sum is right"; one that only trickles is part of it, one that has ended is not.
func TestSum(t *testing.T) {
	h := newEstimator(t)
	h.flow(loaded(12e6, 0))
	h.flow(loaded(7e6, 0))
	trickle := h.flow(loaded(1e6, 0))
	trickle.appLimited, trickle.rtt = true, trickle.base
	h.pass(2 * time.Second)
	h.near("capacity", h.lci().CapacityUpBPS, 20e6, 0.02, mihf.SourceMeasured)
	h.ways = h.ways[:1]
	h.ways[0].up = 20e6
	h.pass(2 * time.Second)
	h.near("capacity with one flow left", h.lci().CapacityUpBPS, 20e6, 0.02, mihf.SourceMeasured)
}

// "After a change of the link's rate by half: the LCI follows within 3 s."
func TestFollows(t *testing.T) {
	h := newEstimator(t)
	w := h.flow(loaded(20e6, 0))
	h.pass(5 * time.Second)
	w.up = 10e6
	h.pass(1400 * ms)
	h.near("capacity after the fall", h.lci().CapacityUpBPS, 10e6, 0.05, mihf.SourceMeasured)
	w.up, w.rtt = 20e6, w.base // the queue is gone: what is carried raises it all the same
	h.pass(1600 * ms)
	h.near("capacity after the rise", h.lci().CapacityUpBPS, 20e6, 0.05, mihf.SourceMeasured)
}

// "What an overflowing queue drops is no property of the link"; the buffer is the longest queue that losses ended.
func TestLossAndBuffer(t *testing.T) {
	h := newEstimator(t)
	w := h.flow(loaded(12e6, 0))
	w.rtt, w.again = w.base, 0.02
	h.pass(3 * time.Second)
	h.near("loss", h.lci().LossRatio, 0.02, 0.1, mihf.SourceMeasured)
	h.unknown("buffer", h.lci().BufferBytes)

	h = newEstimator(t)
	w = h.flow(loaded(12e6, 0))
	w.rtt = w.base + 80*ms
	h.pass(time.Second)
	h.unknown("a buffer that was never full", h.lci().BufferBytes)
	w.again = 0.01
	h.pass(time.Second)
	h.near("buffer", h.lci().BufferBytes, 0.080*12e6/8, 0.05, mihf.SourceMeasured)
	h.unknown("loss", h.lci().LossRatio)
}

// "A value that was measured and is not confirmed for Fresh is history; after Forgotten it is unknown." Its
// confidence falls.
func TestAges(t *testing.T) {
	h := newEstimator(t)
	h.flow(loaded(20e6, 0))
	h.pass(2 * time.Second)
	before := h.lci().CapacityUpBPS
	next := h.e.Next(h.now)
	if d := next.Sub(before.At); d != lci.Fresh {
		t.Errorf("the next change is %v after the reading, want %v", d, lci.Fresh)
	}
	h.now = next
	old := h.lci().CapacityUpBPS
	if old.Source != mihf.SourceHistory || old.Value != before.Value || old.Confidence >= before.Confidence || old.At != before.At {
		t.Errorf("after %v it is %+v, was %+v", lci.Fresh, old, before)
	}
	h.now = before.At.Add(lci.HalfLife)
	if c := h.lci().CapacityUpBPS.Confidence; c > 0.6*old.Confidence {
		t.Errorf("confidence %v after %v, was %v", c, lci.HalfLife, old.Confidence)
	}
	h.now = before.At.Add(lci.Forgotten)
	h.unknown("capacity", h.lci().CapacityUpBPS)
	if next := h.e.Next(h.now); next != 0 {
		t.Errorf("something changes at %v although nothing is known", next)
	}
}

// "Another point of attachment has none of what was measured at the one before", and begins with its own history.
func TestPoAs(t *testing.T) {
	h := newEstimator(t)
	h.flow(loaded(20e6, 0))
	h.pass(2 * time.Second)
	at := h.lci()
	h.e.Attach("b", nil)
	h.unknown("capacity at another one", h.lci().CapacityUpBPS)
	h.unknown("RTT there", h.lci().RTTSeconds)
	h.ways[0].up = 4e6
	h.ways[0].base, h.ways[0].rtt, h.ways[0].receive = 40*ms, 90*ms, 0 // the transport's lowest is from before
	h.pass(time.Second)
	h.near("RTT there, from its own readings", h.lci().RTTSeconds, 0.090, 0.001, mihf.SourceMeasured)
	h.ways = nil
	h.now = h.now.Add(time.Minute)
	h.e.Attach("a", at)
	h.near("capacity on coming back", h.lci().CapacityUpBPS, 20e6, 0.02, mihf.SourceHistory)
	if c := h.lci().CapacityUpBPS; c.At != at.CapacityUpBPS.At || c.Confidence >= at.CapacityUpBPS.Confidence {
		t.Errorf("%+v, was %+v", c, at.CapacityUpBPS)
	}
	phy := &mihf.LCI{CapacityUpBPS: mihf.Characteristic{Value: 1, Source: mihf.SourcePHY, At: h.now, Confidence: 1}}
	h.e.Attach("c", phy)
	h.unknown("a history of a PHY class", h.lci().CapacityUpBPS)
}

// "A PHY rate never has another source than phy, and no PHY rate as such is a capacity"; what is measured counts before it.
func TestRadio(t *testing.T) {
	h := newEstimator(t)
	var v mihf.Values
	v.Set(mihf.ParamTxPHYRate, 100e6)
	v.Set(mihf.ParamRxPHYRate, 50e6)
	if h.e.Radio(h.now, &v) {
		t.Error("a PHY rate alone is news")
	}
	h.unknown("capacity by a PHY rate", h.lci().CapacityUpBPS)
	v.Set(mihf.ParamChannelBusy, 0.5)
	if !h.e.Radio(h.now, &v) || h.e.Radio(h.now.Add(time.Second), &v) {
		t.Error("want news once")
	}
	h.near("class up", h.lci().CapacityUpBPS, 30e6, 0.01, mihf.SourcePHY)
	h.near("class down", h.lci().CapacityDownBPS, 15e6, 0.01, mihf.SourcePHY)
	v.Set(mihf.ParamExpectedThroughput, 70e6)
	h.e.Radio(h.now, &v)
	h.near("what the rate control expects", h.lci().CapacityUpBPS, 70e6, 0.01, mihf.SourcePHY)
	if h.lci().CapacityUpBPS.Source.MayRaise() {
		t.Error("a class may raise a rate")
	}
	h.flow(loaded(20e6, 0))
	h.pass(2 * time.Second)
	h.near("capacity", h.lci().CapacityUpBPS, 20e6, 0.02, mihf.SourceMeasured)
	h.now = h.now.Add(time.Minute)
	h.near("capacity after a while", h.lci().CapacityUpBPS, 20e6, 0.02, mihf.SourceHistory)
	h.unknown("a class that is not told any more", h.lci().CapacityDownBPS)
}

func TestSignificant(t *testing.T) {
	base := func() *mihf.LCI {
		c := func(v float64) mihf.Characteristic { return mihf.Characteristic{Value: v, Source: mihf.SourceMeasured} }
		return &mihf.LCI{Link: wlan, PoA: "a", CapacityUpBPS: c(10e6), RTTSeconds: c(0.005), LossRatio: c(0.001), MTUBytes: c(1500)}
	}
	for name, tc := range map[string]struct {
		change func(*mihf.LCI)
		want   bool
	}{
		"nothing":              {func(*mihf.LCI) {}, false},
		"capacity by a fifth":  {func(l *mihf.LCI) { l.CapacityUpBPS.Value = 12e6 }, false},
		"capacity by more":     {func(l *mihf.LCI) { l.CapacityUpBPS.Value = 7.9e6 }, true},
		"RTT by a millisecond": {func(l *mihf.LCI) { l.RTTSeconds.Value = 0.0065 }, false},
		"RTT by five":          {func(l *mihf.LCI) { l.RTTSeconds.Value = 0.010 }, true},
		"loss of no account":   {func(l *mihf.LCI) { l.LossRatio.Value = 0.004 }, false},
		"loss":                 {func(l *mihf.LCI) { l.LossRatio.Value = 0.01 }, true},
		"the MTU":              {func(l *mihf.LCI) { l.MTUBytes.Value = 1499 }, true},
		"a source":             {func(l *mihf.LCI) { l.RTTSeconds.Source = mihf.SourceHistory }, true},
		"something new":        {func(l *mihf.LCI) { l.BufferBytes.Source = mihf.SourceMeasured }, true},
		"age and confidence":   {func(l *mihf.LCI) { l.RTTSeconds.At, l.RTTSeconds.Confidence = 9, 0.1 }, false},
		"the PoA":              {func(l *mihf.LCI) { l.PoA = "b" }, true},
	} {
		is := base()
		tc.change(is)
		if got := lci.Significant(base(), is); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if lci.Significant(nil, nil) || !lci.Significant(nil, base()) {
		t.Error("nil")
	}
}

// Whatever readings say, values can be, and the same readings give the same values.
func TestAnyReadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var twins [2]*lci.Estimator
		for i := range twins {
			twins[i] = lci.New(wlan)
		}
		now := start
		count := rapid.OneOf(rapid.Uint64Range(0, 1e6), rapid.Uint64())
		duration := rapid.Int64Range(0, int64(mihf.MaxFlowRTT))
		some := func(label string) (o mihf.Opt[time.Duration]) {
			if rapid.Bool().Draw(t, label+"?") {
				o = mihf.Some(time.Duration(duration.Draw(t, label)))
			}
			return o
		}
		number := func(label string) (o mihf.Opt[uint64]) {
			if rapid.Bool().Draw(t, label+"?") {
				o = mihf.Some(count.Draw(t, label))
			}
			return o
		}
		for range rapid.IntRange(1, 40).Draw(t, "readings") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "pause")))
			r := &mihf.FlowReading{
				Endpoints: mihf.Endpoints{Local: netip.MustParseAddrPort("192.0.2.7:1"), Remote: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.8"), uint16(rapid.IntRange(1, 4).Draw(t, "flow")))},
				RTT:       some("rtt"), RTTVar: some("var"), MinRTT: some("min"), ReceiveRTT: some("receive"), AppLimited: rapid.Bool().Draw(t, "app"),
				PathMTUBytes: number("mtu"), AckedBytes: number("acked"), ReceivedBytes: number("received"), SentSegments: number("sent"),
				RetransSegments: number("again"), DeliveredSegments: number("delivered"), Busy: some("busy"), WindowLimited: some("window"), BufferLimited: some("buffer"),
			}
			for _, e := range twins {
				e.Flow(now, now, r)
				e.Advance(now.Add(25 * ms))
			}
			a, b := twins[0].Now(now), twins[1].Now(now)
			if *a != *b {
				t.Fatalf("%+v, and %+v", a, b)
			}
			for _, c := range []mihf.Characteristic{a.CapacityUpBPS, a.CapacityDownBPS, a.RTTSeconds, a.JitterSeconds, a.LossRatio, a.BufferBytes} {
				if math.IsNaN(c.Value) || math.IsInf(c.Value, 0) || c.Value < 0 || c.Confidence < 0 || c.Confidence > 1 || (c.Known() && c.At > now) {
					t.Fatalf("%+v", a)
				}
			}
			if a.LossRatio.Value > 1 {
				t.Fatalf("loss of %v", a.LossRatio.Value)
			}
			if next := twins[0].Next(now.Add(25 * ms)); next != 0 && next <= now.Add(25*ms) {
				t.Fatalf("due at %v, which is past", next)
			}
		}
	})
}

// "At most MaxFlows flows are kept; one that was not read for FlowGone is none."
func TestFlowsAreBounded(t *testing.T) {
	h := newEstimator(t)
	for range lci.MaxFlows + 50 {
		h.flow(loaded(1e5, 0))
	}
	h.pass(2 * time.Second)
	h.near("capacity of those that are kept", h.lci().CapacityUpBPS, lci.MaxFlows*1e5, 0.05, mihf.SourceMeasured)
	h.ways, h.now = h.ways[lci.MaxFlows:], h.now.Add(lci.FlowGone)
	h.pass(4 * time.Second)
	h.near("capacity of the others", h.lci().CapacityUpBPS, 50*1e5, 0.05, mihf.SourceMeasured)
}

func BenchmarkFlows(b *testing.B) {
	h := estimatorTest{e: lci.New(wlan), now: start}
	for range 200 {
		h.flow(loaded(1e5, 0))
	}
	for b.Loop() {
		h.pass(poll)
	}
}
