package virtual_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/cmd/mihctl/internal/virtual"
	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/recording"
	"mihf.dev/mihf/recording/walk"
	"mihf.dev/predictors/level"
	"mihf.dev/sensors/replay"
)

// run plays a recording and returns what came out, one line each.
func run(t *testing.T, r *recording.Reader, rtt time.Duration) []string {
	t.Helper()
	cfg := engine.Defaults()
	cfg.NewPredictor = func(mihf.LinkID) engine.Predictor { return level.New() }
	var lines []string
	last, previous := mihf.Time(0), uint64(0)
	_, err := virtual.Run(replay.NewPlayer(r, recording.Base), virtual.Options{Engine: cfg, Flow: mihf.FlowSpec{RTT: rtt}},
		func(now mihf.Time, d *mihf.Delivery, truth *mihf.Observation) error {
			if now < last {
				t.Fatalf("back in time, from %v to %v", last, now)
			}
			last = now
			if truth != nil {
				lines = append(lines, fmt.Sprintf("%v truth %s", now, truth.Truth.Kind))
				return nil
			}
			if d.Previous != previous || d.Sequence() <= previous {
				t.Fatalf("sequence %d behind %d, after %d", d.Sequence(), d.Previous, previous)
			}
			previous = d.Sequence()
			lines = append(lines, fmt.Sprintf("%v %+v", now, *d))
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// "The same recording and options give the same deliveries", and the walk's truth comes
// at its place.
func TestDeterministic(t *testing.T) {
	plain := func(lines []string) []string { // pointers differ
		out := make([]string, len(lines))
		for i, l := range lines {
			for part := range strings.FieldsSeq(l) {
				if !strings.Contains(part, "0x") {
					out[i] += part + " "
				}
			}
		}
		return out
	}
	a, b := run(t, walk.Open(), 100*time.Millisecond), run(t, walk.Open(), 100*time.Millisecond)
	if diff := cmp.Diff(plain(a), plain(b)); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	i := slices.IndexFunc(a, func(s string) bool { return strings.HasSuffix(s, "truth loss") })
	if want := recording.Base.Add(time.Duration(walk.LastFrame * 1e9)).String(); i < 0 || !strings.HasPrefix(a[i], want) {
		t.Errorf("no truth at %s", want)
	}
}

// What is open at the end of a recording still gets its outcome.
func TestTail(t *testing.T) {
	var s strings.Builder
	s.WriteString(`{"format":"mihf-recording","version":1}` + "\n")
	s.WriteString(`{"t":0,"kind":"association","link":"wifi-00000001","association":{"state":"authorised","poa":"a"}}` + "\n")
	for i := range 60 {
		fmt.Fprintf(&s, `{"t":%g,"kind":"radio","link":"wifi-00000001","poa":"a","values":{"rssi_dbm":%g}}`+"\n", 0.1*float64(i+1), -55-0.5*float64(i))
	}
	r, err := recording.NewReader(strings.NewReader(s.String()))
	if err != nil {
		t.Fatal(err)
	}
	opened, ended := 0, 0
	cfg := engine.Defaults()
	cfg.NewPredictor = func(mihf.LinkID) engine.Predictor { return level.New() }
	_, err = virtual.Run(replay.NewPlayer(r, recording.Base), virtual.Options{Engine: cfg}, func(_ mihf.Time, d *mihf.Delivery, _ *mihf.Observation) error {
		switch {
		case d.Kind == mihf.DeliverHint:
			t.Errorf("a hint without a flow: %+v", d.Hint)
		case d.Event.Kind == mihf.LinkGoingDown && d.Event.Prediction.Revision == 0:
			opened++
		case d.Event.Kind == mihf.PredictionExpired, d.Event.Kind == mihf.LinkEventRollback:
			ended++
		}
		return nil
	})
	if err != nil || opened == 0 || ended != opened {
		t.Errorf("%d predictions, %d ended, error %v", opened, ended, err)
	}
}

func TestErrors(t *testing.T) {
	stop := errors.New("stop")
	_, err := virtual.Run(replay.NewPlayer(walk.Open(), recording.Base), virtual.Options{Engine: engine.Defaults()},
		func(mihf.Time, *mihf.Delivery, *mihf.Observation) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want that of emit", err)
	}
	r, err := recording.NewReader(strings.NewReader(`{"format":"mihf-recording","version":1}` + "\nbroken\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = virtual.Run(replay.NewPlayer(r, recording.Base), virtual.Options{Engine: engine.Defaults()},
		func(mihf.Time, *mihf.Delivery, *mihf.Observation) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v", err)
	}
}

// What is beyond the limits is left out, and counted: links, and what was said of them.
func TestRefused(t *testing.T) {
	const more = 500
	var s strings.Builder
	s.WriteString(`{"format":"mihf-recording","version":1}` + "\n")
	for i := range engine.MaxLinks + more {
		for range 2 {
			fmt.Fprintf(&s, `{"t":%g,"kind":"radio","link":"wifi-%08x","poa":"a","values":{"rssi_dbm":-60}}`+"\n", 0.001*float64(i), i)
		}
	}
	s.WriteString(`{"t":2,"kind":"radio","link":"wlan0","values":{"rssi_dbm":75}}` + "\n")
	r, err := recording.NewReader(strings.NewReader(s.String()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := virtual.Run(replay.NewPlayer(r, recording.Base), virtual.Options{Engine: engine.Defaults()},
		func(mihf.Time, *mihf.Delivery, *mihf.Observation) error { return nil })
	if want := (virtual.Refused{Links: more + 1, Observations: 2*more + 1, Values: 1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
