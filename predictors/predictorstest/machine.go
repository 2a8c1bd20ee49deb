package predictorstest

import (
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Two predictors that see the same give the same, although one of them is asked more.
func testDeterministic(t *testing.T, m predictors.Method) {
	rapid.Check(t, func(rt *rapid.T) {
		script := drawScript(rt)
		a, b := m.New(), m.New()
		var fa, fb, extra mihf.Forecast
		for _, s := range script {
			a.Observe(s.now, s.o)
			b.Observe(s.now, s.o)
			b.Forecast(s.now.Add(time.Second), &extra)
			okA, okB := a.Forecast(s.now, &fa), b.Forecast(s.now, &fb)
			if okA != okB || fa != fb {
				rt.Fatalf("at %v: %v %+v and %v %+v", s.now, okA, fa, okB, fb)
			}
		}
	})
}

// Whatever comes, in whatever order, a forecast is a forecast.
func testAnyInput(t *testing.T, m predictors.Method) {
	rapid.Check(t, func(rt *rapid.T) {
		p := m.New()
		var f mihf.Forecast
		for _, s := range drawScript(rt) {
			p.Observe(s.now, s.o)
			p.Forecast(s.now, &f)
			CheckForecast(t, &f)
			p.Forecast(s.now.Add(time.Hour), &f)
			CheckForecast(t, &f)
		}
	})
}

type step struct {
	now mihf.Time
	o   *mihf.Observation
}

// drawScript draws observations of all kinds, mostly readings, with times that mostly
// go on, and payloads that may be missing.
func drawScript(rt *rapid.T) []step {
	now := Start
	poas := rapid.SampledFrom([]mihf.PoA{"", "a", "b"})
	kinds := rapid.SampledFrom([]mihf.ObservationKind{
		mihf.ObsRadio, mihf.ObsRadio, mihf.ObsRadio, mihf.ObsRadio, mihf.ObsRadio, mihf.ObsRadio, mihf.ObsRadio,
		mihf.ObsRadio, mihf.ObsDetected, mihf.ObsDetected, mihf.ObsAssociation, mihf.ObsScan, mihf.ObsHandover,
		mihf.ObsLink, mihf.ObsLinkGone, mihf.ObsEgress, mihf.ObsPeer, mihf.ObsFlow, mihf.ObsCondition, mihf.ObsResync,
		mihf.ObsResume, mihf.ObsTruth, 99,
	})
	steps := rapid.SampledFrom([]time.Duration{
		0, 1, ms, 100 * ms, 100 * ms, 100 * ms, 100 * ms, 100 * ms, time.Second, 20 * time.Second, 8 * time.Hour, -ms, -time.Hour / 2,
	})
	script := make([]step, rapid.IntRange(1, 80).Draw(rt, "length"))
	for i := range script {
		now = max(now.Add(steps.Draw(rt, "step")), 1)
		o := &mihf.Observation{At: now, Kind: kinds.Draw(rt, "kind"), PoA: poas.Draw(rt, "poa"), Scanning: rapid.Bool().Draw(rt, "scanning")}
		o.Age = rapid.SampledFrom([]time.Duration{0, 0, 0, ms, time.Minute, -time.Second}).Draw(rt, "age")
		drawValues(rt, &o.Values)
		switch {
		case rapid.IntRange(0, 9).Draw(rt, "payload") == 0:
		case o.Kind == mihf.ObsAssociation:
			o.Association = &mihf.Association{State: mihf.AssociationState(rapid.IntRange(0, 5).Draw(rt, "state")), PoA: poas.Draw(rt, "new poa")}
		case o.Kind == mihf.ObsDetected:
			o.Detected = &mihf.Detected{PoA: poas.Draw(rt, "other")}
			drawValues(rt, &o.Detected.Values)
		case o.Kind == mihf.ObsLink:
			o.Facts = &mihf.LinkFacts{AdminUp: rapid.Bool().Draw(rt, "up"), Carrier: true}
		}
		script[i] = step{now, o}
	}
	return script
}

func drawValues(rt *rapid.T, vs *mihf.Values) {
	for range rapid.IntRange(0, 3).Draw(rt, "values") {
		p := mihf.Parameter(rapid.IntRange(0, mihf.NumParameters-1).Draw(rt, "parameter"))
		vs.Set(p, rapid.OneOf(rapid.Float64Range(-110, 100), rapid.Float64()).Draw(rt, "value"))
	}
}

// "No allocation on the path from a sample to its forecast."
func testAllocations(t *testing.T, m predictors.Method) {
	p := m.New()
	var f mihf.Forecast
	d := &mihf.Detected{PoA: "02:00:00:00:00:02"}
	d.Values.Set(mihf.ParamRSSI, -50)
	other := &mihf.Observation{Kind: mihf.ObsDetected, Detected: d}
	o := Reading(Start, mihf.ParamRSSI, 0)
	o.PoA = "02:00:00:00:00:01"
	i := 0
	if n := testing.AllocsPerRun(2000, func() {
		i++
		o.At = o.At.Add(100 * ms)
		o.Values.Set(mihf.ParamRSSI, -70-float64(i%17))
		p.Observe(o.At, o)
		if i%10 == 0 {
			other.At = o.At
			p.Observe(o.At, other)
		}
		p.Forecast(o.At, &f)
	}); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

// A predictor that has seen all it can keeps no more than it may.
func testState(t *testing.T, m predictors.Method) {
	const n = 512
	var before, after runtime.MemStats
	all := make([]predictors.Predictor, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range all {
		all[i] = m.New()
		for k := range 64 {
			at := Start.Add(time.Duration(k) * 100 * ms)
			all[i].Observe(at, Reading(at, mihf.ParamRSSI, -60))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if size := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; size > predictors.MaxStateBytes {
		t.Errorf("a predictor holds %d bytes, limit %d", size, predictors.MaxStateBytes)
	}
	runtime.KeepAlive(all)
}

// "time_to_down is absent (not 0) if unknown."
func testNothingKnown(t *testing.T, m predictors.Method) {
	h := newHarness(t, m)
	h.ask(Start)
	if _, ok := h.f.Loss.Quantile(0.5); ok || h.last {
		t.Error("a forecast before the first sample")
	}
	h.play(Signal{Level: Steady(-50), Noise: 1}, 1, 10*time.Second)
	if _, ok := h.f.Loss.Quantile(0.5); ok || !h.last {
		t.Errorf("forecast %v, with a time to loss: %v, of a good link", h.last, ok)
	}
	h = newHarness(t, m)
	s := Signal{Level: Ramp(-70, 0, -3)}
	s.Play(1, 10*time.Second, func(o *mihf.Observation) { // what a sleeping modem shows
		o.Age = time.Minute
		if h.feed(o); h.last {
			t.Fatal("a forecast from readings that are a minute old")
		}
	})
}

func testTruthIgnored(t *testing.T, m predictors.Method) {
	without, with := newHarness(t, m), newHarness(t, m)
	s := Signal{Level: Ramp(-60, 3, -3), Noise: 2, Round: 1}
	s.Play(1, 12*time.Second, func(o *mihf.Observation) {
		without.feed(o)
		with.p.Observe(o.At, &mihf.Observation{At: o.At, Kind: mihf.ObsTruth, Truth: &mihf.Truth{Kind: "loss"}})
		if with.feed(o); with.f != without.f {
			t.Fatalf("a truth line changes the forecast at %v", o.At)
		}
	})
}
