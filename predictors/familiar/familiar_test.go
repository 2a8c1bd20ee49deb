package familiar_test

import (
	"math"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors/familiar"
	"mihf.dev/predictors/predictorstest"
)

func TestConformance(t *testing.T) { predictorstest.RunHarmless(t, familiar.Method()) }

const start = predictorstest.Start

// lap is a made-up way of 60 s: up and down, with one hole behind a steep fall at 40 s.
func lap(s float64) (dbm float64, covered bool) {
	s = math.Mod(s, 60)
	switch {
	case s < 38:
		return -60 - 8*math.Sin(s/6), true
	case s < 41:
		return -62 - 7*(s-37), true
	case s < 46:
		return 0, false
	}
	return -85 + 1.7*(s-46), true
}

// walk gives a reading a second from one lap on to another, and returns the highest
// P(loss within 2 s) in the last 2 s before the hole and elsewhere.
func walk(p *familiar.Predictor, from, to int, other func(*mihf.Observation)) (before, elsewhere float64) {
	var f mihf.Forecast
	for s := 60 * from; s < 60*to; s++ {
		dbm, ok := lap(float64(s))
		at := start.Add(time.Duration(s) * time.Second)
		if ok {
			o := predictorstest.Reading(at, mihf.ParamRSSI, dbm)
			o.Values.Set(mihf.ParamTxPHYRate, 50e6)
			p.Observe(at, o)
		} else if other != nil {
			o := &mihf.Observation{At: at, Kind: mihf.ObsResync}
			other(o)
			p.Observe(at, o)
		}
		p.Forecast(at, &f)
		if x := s % 60; x >= 38 && x < 41 {
			before = math.Max(before, f.Loss.Within(2*time.Second))
		} else if x < 36 {
			elsewhere = math.Max(elsewhere, f.Loss.Within(2*time.Second))
		}
	}
	return before, elsewhere
}

// "Nothing is said before a loss was seen"; on the next lap the hole is expected where it
// was, and nowhere else; pauses alone never give more than Doubt.
func TestSecondLap(t *testing.T) {
	p := familiar.New()
	if before, elsewhere := walk(p, 0, 1, nil); before != 0 || elsewhere != 0 {
		t.Errorf("first lap: P %.2f and %.2f", before, elsewhere)
	}
	before, elsewhere := walk(p, 1, 2, nil)
	if before < 0.3 || before > familiar.Doubt+1e-6 {
		t.Errorf("second lap: P(loss within 2 s) before the hole %.2f", before)
	}
	if elsewhere > 0.15 {
		t.Errorf("second lap: P %.2f elsewhere", elsewhere)
	}
	if before, _ = walk(p, 2, 4, nil); before <= familiar.Doubt {
		t.Errorf("after fades that ended in pauses P is %.2f", before)
	}
}

// Pauses to which no fade led, of a sensor that misses samples, stay in doubt.
func TestMissedSamples(t *testing.T) {
	p := familiar.New()
	var f mihf.Forecast
	for i := range 600 {
		if i%10 > 6 {
			continue
		}
		at := start.Add(time.Duration(i) * time.Second)
		p.Observe(at, predictorstest.Reading(at, mihf.ParamRSSI, -79+float64(i%3)))
		if p.Forecast(at, &f); f.Loss.Within(2*time.Second) > familiar.Doubt {
			t.Fatalf("P(loss within 2 s) %.2f", f.Loss.Within(2*time.Second))
		}
	}
}

// A loss that was seen makes it sure.
func TestSeenLoss(t *testing.T) {
	p := familiar.New()
	gone := func(o *mihf.Observation) {
		o.Kind = mihf.ObsAssociation
		o.Association = &mihf.Association{State: mihf.AssociationDisconnected}
	}
	walk(p, 0, 3, gone)
	if before, _ := walk(p, 3, 4, gone); before <= familiar.Doubt || !p.Sure() {
		t.Errorf("after three losses that were seen P is %.2f", before)
	}
}

// "Neither a scan nor a suspend explains the pause."
func TestExcusedPause(t *testing.T) {
	for name, excuse := range map[string]func(*mihf.Observation){
		"scan":    func(o *mihf.Observation) { o.Kind = mihf.ObsScan },
		"suspend": func(o *mihf.Observation) { o.Kind, o.Gap = mihf.ObsResume, time.Second },
	} {
		p := familiar.New()
		if before, _ := walk(p, 0, 4, excuse); before != 0 || p.Known() {
			t.Errorf("%s: P(loss within 2 s) %.2f before a pause that it explains", name, before)
		}
	}
}

// "The memory holds the last Entries seconds with readings."
func TestBounded(t *testing.T) {
	p := familiar.New()
	walk(p, 0, 30, nil)
	if p.Len() != familiar.Entries {
		t.Errorf("%d entries after half an hour, want %d", p.Len(), familiar.Entries)
	}
}

// A pause beyond two minutes is none that anything can be learned from.
func TestLongPause(t *testing.T) {
	p := familiar.New()
	for i := range 20 {
		p.Observe(start.Add(time.Duration(i)*time.Second), predictorstest.Reading(start.Add(time.Duration(i)*time.Second), mihf.ParamRSSI, -70))
	}
	at := start.Add(time.Hour)
	p.Observe(at, predictorstest.Reading(at, mihf.ParamRSSI, -70))
	if p.Known() {
		t.Error("an hour without readings counts as a loss")
	}
}

func BenchmarkSample(b *testing.B) {
	p := familiar.New()
	walk(p, 0, 20, nil)
	at := start.Add(2 * time.Hour)
	o := predictorstest.Reading(at, mihf.ParamRSSI, -70)
	o.Values.Set(mihf.ParamTxPHYRate, 50e6)
	var f mihf.Forecast
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.At = o.At.Add(time.Second)
		o.Values.Set(mihf.ParamRSSI, float64(-60-i%13))
		p.Observe(o.At, o)
		p.Forecast(o.At, &f)
	}
}
