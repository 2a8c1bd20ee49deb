package predictorstest

import (
	"math"
	"math/rand/v2"
	"time"

	"mihf.dev/mihf"
)

// Start is the moment of the first sample of a [Signal].
const Start = mihf.Time(time.Hour)

// Signal describes a made-up series of readings.
type Signal struct {
	Parameter mihf.Parameter // default: RSSI
	PoA       mihf.PoA
	Level     func(seconds float64) float64 // the mean, by the time since Start
	Interval  time.Duration                 // between samples; 0: 100 ms
	Jitter    float64                       // of the interval, as a share of it
	Noise     float64                       // standard deviation, dB
	// Correlation is the time in which the noise forgets itself; 0: every sample has
	// its own.
	Correlation time.Duration
	Round       float64 // readings are multiples of it; 0: not rounded
}

// Steady is a mean that stays.
func Steady(level float64) func(float64) float64 {
	return func(float64) float64 { return level }
}

// Ramp is a mean that starts to change after a time, by so much a second.
func Ramp(level, after, slope float64) func(float64) float64 {
	return func(s float64) float64 { return level + slope*math.Max(0, s-after) }
}

// Play calls f with each reading for a time; the same seed gives the same readings.
func (s *Signal) Play(seed uint64, length time.Duration, f func(*mihf.Observation)) {
	r := rand.New(rand.NewPCG(seed, 1))
	interval := s.Interval
	if interval == 0 {
		interval = 100 * time.Millisecond
	}
	noise := s.Noise * r.NormFloat64()
	for at := Start; at < Start.Add(length); {
		v := s.Level(at.Sub(Start).Seconds()) + noise
		if s.Round > 0 {
			v = math.Round(v/s.Round) * s.Round
		}
		o := Reading(at, s.Parameter, v)
		o.PoA = s.PoA
		f(o)
		step := interval
		if s.Jitter > 0 {
			step += time.Duration(float64(interval) * s.Jitter * (2*r.Float64() - 1))
		}
		at = at.Add(step)
		rho := 0.0
		if s.Correlation > 0 {
			rho = math.Exp(-float64(step) / float64(s.Correlation))
		}
		noise = rho*noise + s.Noise*math.Sqrt(1-rho*rho)*r.NormFloat64()
	}
}

// Reading is one reading of one parameter.
func Reading(at mihf.Time, p mihf.Parameter, v float64) *mihf.Observation {
	o := &mihf.Observation{At: at, Kind: mihf.ObsRadio, Sensor: "test", Link: "wifi-00000001"}
	o.Values.Set(p, v)
	return o
}
