package mihf_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// incidences draws any function that a predictor may give, wild ones too.
func incidences(t *rapid.T) (c mihf.Incidence) {
	step := rapid.Float64Range(-0.05, 0.3)
	p := 0.0
	c.Set(func(float64) float64 {
		p += step.Draw(t, "step")
		if rapid.IntRange(0, 30).Draw(t, "wild") == 0 {
			return math.NaN()
		}
		return p
	})
	return c
}

func TestIncidenceNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := incidences(t)
		d := rapid.Int64Range(-1e9, 12e9)
		a, b := time.Duration(d.Draw(t, "a")), time.Duration(d.Draw(t, "b"))
		if a > b {
			a, b = b, a
		}
		pa, pb := c.Within(a), c.Within(b)
		if pa > pb || pa < 0 || pb > 1 {
			t.Fatalf("within %v: %v, within %v: %v", a, pa, b, pb)
		}
		if a <= 0 && pa != 0 {
			t.Fatalf("%v within %v", pa, a)
		}
	})
}

// Within gives what was set at each of the horizons, the last value beyond them.
func TestIncidenceAtHorizons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := incidences(t)
		for i, h := range mihf.Horizons {
			if got, want := c.Within(time.Duration(h*1e9)), float64(c[i]); math.Abs(got-want) > 1e-6 {
				t.Fatalf("within %v s: %v, want %v", h, got, want)
			}
		}
		if c.Within(time.Hour) != float64(c[len(c)-1]) {
			t.Fatal("beyond the last horizon it goes on")
		}
	})
}

func TestQuantileIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := incidences(t)
		total := float64(c[len(c)-1])
		if _, known := c.Quantile(0.5); known != (total >= mihf.MinProbability) {
			t.Fatalf("known: %v at %v in all", known, total)
		}
		if total < mihf.MinProbability {
			return
		}
		before := time.Duration(0)
		for _, q := range []float64{0, 0.1, 0.3, 0.5, 0.9, 1} {
			d, _ := c.Quantile(q)
			if d < before || d > mihf.ForecastHorizon {
				t.Fatalf("quantile %v is %v, after %v", q, d, before)
			}
			before = d
			if got := c.Within(d); math.Abs(got-q*total) > 1e-4 && d > 0 {
				t.Fatalf("within the quantile %v, %v: %v, want %v", q, d, got, q*total)
			}
		}
	})
}

// A forecast of nothing has no quantiles, and neither has one that is not a number.
func TestQuantileUnknown(t *testing.T) {
	var none, nan mihf.Incidence
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	for _, c := range []*mihf.Incidence{&none, &nan} {
		if d, known := c.Quantile(0.5); known {
			t.Errorf("quantile %v of %v", d, c)
		}
	}
}

func TestForecastOf(t *testing.T) {
	var f mihf.Forecast
	if f.Of(mihf.CauseLoss) != &f.Loss || f.Of(mihf.CauseHandover) != &f.Handover {
		t.Error("the wrong cause")
	}
}
