package mihf

import (
	"math"
	"time"
)

// Cause is what a forecast is about. The causes compete: what comes first counts.
type Cause uint8

// Causes.
const (
	CauseLoss     Cause = iota // the link breaks
	CauseHandover              // the point of attachment changes without a loss
)

var causeNames = [...]string{"loss", "handover"}

func (c Cause) String() string { return nameOf(causeNames[:], int(c)) }

// ParseCause is the inverse of [Cause.String].
func ParseCause(s string) (Cause, bool) {
	i, ok := indexOf(causeNames[:], s)
	return Cause(i), ok
}

// ForecastHorizon is how far a forecast looks.
const ForecastHorizon = 10 * time.Second

// MinProbability is the cumulative incidence within [ForecastHorizon] below which a
// forecast gives no quantiles.
const MinProbability = 0.05

// Horizons are the points, in seconds, at which an [Incidence] is stored; between
// them it is linear.
var Horizons = [...]float64{
	0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10,
}

// Incidence is a cumulative incidence function: the probability that a cause comes
// within a time and before the other cause. It never falls with time.
type Incidence [len(Horizons)]float32

// Within returns the probability that the cause comes within d: 0 for d ≤ 0, the last
// value beyond [ForecastHorizon].
func (c *Incidence) Within(d time.Duration) float64 {
	s := d.Seconds()
	if s <= 0 {
		return 0
	}
	t0, p0 := 0.0, 0.0
	for i, t := range Horizons {
		p := float64(c[i])
		if s <= t {
			return min(p0+float64((p-p0)*(s-t0)/(t-t0)), p)
		}
		t0, p0 = t, p
	}
	return p0
}

// Quantile returns the time within which the cause comes with probability q, given
// that it comes within [ForecastHorizon]; unknown where that has less than
// [MinProbability].
func (c *Incidence) Quantile(q float64) (time.Duration, bool) {
	total := float64(c[len(c)-1])
	if !(total >= MinProbability) {
		return 0, false
	}
	want := q * total
	t0, p0 := 0.0, 0.0
	for i, t := range Horizons {
		if p := float64(c[i]); p >= want {
			if p == p0 {
				return seconds(t0), true
			}
			return seconds(t0 + (t-t0)*(want-p0)/(p-p0)), true
		}
		t0, p0 = t, float64(c[i])
	}
	return ForecastHorizon, true
}

// Set stores f at each of [Horizons], clamped to [0, 1], not falling, and 0 where it
// is not a number.
func (c *Incidence) Set(f func(seconds float64) float64) {
	low := 0.0
	for i, t := range Horizons {
		if p := f(t); p > low {
			low = math.Min(p, 1)
		}
		c[i] = float32(low)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

// Trend is why a forecast says what it says: a parameter, its level and slope, and
// the level at which the link is expected to break.
type Trend struct {
	Parameter Parameter
	Level     float64 // in the parameter's unit
	Slope     float64 // units a second
	Floor     float64 // in the parameter's unit
	Noise     float64 // standard deviation of a sample about the trend
	Samples   int     // on which the trend stands
}

// Forecast is a predictor's answer at one moment.
type Forecast struct {
	At       Time
	Loss     Incidence
	Handover Incidence
	Target   PoA           // where a handover would go, if known
	Interval time.Duration // expected time to the next sample, hence to the next evaluation
	Trend    Trend
}

// Of returns the incidence of one cause.
func (f *Forecast) Of(c Cause) *Incidence {
	if c == CauseHandover {
		return &f.Handover
	}
	return &f.Loss
}

// Prediction is an announced forecast: it has an id, revisions, an expiry and exactly
// one outcome.
type Prediction struct {
	ID         PredictionID
	Revision   uint32
	Cause      Cause
	OpenedAt   Time
	RevisedAt  Time          // of the figures that follow
	P10        time.Duration // quantiles of the time to the cause, from RevisedAt
	P50        time.Duration
	P90        time.Duration
	Confidence float64 // P(cause within P90's time), 0 to 1
	Trend      Trend
	ExpiresAt  Time // when it counts as not come true
	Outcome    Outcome
}

// Outcome is how a prediction ended.
type Outcome uint8

// Outcomes. Every prediction gets exactly one that is not OutcomeOpen.
const (
	OutcomeOpen Outcome = iota
	OutcomeLinkDown
	OutcomeHandoverComplete
	OutcomeRollback
	OutcomeExpired
)

var outcomeNames = [...]string{"open", "link_down", "handover_complete", "rollback", "expired"}

func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// ParseOutcome is the inverse of [Outcome.String].
func ParseOutcome(s string) (Outcome, bool) {
	i, ok := indexOf(outcomeNames[:], s)
	return Outcome(i), ok
}

// CameTrue reports whether the predicted event came.
func (o Outcome) CameTrue() bool { return o == OutcomeLinkDown || o == OutcomeHandoverComplete }
