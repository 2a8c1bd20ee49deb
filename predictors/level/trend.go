package level

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

// Constants of the trend, in seconds and decibels.
const (
	memory          = 1.75 // time constant of the weights, at least
	memoryIntervals = 3.0  // and at least so many sampling intervals
	memoryMax       = 15.0 // but not longer

	noisePrior   = 2.0 // standard deviation of a sample, before any is seen
	noiseWeight  = 8   // how many samples that prior is worth
	noiseSamples = 64  // over how many samples the noise is estimated
	noiseMin     = 0.7 // readings are rounded to 1 dB
	noiseMax     = 8.0
	slopePrior   = 2.0 // standard deviation of slopes, dB/s

	correlationMax = 0.8 // of neighbouring residuals

	gate      = 3.5 // a sample further off, in standard deviations, is an outlier
	gateLimit = 3   // but so many in a row on one side are a new level

	minSamples = 4 // for a forecast
)

// trend is an exponentially weighted regression of one parameter on time, for samples
// at any times. Its moments are relative to the newest sample, so that nothing grows.
type trend struct {
	unit float64 // parameter's units in a decibel

	seen     mihf.Time // newest sample, outliers included
	at       mihf.Time // newest sample in the moments
	samples  int
	interval float64 // between samples, smoothed; 0: not known

	w, wt, wtt, wy, wty float64 // weighted sums of 1, t, t*t, y, t*y
	v, vt, vtt          float64 // the same with squared weights, for the variances
	noise2              float64 // variance of a sample about the trend
	residual            float64 // of the newest sample
	product             float64 // mean product of neighbouring residuals

	level, slope  float64
	ll, ls, ss    float64 // covariance of level and slope, per noise2
	outliers      int     // in a row; negative: below the trend
	outlierValues [gateLimit]float64
	outlierTimes  [gateLimit]mihf.Time
}

// maxAge is how old the newest sample may be for a forecast.
func (tr *trend) maxAge() float64 { return 3*tr.interval + 1 }

func (tr *trend) memory() float64 {
	return math.Min(math.Max(memory, memoryIntervals*tr.interval), memoryMax)
}

// restart forgets level and slope; noise and interval belong to the radio and stay.
func (tr *trend) restart() {
	*tr = trend{unit: tr.unit, seen: tr.seen, interval: tr.interval, noise2: tr.noise2, product: tr.product}
}

// add takes a sample and returns how many seconds of the trend it proves: 0 for an
// outlier and for the first.
func (tr *trend) add(at mihf.Time, y float64) (proven float64) {
	if !tr.seen.IsZero() {
		gap := at.Sub(tr.seen).Seconds()
		if gap > tr.maxAge() && tr.interval > 0 {
			tr.restart()
		}
		tr.pace(gap)
	}
	tr.seen = at
	if tr.noise2 == 0 {
		tr.noise2 = noisePrior * noisePrior * tr.unit * tr.unit
	}
	if tr.samples == 0 {
		tr.take(at, y)
		return 0
	}
	if tr.outlier(at, y) {
		return 0
	}
	dt := at.Sub(tr.at).Seconds()
	tr.take(at, y)
	return dt
}

// pace smooths the interval; a long gap counts as four intervals at most.
func (tr *trend) pace(gap float64) {
	if tr.interval == 0 {
		tr.interval = math.Min(gap, memoryMax)
		return
	}
	tr.interval += 0.1 * (math.Min(gap, 4*tr.interval) - tr.interval)
}

// outlier compares a sample with the trend, learns the noise from it, and reports
// whether to leave it out. The last of a row of outliers starts a new trend at their
// level.
func (tr *trend) outlier(at mihf.Time, y float64) bool {
	dt := at.Sub(tr.at).Seconds()
	spread := 1 + tr.ll + dt*(2*tr.ls+dt*tr.ss)
	r := y - (tr.level + float64(tr.slope*dt))
	e2 := r * r / spread
	out := e2 > gate*gate*tr.noise2
	tr.learn(math.Copysign(math.Sqrt(math.Min(e2, gate*gate*tr.noise2)), r))
	switch {
	case !out:
		tr.outliers = 0
		return false
	case r < 0 && tr.outliers <= 0:
		tr.outliers--
	case r > 0 && tr.outliers >= 0:
		tr.outliers++
	default:
		tr.outliers = int(math.Copysign(1, r))
	}
	n := max(tr.outliers, -tr.outliers)
	tr.outlierValues[n-1], tr.outlierTimes[n-1] = y, at
	if n < gateLimit {
		return true
	}
	values, times := tr.outlierValues, tr.outlierTimes
	tr.restart()
	for i := range gateLimit - 1 { // the caller adds the last
		tr.take(times[i], values[i])
	}
	return false
}

// learn takes the residual of a sample, in units of which the noise is the spread.
func (tr *trend) learn(e float64) {
	k := 1 / float64(min(tr.samples+noiseWeight, noiseSamples))
	tr.noise2 += k * (e*e - tr.noise2)
	tr.product += k * (e*tr.residual - tr.product)
	tr.residual = e
	u2 := tr.unit * tr.unit
	tr.noise2 = math.Min(math.Max(tr.noise2, noiseMin*noiseMin*u2), noiseMax*noiseMax*u2)
}

// uncertainty is what the variances of level and slope have to be multiplied by: the
// noise, and more where it lasts from sample to sample (shadowing), so that many
// samples say little more than one.
func (tr *trend) uncertainty() float64 {
	rho := math.Min(math.Max(tr.product/tr.noise2, 0), correlationMax)
	return tr.noise2 * (1 + rho) / (1 - rho)
}

// take moves the moments to the sample's time, adds it, and solves for level and slope.
func (tr *trend) take(at mihf.Time, y float64) {
	if tr.samples > 0 {
		tr.move(at.Sub(tr.at))
	}
	tr.at = at
	tr.samples = min(tr.samples+1, math.MaxInt32)
	tr.w++
	tr.wy += y
	tr.v++
	tr.solve()
}

func (tr *trend) move(d time.Duration) {
	dt := d.Seconds()
	g := math.Exp(-dt / tr.memory())
	tr.wtt = g * (tr.wtt + dt*(dt*tr.w-2*tr.wt))
	tr.wt = g * (tr.wt - dt*tr.w)
	tr.wty = g * (tr.wty - dt*tr.wy)
	tr.w *= g
	tr.wy *= g
	g *= g
	tr.vtt = g * (tr.vtt + dt*(dt*tr.v-2*tr.vt))
	tr.vt = g * (tr.vt - dt*tr.v)
	tr.v *= g
}

// solve finds level and slope at the newest sample, the slope with a prior at 0, and
// their covariance for independent noise: M⁻¹ V M⁻¹.
func (tr *trend) solve() {
	prior := slopePrior * tr.unit
	b := tr.wtt + tr.noise2/(prior*prior)
	det := tr.w*b - tr.wt*tr.wt
	a11, a12, a22 := b/det, -tr.wt/det, tr.w/det
	tr.level = a11*tr.wy + a12*tr.wty
	tr.slope = a12*tr.wy + a22*tr.wty
	p11, p12 := a11*tr.v+a12*tr.vt, a11*tr.vt+a12*tr.vtt
	p21, p22 := a12*tr.v+a22*tr.vt, a12*tr.vt+a22*tr.vtt
	tr.ll = p11*a11 + p12*a12
	tr.ls = p11*a12 + p12*a22
	tr.ss = p21*a12 + p22*a22
}

// significant returns the slope, shrunk towards 0 by what noise alone would give.
func (tr *trend) significant() float64 {
	s2 := tr.slope * tr.slope
	noise := shrink * tr.ss * tr.uncertainty()
	if s2 <= noise {
		return 0
	}
	return tr.slope * (1 - noise/s2)
}
