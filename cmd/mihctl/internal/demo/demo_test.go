package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/cmd/mihctl/internal/demo"
	"mihf.dev/cmd/mihctl/internal/privatebus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf/recording/walk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// played returns what came of the walk, four times as fast as users see it; where the machine
// was too busy for that, at their speed.
func played(t *testing.T) (*demo.Report, []demo.Entry) {
	t.Helper()
	for _, speed := range []float64{4 * demo.DefaultSpeed, demo.DefaultSpeed} {
		var shown []demo.Entry
		r, err := demo.Run(t.Context(), speed, func(e *demo.Entry) { shown = append(shown, *e) })
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() || speed == demo.DefaultSpeed {
			return r, shown
		}
		t.Logf("at speed %v: outcome %s, %+v", speed, r.Outcome, r.Freeze)
	}
	return nil, nil
}

// The whole path, faster: the client is frozen before the loss, and by how much is
// measured at the client.
func TestRun(t *testing.T) {
	if err := daemons.InPath(t, "dbus-daemon"); err != nil {
		t.Skip(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	r, shown := played(t)
	if !r.OK() || r.LossS != walk.LastFrame || r.Outcome != "link_down" {
		t.Errorf("OK %v, loss at %v s, outcome %s", r.OK(), r.LossS, r.Outcome)
	}
	if r.Prediction.LeadMs == nil || *r.Prediction.LeadMs < 300 || *r.Prediction.LeadMs > 5000 {
		t.Errorf("prediction %+v", r.Prediction)
	}
	const onTheWay = 200 // ms of trace time: what the time of an event may be off
	for front, before := range map[string]*float64{"grpc": r.Freeze.GRPC, "nats": r.Freeze.NATS, "dbus": r.Freeze.DBus} {
		if before == nil || *before > *r.Prediction.LeadMs+onTheWay {
			t.Errorf("%s: frozen %v ms before the loss, announced %v ms before", front, before, r.Prediction.LeadMs)
		}
	}
	if r.Rollbacks != 1 || r.FalseAlarms != 0 || r.FrozenMs == nil || *r.FrozenMs < *r.Freeze.GRPC {
		t.Errorf("%d rollbacks, %d false alarms, frozen %v ms", r.Rollbacks, r.FalseAlarms, r.FrozenMs)
	}
	if !slices.IsSortedFunc(shown, func(a, b demo.Entry) int { return int((a.TimeS - b.TimeS) * 1e6) }) {
		t.Error("the timeline is not in order")
	}
	var story []string
	for i := range shown {
		if e := &shown[i]; !e.Revision() && e.TimeS > 1 {
			story = append(story, e.From+" "+e.Kind)
		}
	}
	for _, want := range []string{
		"event link_going_down", "event link_event_rollback", "event link_going_down", "grpc freeze", "truth loss", "event link_down", "event link_up",
		"event path_usable", "grpc unfreeze",
	} {
		i := slices.Index(story, want)
		if i < 0 {
			t.Fatalf("no %q in the rest of the story, %q", want, story)
		}
		story = append(story[:i:i], story[i+1:]...)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "mihf-demo-*"))
	if len(left) > 0 || err != nil {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	checkJSON(t, r, false)
}

// Without dbus-daemon the other fronts are shown, D-Bus is null, and it is said why.
func TestRunWithoutBus(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r, _ := played(t)
	if !r.OK() || r.Freeze.DBus != nil || !errors.Is(r.NoDBus, privatebus.ErrAbsent) {
		t.Errorf("OK %v, D-Bus %v, %v", r.OK(), r.Freeze.DBus, r.NoDBus)
	}
	checkJSON(t, r, true)
}

// The names that others rely on.
func checkJSON(t *testing.T, r *demo.Report, noBus bool) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	want := []string{"false_alarms", "flow", "freeze", "frozen_ms", "loss_s", "needless_freezes", "outcome", "prediction", "recording", "rollbacks", "speed", "timeline"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(m))); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	freeze := m["freeze"].(map[string]any)
	for _, front := range []string{"grpc", "nats", "dbus"} {
		if v, ok := freeze[front+"_before_loss_ms"]; !ok || (v == nil) != (noBus && front == "dbus") {
			t.Errorf("freeze of %s: %v, %v", front, v, ok)
		}
	}
	if v, ok := m["prediction"].(map[string]any)["lead_ms"].(float64); !ok || v <= 0 {
		t.Errorf("prediction %v", m["prediction"])
	}
}

func TestCancelled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := demo.Run(ctx, 1, func(*demo.Entry) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if len(left) > 0 || err != nil {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
