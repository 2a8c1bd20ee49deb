package freeze

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Values of the paper's equations 5 to 7, worked out by hand for its capacities and round trips:
// halvings, packets lost, and the rate after 60 s.
func TestModelBreak(t *testing.T) {
	for _, x := range []struct {
		mbps, rtt, length float64
		halvings          int
		lost, end         float64
	}{
		{10, 0.001, 1, 10, 31.9, 0},
		{10, 0.001, 3, 11, 35.2, 0},
		{10, 0.001, 10, 13, 38.6, 0},
		{10, 0.001, 60, 16, 43.8, 19.1},
		{10, 0.010, 3, 11, 208.3, 0},
		{10, 0.100, 1, 2, 1625, 0},
		{10, 0.100, 60, 16, 2010, 19.1},
		{54, 0.001, 60, 18, 131.7, 25.7},
		{54, 0.010, 1, 12, 1084, 0},
		{54, 0.100, 10, 15, 10804, 0},
		{100, 0.001, 60, 19, 223.7, 23.8},
		{100, 0.010, 3, 15, 2008, 0},
		{100, 0.100, 3, 7, 19883, 0},
	} {
		d := modelBreak(x.mbps*1e6/8, x.rtt, x.length, 500)
		if d.halvings != x.halvings || math.Abs(d.lost-x.lost) > 0.0005*x.lost+0.06 {
			t.Errorf("%v Mbit/s, %v s, %v s: %d halvings, %.1f lost; want %d, %.1f", x.mbps, x.rtt, x.length, d.halvings, d.lost, x.halvings, x.lost)
		}
		if x.end > 0 && math.Abs(d.rate-x.end) > 0.05 {
			t.Errorf("%v Mbit/s, %v s: rate %.2f at the end, want %.1f", x.mbps, x.rtt, d.rate, x.end)
		}
	}
}

// A dumb twin in closed form, above the least rate: with n1 steps of four round trips and then
// exactly two packets a halving.
func TestModelBreakTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1e4, 2e7).Draw(t, "rate")
		rtt := rapid.Float64Range(0.001, 0.5).Draw(t, "rtt")
		length := rapid.Float64Range(0, 60).Draw(t, "length")
		const size = 500.0
		d := modelBreak(rate, rtt, length, size)
		if d.rate <= 2*size/64 {
			return
		}
		n1 := max(0, math.Ceil(math.Log2(2*rtt*rate/size)))
		var n, lost float64
		if length < 4*rtt*n1 {
			n = math.Floor(length / (4 * rtt))
			lost = 4*rtt*rate/size*(2-math.Pow(2, 1-n)) + (length-4*rtt*n)*rate/math.Pow(2, n)/size
		} else {
			n = math.Floor(math.Log2(math.Pow(2, n1) + (length-4*rtt*n1)*rate/(2*size)))
			at := 4*rtt*n1 + 2*size/rate*(math.Pow(2, n)-math.Pow(2, n1))
			lost = 4*rtt*rate/size*(2-math.Pow(2, 1-n1)) + 2*(n-n1) + (length-at)*rate/math.Pow(2, n)/size
		}
		if math.Abs(lost-d.lost) > 1e-6*(1+lost) {
			t.Fatalf("%v lost, in closed form %v", d.lost, lost)
		}
	})
}

// Vectors of RFC 5348, section 5.4: W / max(S0, S1), the newest interval first.
func TestLossRateOf(t *testing.T) {
	for _, x := range []struct {
		intervals [9]float64
		want      float64
	}{
		{[9]float64{200, 100, 100, 100, 100, 100, 100, 100, 100}, 6.0 / 700},
		{[9]float64{0, 100, 100, 100, 100, 100, 100, 100, 100}, 0.01},
		{[9]float64{50, 10, 20, 30, 40, 50, 60, 70, 80}, 6.0 / 220},
	} {
		if got := lossRateOf(x.intervals); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", x.intervals, got, x.want)
		}
	}
}

// A sample of freeze-model: the model is within 6 % of the simulation, its rates exact.
func TestModelSample(t *testing.T) {
	p := parametersForTest(t)
	for _, x := range []struct {
		rate        int64
		rtt, length float64
	}{{10e6, 0.001, 60}, {10e6, 0.1, 3}, {54e6, 0.01, 10}} {
		var runs []*broken
		for seed := range uint64(2) {
			runs = append(runs, p.breakRun(seed, x.rate, x.rtt, x.length))
		}
		if c := p.compare(runs); math.Abs(c.error()) > modelBar || !c.sameEnd || c.sim == 0 {
			t.Errorf("%+v: %+v", x, c)
		}
	}
}

// The wasted capacity of the model falls with the rate that is restored and never passes what a
// sender could waste that sends nothing.
func TestModelWaste(t *testing.T) {
	p := parametersForTest(t)
	from := stationary{rate: 1.29e6, allowed: 1.29e6, rtt: 0.04, lossRate: 1.4e-4}
	d := modelBreak(from.allowed, from.rtt, 2.54, 500)
	same := p.modelWaste(from, from, d, 2.54)
	faster := from
	faster.rate, faster.rtt = 6.3e6, 0.025
	up := p.modelWaste(from, faster, d, 2.54)
	if most := faster.rate / 500 * p.Handover.WastedLimitSeconds; !(same > 0 && same < up && up < most) {
		t.Errorf("wasted %v to the same, %v to a faster link, at most %v", same, up, most)
	}
}
