package level_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors/level"
	"mihf.dev/predictors/predictorstest"
)

const (
	horizon = predictorstest.AlarmHorizon
	start   = predictorstest.Start
	ms      = time.Millisecond
)

func TestConformance(t *testing.T) { predictorstest.Run(t, level.Method()) }

// lead returns how long before the signal crosses -87 dBm P(loss within 2 s) first
// reached 0.5, in seconds; negative: it did not.
func lead(seed uint64, slope float64, correlation time.Duration) float64 {
	s := predictorstest.Signal{Level: predictorstest.Ramp(-60, 10, -slope), Noise: 2, Correlation: correlation, Round: 1}
	cross := 10 + 27/slope
	p, first := level.New(), -1.0
	var f mihf.Forecast
	s.Play(seed, time.Duration(cross*1e9), func(o *mihf.Observation) {
		p.Observe(o.At, o)
		if first < 0 && p.Forecast(o.At, &f) && f.Loss.Within(horizon) >= predictorstest.AlarmThreshold {
			first = cross - o.At.Sub(start).Seconds()
		}
	})
	return first
}

// TestLead is the source of the table in docs/predictors.md.
func TestLead(t *testing.T) {
	const seeds = 200
	for _, c := range []struct {
		slope       float64
		correlation time.Duration
		want        float64 // share of walks announced at least 0.2 s before -87 dBm
	}{
		{1, 0, 0.95},
		{1.5, 0, 0.98},
		{2, 0, 1},
		{3, 0, 1},
		{4, 0, 1},
		{6, 0, 1},
		{1, 300 * ms, 0.80},
		{2, 300 * ms, 0.95},
		{3, 300 * ms, 0.97},
		{6, 300 * ms, 0.95},
	} {
		leads := make([]float64, seeds)
		early := 0.0
		for i := range leads {
			leads[i] = lead(uint64(i), c.slope, c.correlation)
			if leads[i] >= 0.2 {
				early++
			}
		}
		slices.Sort(leads)
		t.Logf("%g dB/s, correlation %v: %.1f %% in time, lead p10 %.2f p50 %.2f p90 %.2f s",
			c.slope, c.correlation, 100*early/seeds, leads[seeds/10], leads[seeds/2], leads[seeds*9/10])
		if early/seeds < c.want {
			t.Errorf("%g dB/s, correlation %v: in time in %.3f of the walks, want %.2f", c.slope, c.correlation, early/seeds, c.want)
		}
	}
}

// A link that lives below the table's floor is not expected to break for that.
func TestLivesBelowFloor(t *testing.T) {
	for _, dbm := range []float64{-88, -95, -105} {
		s := predictorstest.Signal{Level: predictorstest.Steady(dbm), Noise: 1.5, Round: 1}
		p, peak := level.New(), 0.0
		var f mihf.Forecast
		s.Play(1, 10*time.Minute, func(o *mihf.Observation) {
			if p.Observe(o.At, o); p.Forecast(o.At, &f) {
				peak = math.Max(peak, f.Loss.Within(horizon))
			}
		})
		if peak >= predictorstest.AlarmThreshold {
			t.Errorf("steady at %g dBm: P(loss within 2 s) reached %.2f", dbm, peak)
		}
	}
}

func play(p *level.Predictor, s predictorstest.Signal, length time.Duration) mihf.Forecast {
	var f mihf.Forecast
	s.Play(1, length, func(o *mihf.Observation) {
		p.Observe(o.At, o)
		p.Forecast(o.At, &f)
	})
	return f
}

// The forecast says why: parameter, level, slope, noise and the time to the next sample.
func TestTrend(t *testing.T) {
	f := play(level.New(), predictorstest.Signal{Level: predictorstest.Ramp(-60, 0, -2), Noise: 1.5}, 10*time.Second)
	near := func(name string, got, want, tolerance float64) {
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s %v, want %v ± %v", name, got, want, tolerance)
		}
	}
	near("level", f.Trend.Level, -79.8, 1.2)
	near("slope", f.Trend.Slope, -2, 0.4)
	near("noise", f.Trend.Noise, 1.5, 0.4)
	near("interval", f.Interval.Seconds(), 0.1, 0.001)
	if f.Trend.Parameter != mihf.ParamRSSI || f.Trend.Floor != -87 || f.Trend.Samples != 100 {
		t.Errorf("trend %+v", f.Trend)
	}
}

// A fresh parameter that is preferred makes the forecast; another does when it is silent.
func TestParameterOrder(t *testing.T) {
	p := level.New()
	var f mihf.Forecast
	for i := range 100 {
		o := predictorstest.Reading(start.Add(time.Duration(i)*time.Second), mihf.ParamRSRP, -100)
		if i < 50 {
			o.Values.Set(mihf.ParamSINR, 5)
		}
		p.Observe(o.At, o)
		p.Forecast(o.At, &f)
		want := mihf.ParamSINR
		if i >= 54 {
			want = mihf.ParamRSRP
		}
		if i >= 3 && f.Trend.Parameter != want {
			t.Fatalf("sample %d: the forecast stands on %v, want %v", i, f.Trend.Parameter, want)
		}
	}
}

// Three readings in a row at another level are that level, not outliers.
func TestNewLevel(t *testing.T) {
	p := level.New()
	f := play(p, predictorstest.Signal{Level: func(s float64) float64 {
		if s < 10 {
			return -50
		}
		return -70
	}, Noise: 1}, 11*time.Second)
	if math.Abs(f.Trend.Level+70) > 2 {
		t.Errorf("a second after a step to -70 dBm the level is %.1f", f.Trend.Level)
	}
}

func candidate(at mihf.Time, dbm float64, ssid string) *mihf.Observation {
	d := &mihf.Detected{PoA: "02:00:00:00:00:02", SSID: []byte(ssid)}
	d.Values.Set(mihf.ParamRSSI, dbm)
	return &mihf.Observation{At: at, Kind: mihf.ObsDetected, Detected: d}
}

// A handover is expected when a candidate of the same ESS is clearly better, and only then.
func TestHandoverEvidence(t *testing.T) {
	for _, c := range []struct {
		name string
		dbm  float64
		ssid string
		want bool
	}{
		{"clearly better", -55, "campus", true},
		{"a little better", -76, "campus", false},
		{"another network", -55, "other", false},
	} {
		p := level.New()
		p.Observe(start-1, &mihf.Observation{At: start - 1, Kind: mihf.ObsAssociation, Association: &mihf.Association{
			State: mihf.AssociationAuthorised, PoA: "02:00:00:00:00:01", SSID: []byte("campus"),
		}})
		play(p, predictorstest.Signal{Level: predictorstest.Steady(-80), Noise: 1}, 5*time.Second)
		at := start.Add(5 * time.Second)
		p.Observe(at, candidate(at, c.dbm, c.ssid))
		var f mihf.Forecast
		ok := p.Forecast(at, &f)
		got := f.Handover.Within(5*time.Second) > 0.3
		if !ok || got != c.want || (f.Target != "") != c.want {
			t.Errorf("%s: P(handover within 5 s) %.2f, target %q", c.name, f.Handover.Within(5*time.Second), f.Target)
		}
		predictorstest.CheckForecast(t, &f)
	}
}

// An order of the network is the surest sign of a handover, for two seconds.
func TestOrderedHandover(t *testing.T) {
	p := level.New()
	p.Observe(start, &mihf.Observation{At: start, Kind: mihf.ObsHandover, PoA: "c2"})
	var f mihf.Forecast
	if !p.Forecast(start, &f) || f.Handover.Within(time.Second) < 0.9 || f.Target != "c2" {
		t.Errorf("after an order P(handover within 1 s) is %.2f to %q", f.Handover.Within(time.Second), f.Target)
	}
	if p.Forecast(start.Add(3*time.Second), &f) {
		t.Error("an order still holds after 3 s")
	}
}

// The table of candidates keeps the strongest, however many are heard.
func TestManyCandidates(t *testing.T) {
	p := level.New()
	play(p, predictorstest.Signal{Level: predictorstest.Steady(-80), Noise: 1}, 5*time.Second)
	at := start.Add(5 * time.Second)
	for i := range 100 {
		o := candidate(at, -90+float64(i%50), "")
		o.Detected.PoA = mihf.PoA(rune('A' + i))
		p.Observe(at, o)
	}
	var f mihf.Forecast
	if p.Forecast(at, &f); f.Target != mihf.PoA(rune('A'+49)) && f.Target != mihf.PoA(rune('A'+99)) {
		t.Errorf("target %q is not the strongest of 100", f.Target)
	}
}
