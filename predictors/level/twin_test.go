package level

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// dumb is a trend that keeps every sample with its weight and sums anew each time.
type dumb struct{ at, y, w []float64 }

func (d *dumb) take(at, y, memory float64) {
	if n := len(d.at); n > 0 {
		for i := range d.w {
			d.w[i] *= math.Exp(-(at - d.at[n-1]) / memory)
		}
	}
	d.at, d.y, d.w = append(d.at, at), append(d.y, y), append(d.w, 1)
}

// solve returns level and slope at the newest sample and their covariance, M⁻¹ V M⁻¹, for
// a prior on the slope that is worth so much.
func (d *dumb) solve(prior float64) (level, slope, ll, ls, ss float64) {
	var m, v [2][2]float64
	var y [2]float64
	now := d.at[len(d.at)-1]
	for i, w := range d.w {
		x := [2]float64{1, d.at[i] - now}
		for j := range 2 {
			y[j] += w * x[j] * d.y[i]
			for k := range 2 {
				m[j][k] += w * x[j] * x[k]
				v[j][k] += w * w * x[j] * x[k]
			}
		}
	}
	m[1][1] += prior
	det := m[0][0]*m[1][1] - m[0][1]*m[1][0]
	inverse := [2][2]float64{{m[1][1] / det, -m[0][1] / det}, {-m[1][0] / det, m[0][0] / det}}
	c := times(times(inverse, v), inverse)
	return inverse[0][0]*y[0] + inverse[0][1]*y[1], inverse[1][0]*y[0] + inverse[1][1]*y[1], c[0][0], c[0][1], c[1][1]
}

func times(a, b [2][2]float64) (c [2][2]float64) {
	for i := range 2 {
		for j := range 2 {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j]
		}
	}
	return c
}

// The moments that are carried along give what the sums over all samples give.
func TestTrendLikeTwin(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		tr, twin := trend{unit: 1, interval: 0.1 + r.Float64(), noise2: 0.5 + 3*r.Float64()}, dumb{}
		at := mihf.Time(time.Hour)
		for range 300 {
			at = at.Add(time.Duration((0.02 + r.Float64()) * 1e9))
			y := -60 - 30*r.Float64()
			twin.take(at.Seconds(), y, tr.memory())
			tr.take(at, y)
			level, slope, ll, ls, ss := twin.solve(tr.noise2 / (slopePrior * slopePrior))
			for _, x := range [][2]float64{{tr.level, level}, {tr.slope, slope}, {tr.ll, ll}, {tr.ls, ls}, {tr.ss, ss}} {
				if math.Abs(x[0]-x[1]) > 1e-6*(1+math.Abs(x[1])) {
					t.Fatalf("seed %d: level, slope and their covariance are %v %v %v %v %v, want %v %v %v %v %v",
						seed, tr.level, tr.slope, tr.ll, tr.ls, tr.ss, level, slope, ll, ls, ss)
				}
			}
		}
	}
}

// Residuals that follow each other make the trend less certain, those that alternate or are
// independent do not.
func TestUncertainty(t *testing.T) {
	for name, c := range map[string]struct {
		residual func(i int) float64
		want     float64 // of the noise
	}{
		"lasting":     {func(int) float64 { return 1.5 }, (1 + correlationMax) / (1 - correlationMax)},
		"alternating": {func(i int) float64 { return 1.5 - 3*float64(i%2) }, 1},
		"in pairs":    {func(i int) float64 { return 1.5 - 3*float64(i/2%2) }, 1},
	} {
		tr := trend{unit: 1, noise2: noisePrior * noisePrior, samples: noiseSamples}
		for i := range 1000 {
			tr.learn(c.residual(i))
		}
		if got := tr.uncertainty() / tr.noise2; math.Abs(got-c.want) > 0.1 {
			t.Errorf("%s: %v of the noise, want %v", name, got, c.want)
		}
		if noise := math.Sqrt(tr.noise2); math.Abs(noise-1.5) > 0.01 {
			t.Errorf("%s: noise %v, want 1.5", name, noise)
		}
	}
}

// A newer reading takes the place of the older one of the same candidate, and of several the
// strongest is the best.
func TestCandidates(t *testing.T) {
	var cs candidates
	now := mihf.Time(time.Hour)
	for i := range 20 {
		cs.add(candidate{poa: "a", value: -50 - float64(i), at: now})
	}
	cs.add(candidate{poa: "b", value: -60, at: now})
	cs.add(candidate{poa: "c", value: -65, at: now})
	if best := cs.best(now, 0, "serving"); cs.n != 3 || best == nil || best.poa != "b" {
		t.Errorf("%d candidates, the best is %+v", cs.n, best)
	}
	if best := cs.best(now, 0, "b"); best == nil || best.poa != "c" {
		t.Errorf("the best but for the serving one is %+v", best)
	}
}
