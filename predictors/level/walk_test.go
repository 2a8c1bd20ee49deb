package level_test

import (
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
	"mihf.dev/mihf/recording/walk"
	"mihf.dev/predictors/level"
)

// The recorded walk: the fade is announced and rolled back, the loss is announced in
// time, and nothing else is.
func TestRecordedWalk(t *testing.T) {
	type alarm struct{ from, to float64 }
	var alarms []alarm
	r, p := walk.Open(), level.New()
	var o mihf.Observation
	var f mihf.Forecast
	on := false
	for r.Read(&o) == nil {
		if o.Kind == mihf.ObsTruth {
			continue
		}
		p.Observe(o.At, &o)
		s := o.At.Sub(recording.Base).Seconds()
		w := 0.0
		if p.Forecast(o.At, &f) {
			w = f.Loss.Within(horizon)
		}
		switch {
		case !on && w >= 0.5:
			alarms, on = append(alarms, alarm{from: s}), true
		case on && w < 0.2:
			alarms[len(alarms)-1].to, on = s, false
		}
	}
	t.Logf("announced from, to: %.2f", alarms)
	if len(alarms) != 2 {
		t.Fatalf("%d announcements, want 2: the fade and the loss", len(alarms))
	}
	if a := alarms[0]; a.from < walk.FadeBegin || a.to > walk.FadeEnd || a.to-a.from < 0.5 {
		t.Errorf("the fade was announced from %.2f to %.2f s", a.from, a.to)
	}
	if a := alarms[1]; walk.LastFrame-a.from < 0.3 || a.from < walk.WalkBegin || a.to < walk.Disconnect {
		t.Errorf("the loss at %.2f s was announced from %.2f to %.2f s", walk.LastFrame, a.from, a.to)
	}
}
