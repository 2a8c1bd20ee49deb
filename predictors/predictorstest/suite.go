// Package predictorstest checks what package predictors promises of every method, and
// makes signals to measure methods with.
//
// A method's own test calls [Run]. Every signal comes from a seed, so a failure repeats.
//
// Limits: the suite says that a method does no harm and sees a plain walk out of a
// cell. How good it is, only recorded signals can tell.
package predictorstest

import (
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

const ms = time.Millisecond

// RunHarmless runs the part of the suite that says that a method does no harm, for one that
// is no match for a walk out of a cell, because it looks at something else.
func RunHarmless(t *testing.T, m predictors.Method) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, predictors.Method)
	}{
		{"Deterministic", testDeterministic},
		{"Allocations", testAllocations},
		{"State", testState},
		{"AnyInput", testAnyInput},
		{"TruthIgnored", testTruthIgnored},
		{"StaticClient", testStaticClient},
		{"SingleOutlier", testSingleOutlier},
		{"FlappingEvents", testFlappingEvents},
		{"StaleComparison", testStaleComparison},
		{"MissingSamples", testMissingSamples},
		{"RepeatedSamples", testRepeatedSamples},
		{"Silence", testSilence},
		{"AttributeChange", testAttributeChange},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, m) })
	}
}

// Run runs the suite against a method.
func Run(t *testing.T, m predictors.Method) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, predictors.Method)
	}{
		{"Deterministic", testDeterministic},
		{"Allocations", testAllocations},
		{"State", testState},
		{"AnyInput", testAnyInput},
		{"NothingKnown", testNothingKnown},
		{"TruthIgnored", testTruthIgnored},
		{"StaticClient", testStaticClient},
		{"SingleOutlier", testSingleOutlier},
		{"FlappingEvents", testFlappingEvents},
		{"StaleComparison", testStaleComparison},
		{"Scan", testScan},
		{"Suspend", testSuspend},
		{"ClockSteps", testClockSteps},
		{"MissingSamples", testMissingSamples},
		{"RepeatedSamples", testRepeatedSamples},
		{"Silence", testSilence},
		{"Fade", testFade},
		{"NewAttachment", testNewAttachment},
		{"AttributeChange", testAttributeChange},
		{"WalkAway", testWalkAway},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, m) })
	}
}

// "A static client in steady signal for an hour with 3 dB noise: 0 alarms."
func testStaticClient(t *testing.T, m predictors.Method) {
	for _, level := range []float64{-50, -70, -80} {
		for seed := range uint64(2) {
			h := newHarness(t, m)
			h.play(Signal{Level: Steady(level), Noise: 3, Round: 1}, seed, time.Hour)
			h.wantNoAlarm()
		}
	}
}

// "-60,-60,-92,-60: 1 outlier never gives GOING_DOWN", wherever it lies in the series
// and whatever follows it.
func testSingleOutlier(t *testing.T, m predictors.Method) {
	for _, interval := range []time.Duration{100 * ms, time.Second, 5 * time.Second} {
		for place := range 60 {
			for _, outlier := range []float64{-110, -92, -20} {
				h := newHarness(t, m)
				n := 0
				h.play(Signal{Interval: interval, Level: func(float64) float64 {
					if n++; n == place+1 {
						return outlier
					}
					return -60
				}}, 1, 62*interval)
				h.wantNoAlarm()
			}
		}
		h := newHarness(t, m)
		at := Start
		for _, v := range []float64{-60, -60, -60, -60, -92} {
			h.feed(Reading(at, mihf.ParamRSSI, v))
			at = at.Add(interval)
		}
		h.silence(at, time.Minute)
		h.wantNoAlarm()
	}
}

// "Signal oscillating +-5 dB around the threshold; repeated beacon-loss events [...]
// at most 1 GOING_DOWN per 30 s; single beacon loss is evidence, not a verdict."
func testFlappingEvents(t *testing.T, m predictors.Method) {
	h := newHarness(t, m)
	level := func(s float64) float64 {
		if int(s/1.7)%2 == 0 {
			return -71
		}
		return -66
	}
	n := 0
	s := Signal{Level: level, Noise: 1, Round: 1}
	s.Play(3, 2*time.Minute, func(o *mihf.Observation) {
		if n++; n%40 == 0 {
			o.Values.Set(mihf.ParamBeaconLoss, 1)
		}
		if n%100 == 0 || n%100 == 3 { // a scan, aborted
			h.feed(&mihf.Observation{At: o.At - 1, Kind: mihf.ObsScan, Scanning: n%100 == 0})
		}
		h.feed(o)
	})
	if h.alarms > 4 {
		t.Errorf("%d alarms in 2 minutes", h.alarms)
	}
}

// "Links are compared only with samples younger than max_age on both sides; otherwise
// no recommendation": the serving sample is 20 s old, the candidate was just scanned.
func testStaleComparison(t *testing.T, m predictors.Method) {
	candidate := func(at mihf.Time, age time.Duration, v float64) *mihf.Observation {
		d := &mihf.Detected{PoA: "02:00:00:00:00:02"}
		d.Values.Set(mihf.ParamRSSI, v)
		return &mihf.Observation{At: at, Age: age, Kind: mihf.ObsDetected, Detected: d}
	}
	for _, c := range []struct {
		name                 string
		servingAge, otherAge time.Duration
		serving, other       float64
	}{
		{"serving sample is old", 20 * time.Second, 0, -80, -50},
		{"candidate is old", 0, 20 * time.Second, -80, -50},
		{"candidate is weaker", 0, 0, -50, -75},
	} {
		h := newHarness(t, m)
		h.play(Signal{Level: Steady(c.serving), PoA: "02:00:00:00:00:01"}, 1, 5*time.Second)
		now := Start.Add(5*time.Second - 100*ms).Add(c.servingAge)
		h.observe(now, candidate(now, c.otherAge, c.other))
		if p := h.f.Handover.Within(mihf.ForecastHorizon); p >= mihf.MinProbability {
			t.Errorf("%s: P(handover) = %.2f", c.name, p)
		}
		h.wantNoAlarm()
	}
	h := newHarness(t, m)
	h.feed(candidate(Start.Add(-ms), 0, -50))
	h.play(Signal{Level: Steady(-80), PoA: "02:00:00:00:00:01"}, 1, time.Minute)
	if p := h.f.Handover.Within(mihf.ForecastHorizon); p >= mihf.MinProbability {
		t.Errorf("candidate heard a minute ago: P(handover) = %.2f", p)
	}
}

// A signal that falls to -83 dBm within seconds and comes back: whatever is announced
// can be rolled back ("short fades of 1-3 s").
func testFade(t *testing.T, m predictors.Method) {
	h := newHarness(t, m)
	h.play(Signal{Level: func(s float64) float64 {
		switch {
		case s < 10:
			return -62
		case s < 13:
			return -62 - 7*(s-10)
		case s < 16:
			return -83 + 7*(s-13)
		}
		return -62
	}, Noise: 1}, 1, 20*time.Second)
	if p := h.f.Loss.Within(AlarmHorizon); !h.last || p >= 0.1 {
		t.Errorf("4 s after a fade P(loss) = %.2f (forecast: %v)", p, h.last)
	}
}

// A walk out of the cell is announced before the floor of 802.11 is reached.
func testWalkAway(t *testing.T, m predictors.Method) {
	for _, slope := range []float64{2, 3, 4, 6} {
		early := 0
		const seeds = 40
		for seed := range uint64(seeds) {
			h := newHarness(t, m)
			length := time.Duration((10 + 27/slope - 0.2) * 1e9)
			h.play(Signal{Level: Ramp(-60, 10, -slope), Noise: 2, Round: 1}, seed, length)
			if h.alarms > 0 {
				early++
			}
		}
		if early < seeds*9/10 {
			t.Errorf("%g dB/s: announced 0.2 s before -87 dBm in %d of %d walks", slope, early, seeds)
		}
	}
}
