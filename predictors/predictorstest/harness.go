package predictorstest

import (
	"math"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Alarm is the announcement rule with its defaults: P(loss within AlarmHorizon) of at
// least AlarmThreshold.
const (
	AlarmHorizon   = 2 * time.Second
	AlarmThreshold = 0.5
)

// harness drives one predictor and checks every forecast that it gives.
type harness struct {
	t      testing.TB
	p      predictors.Predictor
	f      mihf.Forecast
	last   bool    // what the newest forecast returned
	peak   float64 // highest P(loss within AlarmHorizon)
	alarms int     // how often it rose to the threshold
	on     bool
}

func newHarness(t testing.TB, m predictors.Method) *harness {
	t.Helper()
	return &harness{t: t, p: m.New()}
}

// feed gives an observation and asks at once.
func (h *harness) feed(o *mihf.Observation) {
	h.t.Helper()
	h.observe(o.At, o)
}

func (h *harness) observe(now mihf.Time, o *mihf.Observation) {
	h.t.Helper()
	h.p.Observe(now, o)
	h.ask(now)
}

// ask takes a forecast, checks it, and notes whether it is an alarm.
func (h *harness) ask(now mihf.Time) {
	h.t.Helper()
	h.last = h.p.Forecast(now, &h.f)
	CheckForecast(h.t, &h.f)
	if h.f.At != now {
		h.t.Fatalf("the forecast is for %v, asked at %v", h.f.At, now)
	}
	if !h.last && h.f != (mihf.Forecast{At: now}) {
		h.t.Fatal("no forecast, but it is not empty")
	}
	p := h.f.Loss.Within(AlarmHorizon)
	h.peak = math.Max(h.peak, p)
	if p >= AlarmThreshold && !h.on {
		h.alarms++
	}
	h.on = p >= AlarmThreshold
}

// silence asks every 100 ms without a sample.
func (h *harness) silence(from mihf.Time, length time.Duration) {
	h.t.Helper()
	for at := from; at < from.Add(length); at = at.Add(100 * time.Millisecond) {
		h.ask(at)
	}
}

func (h *harness) play(s Signal, seed uint64, length time.Duration) {
	h.t.Helper()
	s.Play(seed, length, h.feed)
}

func (h *harness) wantNoAlarm() {
	h.t.Helper()
	if h.alarms > 0 {
		h.t.Errorf("%d alarms, peak %.2f; want none", h.alarms, h.peak)
	}
}

// CheckForecast reports what no forecast may be: an incidence that falls, that is not a
// number, or two that exceed 1 together; a trend or interval that is not finite.
func CheckForecast(t testing.TB, f *mihf.Forecast) {
	t.Helper()
	for _, c := range []mihf.Cause{mihf.CauseLoss, mihf.CauseHandover} {
		low := float32(0)
		for i, p := range f.Of(c) {
			if !(p >= low && p <= 1) { // also NaN
				t.Fatalf("%v incidence at %v s is %v after %v", c, mihf.Horizons[i], p, low)
			}
			low = p
		}
	}
	last := len(mihf.Horizons) - 1
	if sum := f.Loss[last] + f.Handover[last]; sum > 1+1e-6 {
		t.Fatalf("loss and handover together have probability %v", sum)
	}
	for _, v := range []float64{f.Trend.Level, f.Trend.Slope, f.Trend.Floor, f.Trend.Noise} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("trend %+v", f.Trend)
		}
	}
	if f.Interval < 0 {
		t.Fatalf("interval %v", f.Interval)
	}
}
