package tfrc

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > math.Abs(want)*relative {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, relative)
	}
}

// RFC 5348, section 3.1: "the throughput equation for X_Bps, TCP's average sending rate".
func TestThroughput(t *testing.T) {
	for _, c := range []struct {
		s    float64
		rtt  time.Duration
		p    float64
		want float64
	}{
		{500, 100 * time.Millisecond, 0.01, 56166.12},
		{500, 100 * time.Millisecond, 0.001, 191921.82},
		{500, 100 * time.Millisecond, 0.1, 8850.51},
		{500, 100 * time.Millisecond, 1, 20.55},
		{1460, 50 * time.Millisecond, 0.005, 483963.07},
	} {
		near(t, "T", float64(Throughput(c.s, c.rtt, c.p)), c.want, 3e-4)
	}
}

func TestLossRate(t *testing.T) {
	for _, c := range []struct {
		s        float64
		rtt      time.Duration
		x        Rate
		p        float64
		interval float64
	}{
		{500, 100 * time.Millisecond, 50000, 1.217272e-2, 83},
		{500, 20 * time.Millisecond, 1.25e6, 5.936396e-4, 1685},
		{500, 455 * time.Millisecond, 46000, 8.4319e-4, 1186},
	} {
		near(t, "inverse", LossRate(c.s, c.rtt, c.x), c.p, 1e-6*50)
		if got := math.Ceil(lossInterval(c.s, c.rtt, c.x)); got != c.interval {
			t.Errorf("interval for %v B/s: got %v, want %v", c.x, got, c.interval)
		}
	}
}

func TestInverseOfThroughput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Float64Range(1, 65535).Draw(t, "s")
		rtt := time.Duration(rapid.Int64Range(int64(minRTT), int64(10*time.Second)).Draw(t, "rtt"))
		p := math.Exp(rapid.Float64Range(math.Log(minLossRate), 0).Draw(t, "ln p"))
		if got := LossRate(s, rtt, Throughput(s, rtt, p)); math.Abs(got-p) > p*1e-6 {
			t.Fatalf("p %v became %v", p, got)
		}
	})
}

// RFC 5348, section 5.4: "We only include the current loss interval if it is sufficiently
// large to increase the average loss interval."
func TestMeanInterval(t *testing.T) {
	for _, c := range []struct {
		name    string
		lengths []float64
		p       float64
	}{
		{"current is long", []float64{200, 100, 100, 100, 100, 100, 100, 100, 100}, 0.0085714},
		{"current is short", []float64{0, 100, 100, 100, 100, 100, 100, 100, 100}, 0.01},
		{"rising", []float64{50, 10, 20, 30, 40, 50, 60, 70, 80}, 0.0272727},
		{"one closed interval", []float64{5, 40}, 0.025},
		{"one closed interval, passed", []float64{50, 40}, 0.02},
	} {
		near(t, c.name, 1/meanInterval(c.lengths), c.p, 1e-5)
	}
}

// RFC 5348, section 5.4: "if n=8, the values of w_0 to w_7 are: 1.0, 1.0, 1.0, 1.0, 0.8,
// 0.6, 0.4, 0.2".
func TestWeights(t *testing.T) {
	for i, w := range weights {
		want := 1.0
		if n := float64(historyLength); float64(i) >= n/2 {
			want = 2 * (n - float64(i)) / (n + 2)
		}
		near(t, "weight", w, want, 1e-12)
	}
}
