// Package familiar is the method "familiar": does the link behave as it did shortly before
// it was lost the last times?
//
// A client that walks or drives the same way again meets the same holes. The method keeps
// what the radio said, one entry a second, and how long after it the link was lost. Two
// ways of looking lead from now to those entries: a kernel over the last seconds of
// signal and rate, and a Bayes filter that follows the client along what it has gone
// before. What followed there is what is expected here.
//
// # Guarantees
//
//   - Those of package predictors.
//   - Nothing is said before a loss was seen, and nothing of places that are not familiar.
//   - The end of readings counts as a loss only if they come back within two minutes, and
//     neither a scan nor a suspend explains the pause. What is known from pauses alone
//     never makes a probability above [Doubt], until a fade led to two of them.
//   - The memory holds the last [Entries] seconds with readings; older ones are forgotten.
//
// # Limits
//
// Signal and rate of Wi-Fi only. Two places that look alike are one. The first pass warns
// of nothing.
package familiar

import (
	"math"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Name is the method's name in configuration.
const Name = "familiar"

// Entries is how many entries are kept, one a second.
const Entries = 320

// Doubt bounds what is said from pauses of the readings alone, to which no fade led.
const Doubt = 0.45

// Horizons are the times, in seconds, for which [State.Within] tells of losses.
var Horizons = [...]float64{1, 2, 3, 5}

const (
	pause      = 2.5    // seconds without a reading that count as a loss
	pauseLong  = 2.2    // usual intervals that a pause lasts at least
	pauseMax   = 120.0  // beyond it nobody knows what happened
	weak, fall = -77, 4 // dBm, and dB below what was before: a fade
	fadesSure  = 2
	recent     = 12 // entries that are too new to be compared with
	history    = 4  // signal readings in a comparison; rates: the same

	kernel  = 3.0 // dB: width of the comparison by the last seconds
	place   = 4.0 // dB: width of the comparison in the filter
	perRate = 4.0 // dB that a doubling of the rate is worth

	stay  = 0.15 // probability that the client stays an entry behind, or skips one
	jump  = 0.03 // that it is somewhere else
	novel = 0.08 // likelihood of a place that is not known
	// prior losses among prior entries: what is expected where little is known.
	priorLoss, priorEntries = 0.05, 1.0
)

// Method returns the method for a list of methods.
func Method() predictors.Method {
	return predictors.Method{
		Name:        Name,
		Description: "losses at the places where the link was lost before",
		New:         func() predictors.Predictor { return New() },
	}
}

// Predictor is the state of one link. It is used by one goroutine.
type Predictor struct {
	State
	watch Watch
	now   mihf.Time
}

// New returns a predictor that has seen nothing.
func New() *Predictor { return &Predictor{} }

// Observe takes what a sensor saw.
func (p *Predictor) Observe(now mihf.Time, o *mihf.Observation) {
	if now.Before(p.now) {
		if p.now.Sub(now) <= 10*time.Second {
			return
		}
		*p = Predictor{}
	}
	p.now = now
	p.watch.Observe(now, o, &p.State)
}

// Forecast fills f with the forecast at now.
func (p *Predictor) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now}
	now = max(now, p.now)
	if !p.Known() || now.Sub(p.At()).Seconds() > 3 {
		return false
	}
	w := p.Within()
	f.Loss.Set(func(h float64) float64 { return Interpolate(&w, h) })
	f.Interval = time.Second
	rssi, _ := p.Last()
	f.Trend = mihf.Trend{Parameter: mihf.ParamRSSI, Level: rssi, Floor: rssi, Samples: p.Len()}
	return true
}

// Interpolate returns the probability within h seconds, from those at [Horizons]: linear
// between them, and beyond the last as it is.
func Interpolate(w *[len(Horizons)]float64, h float64) float64 {
	t0, p0 := 0.0, 0.0
	for i, t := range Horizons {
		if h <= t {
			return p0 + (w[i]-p0)*(h-t0)/(t-t0)
		}
		t0, p0 = t, w[i]
	}
	return p0
}

// weights are what each reading of a comparison counts, the newest first, in tenths.
var weights = [history]int{10, 8, 6, 4}

// kernelAt is the kernel by the weighted sum of squares.
var kernelAt = func() (k [1024]float32) {
	for d := range k {
		k[d] = float32(math.Exp(-float64(d) / 10 / (2 * kernel * kernel)))
	}
	return k
}()

// placeAt is the likelihood of a reading by its distance in dB.
var placeAt = func() (p [256]float32) {
	for d := range p {
		x := float64(d) / place
		p[d] = float32(math.Max(math.Exp(-x*x/2), 1e-6)) // not so small that arithmetic gets slow
	}
	return p
}()
