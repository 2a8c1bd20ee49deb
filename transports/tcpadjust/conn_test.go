package tcpadjust_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/transports/tcpadjust"
)

const (
	ms  = time.Millisecond
	now = mihf.Time(time.Hour)
)

func value(v float64, source mihf.Source) mihf.Characteristic {
	return mihf.Characteristic{Value: v, Source: source, At: now, Confidence: 0.9}
}

func path(bps, rtt float64, source mihf.Source) tcpadjust.Path {
	return tcpadjust.Path{LCI: mihf.LCI{
		CapacityUpBPS: value(bps, source), CapacityDownBPS: value(bps, source), RTTSeconds: value(rtt, source),
	}}
}

func state(cwnd int) tcpadjust.State {
	return tcpadjust.State{SegmentBytes: 1460, CwndSegments: cwnd, Ssthresh: cwnd}
}

// TestWindow has the bandwidth-delay products of the two simulations of the Quick-Adjust
// slides, in segments of 1500 octets on the wire, rounded up.
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		bps  float64
		rtt  time.Duration
		want int
	}{
		{1e6, 110 * ms, 10},
		{40.2e3, 700 * ms, 3},
		{40.2e3, time.Second, 4},
		{5e6, 140 * ms, 59},
		{200e3, 700 * ms, 12},
		{200e3, 1300 * ms, 22},
		{1e3, ms, 2},
	} {
		if got := tcpadjust.Window(tt.bps, tt.rtt, 1460, 40); got != tt.want {
			t.Errorf("%v bit/s, %v: %d segments, want %d", tt.bps, tt.rtt, got, tt.want)
		}
	}
}

// TestRights: who may raise, who may lower.
func TestRights(t *testing.T) {
	for _, tt := range []struct {
		source mihf.Source
		cwnd   int
		want   tcpadjust.Direction
		window int
	}{
		{mihf.SourceMeasured, 10, tcpadjust.Raise, 667},
		{mihf.SourceOperator, 10, tcpadjust.Raise, 667},
		{mihf.SourceHistory, 10, tcpadjust.Raise, 333},
		{mihf.SourceHistory, 400, tcpadjust.Keep, 400},
		{mihf.SourceModem, 10, tcpadjust.Nothing, 0},
		{mihf.SourcePHY, 10, tcpadjust.Nothing, 0},
		{mihf.SourceMeasured, 5000, tcpadjust.Lower, 667},
		{mihf.SourceModem, 5000, tcpadjust.Lower, 667},
		{mihf.SourcePHY, 5000, tcpadjust.Lower, 667},
		{mihf.SourceMeasured, 700, tcpadjust.Keep, 700},
	} {
		var c tcpadjust.Conn
		p := c.Adjust(now, state(tt.cwnd), path(100e6, 0.08, tt.source), tcpadjust.Progress{})
		if p.Direction != tt.want || p.CwndSegments != tt.window {
			t.Errorf("%v from %d: %v to %d (%s), want %v to %d", tt.source, tt.cwnd, p.Direction, p.CwndSegments, p.Why, tt.want, tt.window)
		}
	}
}

func TestRaiseIsPaced(t *testing.T) {
	var c tcpadjust.Conn
	p := c.Adjust(now, state(10), path(100e6, 0.08, mihf.SourceMeasured), tcpadjust.Progress{})
	if p.PacingBPS != 90e6 || p.PacedFor != 160*ms || p.ClampSegment != 2*667 {
		t.Errorf("%+v: want 90 Mbit/s for two round trips, and a bound of twice the window", p)
	}
}

func TestSharers(t *testing.T) {
	in := path(100e6, 0.08, mihf.SourceMeasured)
	in.Sharers = 10
	var c tcpadjust.Conn
	if p := c.Adjust(now, state(10), in, tcpadjust.Progress{}); p.CwndSegments != 67 || p.PacingBPS != 9e6 {
		t.Errorf("%+v, want a tenth of the path", p)
	}
}

func TestQuarantine(t *testing.T) {
	set := func(change func(*tcpadjust.State, *tcpadjust.Path)) (tcpadjust.State, tcpadjust.Path) {
		s, p := state(10), path(100e6, 0.08, mihf.SourceMeasured)
		change(&s, &p)
		return s, p
	}
	for want, change := range map[string]func(*tcpadjust.State, *tcpadjust.Path){
		"capacity is not known":                       func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS = mihf.Characteristic{} },
		"a capacity of 0 is not":                      func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS.Value = 0 },
		"a capacity of 1 is not":                      func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS.Value = 1 },
		"a capacity of 1e+13 is":                      func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS.Value = 1e13 },
		"a capacity of NaN is":                        func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS.Value = math.NaN() },
		"a round-trip time of 0 is":                   func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.RTTSeconds.Value = 0 },
		"a round-trip time of 11 is":                  func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.RTTSeconds.Value = 11 },
		"round-trip time is not known":                func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.RTTSeconds = mihf.Characteristic{} },
		"capacity has a confidence of 0.4":            func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS.Confidence = 0.4 },
		"capacity is 31s old":                         func(_ *tcpadjust.State, p *tcpadjust.Path) { p.LCI.CapacityUpBPS.At = now.Add(-31 * time.Second) },
		"the connection carries 2.01e+08":             func(s *tcpadjust.State, _ *tcpadjust.Path) { s.DeliveryBPS = 201e6 },
		"the connection has no segment size yet":      func(s *tcpadjust.State, _ *tcpadjust.Path) { s.SegmentBytes = 0 },
		"a part of 100 bit/s is nothing to plan with": func(_ *tcpadjust.State, p *tcpadjust.Path) { p.Sharers = 1e6 },
	} {
		var c tcpadjust.Conn
		s, in := set(change)
		p := c.Adjust(now, s, in, tcpadjust.Progress{})
		if p.Direction != tcpadjust.Nothing || !strings.HasPrefix(p.Why, want) {
			t.Errorf("%v (%q), want nothing, since %s", p.Direction, p.Why, want)
		}
	}
}

// TestOwnRoundTripFirst: what the connection measured on the path counts, not what is told.
func TestOwnRoundTripFirst(t *testing.T) {
	var c tcpadjust.Conn
	s := state(10)
	s.MinRTT = 40 * ms
	if p := c.Adjust(now, s, path(100e6, 9, mihf.SourceMeasured), tcpadjust.Progress{}); p.CwndSegments != 334 {
		t.Errorf("%+v, want the window of 40 ms", p)
	}
	in := path(100e6, 0, mihf.SourceMeasured)
	in.LCI.RTTSeconds, in.RTT = mihf.Characteristic{}, 80*ms
	if p := c.Adjust(now, state(10), in, tcpadjust.Progress{}); p.CwndSegments != 667 {
		t.Errorf("%+v, want the window of the exchange that made the path", p)
	}
}

func TestUndo(t *testing.T) {
	var c tcpadjust.Conn
	c.Adjust(now, state(10), path(100e6, 0.08, mihf.SourceMeasured), tcpadjust.Progress{DeliveredBytes: 1000, LostSegments: 5})
	if _, ok := c.Observe(now.Add(80*ms), tcpadjust.Progress{DeliveredBytes: 1000, LostSegments: 5}); ok {
		t.Error("a raise is taken back without a loss")
	}
	p, ok := c.Observe(now.Add(160*ms), tcpadjust.Progress{DeliveredBytes: 1000 + 1460*200, LostSegments: 6})
	if !ok || p.Direction != tcpadjust.Lower || p.CwndSegments != 50 || p.Ssthresh != 50 {
		t.Errorf("%+v, %v: want half of the 100 segments that a round trip carried", p, ok)
	}
	if _, ok := c.Observe(now.Add(240*ms), tcpadjust.Progress{LostSegments: 7}); ok {
		t.Error("a raise is taken back twice")
	}
	if !c.Next().IsZero() {
		t.Error("a raise that was taken back is watched")
	}
}

func TestWatchEnds(t *testing.T) {
	var c tcpadjust.Conn
	c.Adjust(now, state(10), path(100e6, 0.08, mihf.SourceMeasured), tcpadjust.Progress{})
	if want := now.Add(320 * ms); c.Next() != want {
		t.Fatalf("watched until %v, want %v", c.Next(), want)
	}
	c.Advance(c.Next())
	if _, ok := c.Observe(now.Add(321*ms), tcpadjust.Progress{LostSegments: 9}); ok {
		t.Error("a loss after the watch takes the raise back")
	}
}

func TestReceiver(t *testing.T) {
	s := state(0)
	s.Role = tcpadjust.Receiver
	in := path(40.2e3, 0.7, mihf.SourceMeasured)
	in.LCI.CapacityUpBPS.Value = 1e9 // the other direction is not what counts
	var c tcpadjust.Conn
	if p := c.Adjust(now, s, in, tcpadjust.Progress{}); p.AdvertiseBytes != 2*3*1460 {
		t.Errorf("%+v, want twice the three segments of the path", p)
	}
	if p := c.Adjust(now, s, path(40.2e3, 0.7, mihf.SourcePHY), tcpadjust.Progress{}); p.AdvertiseBytes != 0 || p.Why == "" {
		t.Errorf("%+v, want nothing from a PHY class", p)
	}
}

func TestFreezeInTime(t *testing.T) {
	if tcpadjust.FreezeInTime(159*ms, 100*ms, 50*ms) || !tcpadjust.FreezeInTime(160*ms, 100*ms, 50*ms) {
		t.Error("want a round trip, the acknowledgement's way and 10 ms")
	}
}

// TestPlans holds any plan to what is promised of all.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := state(rapid.IntRange(1, 100_000).Draw(t, "cwnd"))
		s.SegmentBytes = rapid.IntRange(1, 9000).Draw(t, "segment")
		s.MinRTT = time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "rtt"))
		source := mihf.Source(rapid.IntRange(0, 5).Draw(t, "source"))
		in := path(rapid.Float64().Draw(t, "bps"), rapid.Float64().Draw(t, "told"), source)
		in.Sharers = rapid.IntRange(-1, 1000).Draw(t, "sharers")
		var c tcpadjust.Conn
		p := c.Adjust(now, s, in, tcpadjust.Progress{})
		switch {
		case p.Direction == tcpadjust.Raise && (!source.MayRaise() || p.PacingBPS <= 0 || p.PacedFor <= 0 || p.CwndSegments <= s.CwndSegments):
			t.Fatalf("%+v raises", p)
		case p.Direction == tcpadjust.Raise && p.PacingBPS > in.LCI.CapacityUpBPS.Value:
			t.Fatalf("%+v paces above the path", p)
		case p.Direction == tcpadjust.Lower && (p.CwndSegments >= s.CwndSegments || p.CwndSegments < 2):
			t.Fatalf("%+v lowers from %d", p, s.CwndSegments)
		case p.Direction == tcpadjust.Nothing && (p.Why == "" || p.CwndSegments != 0):
			t.Fatalf("%+v does nothing", p)
		}
		if q, ok := c.Observe(now.Add(s.MinRTT), tcpadjust.Progress{LostSegments: 1}); ok && (q.CwndSegments > p.CwndSegments || q.CwndSegments < 2) {
			t.Fatalf("%+v takes back %+v", q, p)
		}
	})
}
