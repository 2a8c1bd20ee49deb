package predictorstest

import (
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// "Background scans take the radio off channel for 5-9 s [...] During a scan window
// (bounded 12 s) evidence is suspended; signal slope is not computed across it."
func testScan(t *testing.T, m predictors.Method) {
	for _, c := range []struct {
		name   string
		window time.Duration
		within []float64 // readings in the window
		after  float64   // the level behind it
		end    bool      // the end of the scan is seen
	}{
		{"silence of 9 s", 9 * time.Second, nil, -72, true},
		{"readings of other channels", 5 * time.Second, []float64{-95, -94, -96, -95, -95}, -72, true},
		{"another level behind it", 2 * time.Second, nil, -84, true},
		{"end not seen", 13 * time.Second, []float64{-95, -95, -95}, -72, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, m)
			h.play(Signal{Level: Steady(-72), Noise: 1.5, Round: 1}, 1, 10*time.Second)
			at := Start.Add(10 * time.Second)
			h.feed(&mihf.Observation{At: at, Kind: mihf.ObsScan, Scanning: true})
			for i, v := range c.within {
				h.feed(Reading(at.Add(time.Duration(i+1)*200*ms), mihf.ParamRSSI, v))
			}
			h.silence(at.Add(2*time.Second), c.window-2*time.Second)
			at = at.Add(c.window)
			if c.end {
				h.feed(&mihf.Observation{At: at, Kind: mihf.ObsScan})
			}
			s := Signal{Level: Steady(c.after), Noise: 1.5, Round: 1}
			s.Play(2, 5*time.Second, func(o *mihf.Observation) {
				o.At = at.Add(o.At.Sub(Start) + 100*ms)
				h.feed(o)
			})
			h.wantNoAlarm()
			if !h.last {
				t.Error("no forecast 5 s after the scan")
			}
		})
	}
}

// "gap > 2 periods => samples flushed, all links re-evaluated": a trend does not go on
// behind a suspend, whether the sensor told of it or the clock alone.
func testSuspend(t *testing.T, m predictors.Method) {
	for _, c := range []struct {
		gap  time.Duration
		told bool
	}{{8 * time.Hour, true}, {8 * time.Hour, false}, {200 * ms, true}} {
		h := newHarness(t, m)
		h.play(Signal{Level: Ramp(-60, 2, -3), Noise: 1}, 1, 7*time.Second)
		wake := Start.Add(7*time.Second + c.gap)
		before := h.alarms
		if c.told {
			h.feed(&mihf.Observation{At: wake, Kind: mihf.ObsResume, Gap: c.gap})
		} else {
			h.ask(wake)
		}
		if h.last {
			t.Errorf("%+v: a forecast at once after a suspend", c)
		}
		s := Signal{Level: Steady(-78), Noise: 2, Round: 1}
		s.Play(2, 10*time.Second, func(o *mihf.Observation) {
			o.At = wake.Add(o.At.Sub(Start) + 50*ms)
			h.feed(o)
		})
		if !h.last || h.alarms > before {
			t.Errorf("%+v: after a suspend forecast %v, %d alarms", c, h.last, h.alarms-before)
		}
	}
}

// The wall clock is not known to a method. A step of the clock that it does know,
// which should not happen, makes no alarm either, and does not make it deaf.
func testClockSteps(t *testing.T, m predictors.Method) {
	for _, step := range []time.Duration{-time.Hour + 1, -time.Minute, -5 * time.Second, -ms, time.Hour} {
		h := newHarness(t, m)
		s := Signal{Level: Ramp(-75, 40, -3), Noise: 1.5, Round: 1}
		s.Play(1, 45*time.Second, func(o *mihf.Observation) {
			since := o.At.Sub(Start)
			if since > 20*time.Second {
				o.At = o.At.Add(step)
			}
			h.feed(o)
			if since < 40*time.Second {
				h.wantNoAlarm()
			}
		})
		if h.alarms == 0 {
			t.Errorf("step of %v: nothing was announced when the link failed after it", step)
		}
	}
}

// "Marginal link, one missed 13 s poll", and a sensor that misses many.
func testMissingSamples(t *testing.T, m predictors.Method) {
	for _, c := range []struct {
		interval time.Duration
		missed   func(n int) bool
	}{
		{13 * time.Second, func(n int) bool { return n == 30 }},
		{time.Second, func(n int) bool { return n*7919%10 < 3 }},
		{100 * ms, func(n int) bool { return n*7919%10 < 5 }},
	} {
		h := newHarness(t, m)
		n := 0
		s := Signal{Level: Steady(-79), Interval: c.interval, Noise: 1.5, Round: 1, Jitter: 0.2}
		s.Play(1, 60*c.interval, func(o *mihf.Observation) {
			if n++; c.missed(n) {
				h.ask(o.At)
				return
			}
			h.feed(o)
		})
		h.wantNoAlarm()
	}
}

// A reading that comes again, at once or with its age, changes nothing.
func testRepeatedSamples(t *testing.T, m predictors.Method) {
	once, again := newHarness(t, m), newHarness(t, m)
	s := Signal{Level: Ramp(-60, 3, -3), Noise: 2, Round: 1}
	s.Play(1, 12*time.Second, func(o *mihf.Observation) {
		once.feed(o)
		again.feed(o)
		again.feed(o)
		late := *o
		late.At, late.Age = o.At.Add(40*ms), 40*ms
		again.feed(&late)
		again.ask(o.At.Add(40 * ms))
		if once.ask(o.At.Add(40 * ms)); once.f.Loss != again.f.Loss {
			t.Fatalf("repeated readings change the forecast at %v", o.At)
		}
	})
}

// "The absence of samples is no proof of loss": a steady signal that goes silent makes
// no alarm, and after a while nothing is said.
func testSilence(t *testing.T, m predictors.Method) {
	h := newHarness(t, m)
	h.play(Signal{Level: Steady(-78), Noise: 2, Round: 1}, 1, 10*time.Second)
	h.silence(Start.Add(10*time.Second), time.Minute)
	h.wantNoAlarm()
	if h.last {
		t.Error("a forecast after a minute without a sample")
	}
}

// What was true of one point of attachment is not true of the next.
func testNewAttachment(t *testing.T, m predictors.Method) {
	for _, associated := range []bool{true, false} {
		h := newHarness(t, m)
		h.play(Signal{Level: Ramp(-60, 2, -3), PoA: "02:00:00:00:00:01", Noise: 1}, 1, 9*time.Second)
		at, before := Start.Add(9*time.Second), h.alarms
		h.on = false
		if associated {
			a := &mihf.Association{State: mihf.AssociationAuthorised, PoA: "02:00:00:00:00:02"}
			h.feed(&mihf.Observation{At: at, Kind: mihf.ObsAssociation, Association: a})
		}
		s := Signal{Level: Steady(-70), PoA: "02:00:00:00:00:02", Noise: 1}
		s.Play(2, 3*time.Second, func(o *mihf.Observation) {
			o.At = at.Add(o.At.Sub(Start) + 10*ms)
			h.feed(o)
		})
		if h.alarms > before || !h.last {
			t.Errorf("associated %v: %d alarms at the new point of attachment, forecast %v", associated, h.alarms-before, h.last)
		}
	}
}

// "One time series = one attribute; switching attribute resets the slope estimator."
func testAttributeChange(t *testing.T, m predictors.Method) {
	h := newHarness(t, m)
	n := 0
	s := Signal{Level: Steady(-60), Noise: 0.5}
	s.Play(1, 30*time.Second, func(o *mihf.Observation) {
		if n++; n/50%2 == 1 { // the driver gives its average only from time to time
			o = Reading(o.At, mihf.ParamRSSIAverage, -82)
		}
		h.feed(o)
		if s := h.f.Trend.Slope; s < -1 || s > 1 {
			t.Fatalf("slope %v after a change of the attribute", s)
		}
	})
	h.wantNoAlarm()
}
