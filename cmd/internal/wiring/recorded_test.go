package wiring

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/recording"
	"mihf.dev/sensors"
	"mihf.dev/sensors/replay"
)

// recordedSensor is the sensor of a configuration that has no other.
func recordedSensor(t *testing.T, file string) sensors.Sensor {
	t.Helper()
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	c.Sensors = config.Sensors{Replay: config.Replay{File: file}}
	list, watch := NewSensors(&c, Options{Clock: clock.Process()})
	if len(list) != 1 || watch.Peers != nil || watch.Flows != nil || list[0].Name() != replay.Name {
		t.Fatalf("sensors %v", list)
	}
	return list[0]
}

// TestRecordedRealTime plays the walk in the time that it took.
func TestRecordedRealTime(t *testing.T) { synctest.Test(t, testRecordedRealTime) }

func testRecordedRealTime(t *testing.T) {
	s := recordedSensor(t, "../../../mihf/recording/walk/walk.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var first, last mihf.Time
	radios := 0
	err := s.Run(ctx, func(o *mihf.Observation) {
		switch {
		case o.Sensor != replay.Name:
			t.Errorf("observation of %s", o.Sensor)
		case o.Kind == mihf.ObsRadio:
			radios++
		case o.Kind != mihf.ObsCondition:
		case o.Condition.Condition == mihf.ConditionOK:
			first = o.At
		case o.Condition.Condition == mihf.ConditionStopped:
			last = o.At
			cancel()
		default:
			t.Errorf("condition %+v", o.Condition)
			cancel()
		}
	})
	if took := last.Sub(first); err != nil || radios == 0 || took.Seconds() < 30 {
		t.Errorf("%d samples in %v, error %v", radios, took, err)
	}
}

// TestRecordedBroken: what can be seen at the start is an error then, naming key, file and
// reason; what is further in degrades the sensor.
func TestRecordedBroken(t *testing.T) { synctest.Test(t, testRecordedBroken) }

func testRecordedBroken(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for file, reason := range map[string]string{
		dir + "/none":                          "no such file",
		dir:                                    "not a regular file",
		"/dev/zero":                            "not a regular file",
		write("text", "hello\n"):               "neither a recording",
		write("empty", ""):                     "",
		write("trace", "t_s,row\nx,serving\n"): "line 2",
	} {
		c := config.Defaults()
		c.DBus.Bus = config.NoBus
		c.Sensors.Replay.File = file
		checked, ran := Check(&c), recordedSensor(t, file).Run(t.Context(), func(*mihf.Observation) {})
		for _, err := range []error{checked, ran} {
			if err == nil || !strings.Contains(err.Error(), "sensors.replay.file: ") || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: error %v", file, err)
			}
		}
	}

	var header strings.Builder
	if _, err := recording.NewWriter(&header, recording.Header{}, recording.Base); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var text string
	err := recordedSensor(t, write("late", header.String()+"broken\n")).Run(ctx, func(o *mihf.Observation) {
		if o.Kind == mihf.ObsCondition && o.Condition.Condition == mihf.ConditionDegraded {
			text = o.Condition.Text
			cancel()
		}
	})
	if err != nil || !strings.Contains(text, "line 2") {
		t.Errorf("degraded %q, error %v", text, err)
	}
}
