package level

import (
	"math"

	"mihf.dev/mihf"
)

// floor is where links are expected to break by one parameter: a normal distribution,
// because receivers, rates and interference differ.
type floor struct {
	parameter mihf.Parameter
	mean, sd  float64
	unit      float64 // how many of the parameter's units are one decibel of signal
	wifi      bool
}

// floors lists the parameters that make a series, the preferred one first: a forecast
// stands on the first that is fresh. Of the cellular ones the quality comes before the
// power, since interference breaks links that power alone would keep.
var floors = [...]floor{
	{mihf.ParamRSSI, -87, 2.5, 1, true}, // 802.11: lowest rate at 20 MHz needs about -88 to -82 dBm
	{mihf.ParamBeaconSignal, -87, 2.5, 1, true},
	{mihf.ParamRSSIAverage, -87, 2.5, 1, true},
	{mihf.ParamSINR, -7, 3, 1, false},    // 3GPP TS 36.133 Qout lies at about -8 dB
	{mihf.ParamRSRQ, -19.5, 2, 1, false}, // the reporting range of TS 36.133 ends at -19.5 dB
	{mihf.ParamRSRP, -122, 4, 1, false},
	{mihf.ParamNRSINR, -7, 3, 1, false}, // behind LTE's: where both are there, LTE is the anchor that the link hangs on
	{mihf.ParamNRRSRQ, -19.5, 2, 1, false},
	{mihf.ParamNRRSRP, -122, 4, 1, false},
	{mihf.ParamRSCP, -115, 4, 1, false}, // TS 25.304: Qrxlevmin is commonly -115 dBm
	{mihf.ParamEcIo, -18, 2, 1, false},
	{mihf.ParamCarrierRSSI, -106, 3, 1, false}, // GSM: TS 45.005 asks for -102 to -104 dBm of a receiver
	{mihf.ParamQuality, 5, 8, 4, false},        // ModemManager's percentage: about 4 points a dB
}

const (
	// proofTime is how long a level must be held to prove that the link lives there: a
	// loss is declared that long after the last frame (beacon loss, 3GPP T310).
	proofTime = 1.5
	// forgetTime is how fast that proof is forgotten at better levels.
	forgetTime = 60.0
	// proofMargin is how far, in standard deviations, the floor lies at least below a
	// proven level, so that a link which lives far below the table's floor is not
	// expected to break at each dip.
	proofMargin = 0.5
)

// proof is the lowest level at which the link is known to live.
type proof struct {
	level float64
	known bool
}

// add takes the smoothed level that held for dt seconds.
func (p *proof) add(level, dt float64) {
	if !p.known {
		p.level, p.known = level, true
		return
	}
	t := forgetTime
	if level < p.level {
		t = proofTime
	}
	p.level -= (p.level - level) * -math.Expm1(-dt/t)
}

// conditioned is a floor, given that the link lives at the proven level.
type conditioned struct {
	mean, variance float64
	alive          float64 // probability of the condition
}

func (fl *floor) given(p *proof) conditioned {
	c := conditioned{mean: fl.mean, variance: fl.sd * fl.sd}
	if !p.known {
		c.alive = 1
		return c
	}
	c.mean = math.Min(c.mean, p.level-proofMargin*fl.sd)
	c.alive = above((p.level - c.mean) / fl.sd)
	return c
}

// crossed returns the probability that the floor lies above a level that is itself
// known only with a variance.
func (c *conditioned) crossed(level, variance float64) float64 {
	d := level - c.mean
	v := c.variance + variance
	if d > 0 && d*d >= normalRange*normalRange*v {
		return 0
	}
	return max(0, 1-above(d/math.Sqrt(v))/c.alive)
}

const (
	normalRange = 5
	normalSteps = 32 // a unit
)

// normal holds the standard normal distribution function from -normalRange on.
var normal = func() (n [2*normalRange*normalSteps + 1]float64) {
	for i := range n {
		n[i] = 0.5 * math.Erfc((normalRange-float64(i)/normalSteps)/math.Sqrt2)
	}
	return n
}()

// above is the standard normal distribution function, to 4 digits.
func above(z float64) float64 {
	x := (z + normalRange) * normalSteps
	if x <= 0 {
		return 0
	}
	i := int(x)
	if i >= len(normal)-1 {
		return 1
	}
	return normal[i] + (x-float64(i))*(normal[i+1]-normal[i])
}
