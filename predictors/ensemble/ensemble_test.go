package ensemble_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/predictorstest"
)

func TestConformance(t *testing.T) { predictorstest.Run(t, ensemble.Method()) }

const start = predictorstest.Start

// What is shipped can be used, and says where it comes from.
func TestShipped(t *testing.T) {
	s := ensemble.Shipped()
	if _, err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	if s.Provenance == "" {
		t.Error("the shipped weights do not say where they come from")
	}
	for m := ensemble.ModelNone + 1; m < ensemble.NumModels; m++ {
		if w, ok := s.Models[m.String()]; !ok || len(w.Policies) == 0 {
			t.Errorf("model %v is not shipped, or without policies", m)
		}
	}
}

// "A set of models that does not fit is refused."
func TestRefused(t *testing.T) {
	for name, change := range map[string]func(w *ensemble.Weights){
		"unknown feature": func(w *ensemble.Weights) { w.Features[0] = "moon" },
		"scale of 0":      func(w *ensemble.Weights) { w.Scale[1] = 0 },
		"missing weight":  func(w *ensemble.Weights) { w.Weight[2] = w.Weight[2][1:] },
		"missing mean":    func(w *ensemble.Weights) { w.Mean = w.Mean[1:] },
	} {
		s := ensemble.Shipped()
		w := s.Models["wifi"]
		change(&w)
		s.Models["wifi"] = w
		if _, err := s.Compile(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := ensemble.Set{Models: map[string]ensemble.Weights{"tea": {}}}
	if _, err := s.Compile(); err == nil {
		t.Error("a model that does not exist is accepted")
	}
}

func cell(at mihf.Time, poa mihf.PoA, rsrp, rsrq float64) *mihf.Observation {
	o := predictorstest.Reading(at, mihf.ParamRSRP, rsrp)
	o.Values.Set(mihf.ParamRSRQ, rsrq)
	o.PoA = poa
	return o
}

func neighbour(at mihf.Time, rsrp, rsrq, co float64) *mihf.Observation {
	d := &mihf.Detected{PoA: "c2"}
	d.Values.Set(mihf.ParamRSRP, rsrp)
	d.Values.Set(mihf.ParamRSRQ, rsrq)
	d.Values.Set(mihf.ParamCoChannel, co)
	return &mihf.Observation{At: at, Kind: mihf.ObsDetected, Detected: d}
}

// A co-channel neighbour that grows past the serving cell announces a handover to it; one
// on another frequency says much less.
func TestNeighbourGrows(t *testing.T) {
	run := func(co float64) (low, high float64, target mihf.PoA) {
		p := predictorOf()
		var f mihf.Forecast
		for i := range 100 {
			at := start.Add(time.Duration(i) * 80 * time.Millisecond)
			d := -12 + 0.2*float64(i)
			quality := -12 - 0.08*float64(i)
			p.Observe(at, cell(at, "c1", -100, quality))
			p.Observe(at, neighbour(at, -100+d, quality+d, co))
			p.Forecast(at, &f)
			predictorstest.CheckForecast(t, &f)
			if i == 20 {
				low = f.Handover.Within(time.Second)
			}
		}
		return low, f.Handover.Within(time.Second), f.Target
	}
	low, high, target := run(1)
	if low > 0.01 || high < 0.1 || target != "c2" {
		t.Errorf("P(handover within 1 s) %.2f at -8 dB and %.2f at +8 dB, to %q", low, high, target)
	}
	if _, other, _ := run(0); other > high/2 {
		t.Errorf("on another frequency P is %.2f, on the same %.2f", other, high)
	}
}

func predictorOf() predictors.Predictor { return ensemble.Method().New() }

// Answers that take ever longer announce a stall.
func TestSlowAnswers(t *testing.T) {
	run := func(growth float64) float64 {
		p := predictorOf()
		var f mihf.Forecast
		at, rtt := start, 0.05
		for i := range 150 {
			at = at.Add(200 * time.Millisecond)
			if i > 140 {
				rtt *= growth
			}
			p.Observe(at, predictorstest.Reading(at, mihf.ParamRTT, rtt+0.002*float64(i%5)))
		}
		p.Forecast(at, &f)
		return f.Loss.Within(3 * time.Second)
	}
	if steady, slow := run(1), run(1.4); slow < 5*steady || slow < 0.03 {
		t.Errorf("P(loss within 3 s) %.3f with steady answers, %.3f with ever slower ones", steady, slow)
	}
}

// The memory of a link scales its hazards within bounds, and can be reset.
func TestAdaptation(t *testing.T) {
	p := ensemble.Method().New().(*ensemble.Predictor)
	var f mihf.Forecast
	at := start
	play := func(seconds int) float64 {
		for range seconds {
			at = at.Add(time.Second)
			p.Observe(at, cell(at, "c1", -100, -14))
		}
		p.Forecast(at, &f)
		return f.Handover.Within(5 * time.Second)
	}
	first, later := play(30), play(7200)
	if !(later < first/2) || later < first/30 {
		t.Errorf("P(handover within 5 s) %.4f, after two hours without one %.4f", first, later)
	}
	p.Reset()
	p.Forecast(at, &f)
	if again := f.Handover.Within(5 * time.Second); again < first/2 || again > first*2 {
		t.Errorf("after a reset P is %.4f, at first %.4f", again, first)
	}
}

// Whatever the features are, an incidence is one: it never falls and stays within 1.
func TestAnyCells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := predictorOf()
		var f mihf.Forecast
		at := start
		for range 30 {
			at = at.Add(time.Duration(rapid.IntRange(1, 5000).Draw(rt, "ms")) * time.Millisecond)
			o := cell(at, rapid.SampledFrom([]mihf.PoA{"c1", "c2", ""}).Draw(rt, "poa"), rapid.Float64Range(-140, -40).Draw(rt, "rsrp"), rapid.Float64Range(-30, -3).Draw(rt, "rsrq"))
			o.Values.Set(mihf.ParamSINR, rapid.Float64Range(-20, 30).Draw(rt, "sinr"))
			if rapid.Bool().Draw(rt, "probe") {
				o.Values.Set(mihf.ParamRTT, rapid.Float64Range(0.001, 2).Draw(rt, "rtt"))
			}
			p.Observe(at, o)
			p.Observe(at, neighbour(at, rapid.Float64Range(-140, -40).Draw(rt, "other"), rapid.Float64Range(-30, -3).Draw(rt, "quality"), 1))
			p.Forecast(at, &f)
			predictorstest.CheckForecast(t, &f)
			for _, h := range []time.Duration{time.Second, 4 * time.Second} {
				if y := p.(predictors.Alarmer).Alarm(h); !(y.Clear <= y.Raise) || y.Watch > h || math.IsNaN(y.Raise) {
					rt.Fatalf("policy %+v for %v", y, h)
				}
			}
		}
	})
}

func bench(b *testing.B, o *mihf.Observation, interval time.Duration, change func(i int)) {
	b.Helper()
	p := predictorOf()
	var f mihf.Forecast
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.At = o.At.Add(interval)
		change(i)
		p.Observe(o.At, o)
		p.Forecast(o.At, &f)
	}
}

// BenchmarkWiFi is one sample and the forecast after it, ten a second.
func BenchmarkWiFi(b *testing.B) {
	o := predictorstest.Reading(start, mihf.ParamRSSI, 0)
	bench(b, o, 100*time.Millisecond, func(i int) {
		o.Values.Set(mihf.ParamRSSI, float64(-70-i%13))
		o.Values.Set(mihf.ParamTxPHYRate, float64(1e6*(6+i%50)))
	})
}

// BenchmarkCell is one of a cell.
func BenchmarkCell(b *testing.B) {
	o := cell(start, "c1", -100, -12)
	bench(b, o, 100*time.Millisecond, func(i int) { o.Values.Set(mihf.ParamRSRP, float64(-100-i%13)) })
}
