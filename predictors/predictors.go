// Package predictors is the contract of a prediction method: what it is given, what it
// answers, and what it may cost.
//
// # Guarantees that every method gives
//
//   - Deterministic: the same observations and questions at the same moments give the
//     same answers, bit by bit. A method reads no clock and no random numbers.
//   - One Predictor serves one link, is used by one goroutine, and never fails.
//   - Observe and Forecast allocate nothing, take constant time a sample, and the
//     state is at most [MaxStateBytes].
//   - An incidence never falls with time, is never NaN, and the two causes together
//     never exceed 1.
//   - One outlier, a scan, a suspend, a step of the clock, a missing or a repeated
//     sample never makes an alarm by itself.
//
// The suite in predictorstest checks each of these.
//
// # Limits
//
// A forecast is a statement about the signal that a sensor sees. What breaks without
// any sign (a power cut at the access point, a stall in the network behind it) is not
// foreseen. A method never concludes a loss from samples that are missing.
package predictors

import (
	"fmt"
	"strings"
	"time"

	"mihf.dev/mihf"
)

// MaxStateBytes is the most that one Predictor may hold.
const MaxStateBytes = 8 << 10

// Predictor forecasts the fate of one link.
type Predictor interface {
	// Observe takes what a sensor saw of the link, or of the machine (ObsResume), in
	// the order of arrival. Kinds that the method does not use are ignored; ObsTruth
	// always is. The observation and what it points to are not changed, and nothing of
	// it but strings and byte slices is kept.
	Observe(now mihf.Time, o *mihf.Observation)
	// Forecast fills f with the forecast at now and returns true, or returns false
	// where nothing can be said: too few samples, or too old ones. Then f is empty but
	// for its time. It changes nothing that a later forecast depends on.
	Forecast(now mihf.Time, f *mihf.Forecast) bool
}

// Policy says when a probability is an alarm: from Raise up, and once it stands down to
// Clear. It belongs to a method and a horizon. The probability is that within Watch, which
// may be shorter than the horizon: who can still warn later, with more known, waits.
type Policy struct {
	Raise, Clear float64
	Watch        time.Duration // 0: the horizon
}

// DefaultPolicy is that of a method that has none of its own.
var DefaultPolicy = Policy{Raise: 0.5, Clear: 0.5}

// Stands reports whether the alarm stands at probability p, given whether it stood.
func (y Policy) Stands(stood bool, p float64) bool {
	if stood {
		return p >= y.Clear
	}
	return p >= y.Raise
}

// Alarmer is a Predictor with an alarm policy of its own, which may depend on what it has
// seen.
type Alarmer interface {
	// Alarm returns the policy for a horizon, as of the newest forecast.
	Alarm(horizon time.Duration) Policy
}

// Compete turns the two incidences of a forecast, made without knowledge of each other,
// into those of competing causes: what comes first counts.
func Compete(f *mihf.Forecast) {
	var l0, h0, loss, handover float64
	for i := range f.Loss {
		l, h := float64(f.Loss[i]), float64(f.Handover[i])
		loss += (l - l0) * (1 - (h0+h)/2)
		handover += (h - h0) * (1 - (l0+l)/2)
		f.Loss[i], f.Handover[i] = float32(loss), float32(handover)
		l0, h0 = l, h
	}
}

// Method is a way to predict, by name.
type Method struct {
	Name        string // as in configuration and on the command line
	Description string // one line for people
	New         func() Predictor
}

// Methods is an explicit list of methods: the program that wires them says which exist.
type Methods []Method

// Find returns the method with the name, or an error that lists those that exist.
func (ms Methods) Find(name string) (Method, error) {
	names := make([]string, 0, len(ms))
	for _, m := range ms {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Method{}, fmt.Errorf("predictor %q is not known; give one of %s", name, strings.Join(names, ", "))
}
