package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/recording"
	"mihf.dev/sensors"
	"mihf.dev/sensors/replay"
	"mihf.dev/sensors/sensorstest"
)

const head = `{"format":"mihf-recording","version":1}` + "\n"

// walk is a recording with truth, a line out of order and one before the start.
const walk = head +
	`{"t":-1,"kind":"radio","link":"wifi-00000001","sensor":"nl80211","values":{"rssi_dbm":-60}}
{"t":1,"kind":"radio","link":"wifi-00000001","sensor":"nl80211","age_s":0.5,"values":{"rssi_dbm":-61}}
{"t":0.5,"kind":"resync","sensor":"rtnl"}
{"t":2,"kind":"truth","truth":{"kind":"loss","until":3}}
{"t":4,"kind":"link_gone","link":"wifi-00000001","reason":"removed"}
`

var _ sensors.Sensor = (*replay.Sensor)(nil)

func source(t testing.TB, s string) recording.Source {
	t.Helper()
	r, err := recording.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlayer(t *testing.T) {
	const start = mihf.Time(1000 * time.Second)
	p := replay.NewPlayer(source(t, walk), start)
	var o mihf.Observation
	var got []string
	for {
		due, ok := p.Next(&o)
		if !ok {
			break
		}
		line := fmt.Sprintf("%v %v at %v", due.Sub(start), o.Kind, o.At.Sub(start))
		if o.Truth != nil {
			line += fmt.Sprintf(" until %v", o.Truth.Until.Sub(start))
		}
		got = append(got, line)
	}
	want := []string{
		"0s radio at -1s", "1s radio at 1s", "1s resync at 500ms", "2s truth at 2s until 3s", "4s link_gone at 4s",
	}
	if diff := cmp.Diff(want, got); diff != "" || p.Err() != nil {
		t.Errorf("error %v (-want +got)\n%s", p.Err(), diff)
	}
	if _, ok := p.Next(&o); ok {
		t.Error("the player goes on behind the end")
	}
}

func TestPlayerBrokenLine(t *testing.T) {
	p := replay.NewPlayer(source(t, head+`{"t":0,"kind":"resync"}`+"\nbroken\n"+`{"t":1,"kind":"resync"}`), 1)
	var o mihf.Observation
	_, first := p.Next(&o)
	_, second := p.Next(&o)
	_, third := p.Next(&o)
	if !first || second || third || p.Err() == nil || !strings.Contains(p.Err().Error(), "line 3") {
		t.Errorf("%v, %v, %v, %v", first, second, third, p.Err())
	}
}

// run plays a recording in a synctest bubble and returns what was emitted, each with
// the real time since the start.
func run(t *testing.T, in string, speed float64) []string {
	t.Helper()
	var got []string
	synctest.Test(t, func(t *testing.T) {
		c := clock.Scaled(speed)
		begin, started := c.Now(), time.Now()
		s := replay.New(source(t, in), c, 0)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- s.Run(ctx, func(o *mihf.Observation) {
				line := fmt.Sprintf("%v: %v at %v by %s", time.Since(started).Round(time.Microsecond), o.Kind, o.At.Sub(begin).Round(time.Microsecond), o.Sensor)
				if o.Condition != nil {
					line += fmt.Sprintf(" %v %s", o.Condition.Condition, o.Condition.Text)
				}
				got = append(got, line)
			})
		}()
		<-s.Ended()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Run ended before its context: %v", err)
		default:
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
	return got
}

// "Each when it is due and never before"; "truth is never emitted".
func TestSensor(t *testing.T) {
	want := []string{
		"0s: condition at 0s by replay ok ", "0s: radio at 0s by replay", "500ms: radio at 1s by replay",
		"500ms: resync at 1s by replay", "2s: link_gone at 4s by replay", "2s: condition at 4s by replay stopped the recording is over",
	}
	if diff := cmp.Diff(want, run(t, walk, 2)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSensorBrokenRecording(t *testing.T) {
	want := []string{
		"0s: condition at 0s by replay ok ", "0s: resync at 0s by replay",
		"0s: condition at 0s by replay degraded the recording cannot be read further: line 3: the input ends within the line: unexpected end of JSON input",
	}
	if diff := cmp.Diff(want, run(t, head+`{"t":0,"kind":"resync"}`+"\n"+`{"t":1,"ki`, 1)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	sensorstest.Contract(t, func(t testing.TB) sensors.Sensor {
		t.Helper()
		return replay.New(source(t, walk), clock.Scaled(1000), 0)
	}, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsCondition })
}

// Run ends with its context in the middle of a recording, and emits nothing afterwards.
func TestSensorCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Process()
		s := replay.New(source(t, walk), c, c.Now().Add(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := 0
		if err := s.Run(ctx, func(*mihf.Observation) { n++ }); err != nil || n != 1 || s.Err() != nil {
			t.Errorf("%v, %d observations, want the condition only", err, n)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if err := s.Run(ctx, func(*mihf.Observation) { n++ }); err != nil || n != 7 {
			t.Errorf("run again: %v, %d observations in all, want 7", err, n)
		}
	})
}

// A recording that is played, recorded and played again is the same.
func TestRecordAgain(t *testing.T) {
	again := func(in string) string {
		var b bytes.Buffer
		w, err := recording.NewWriter(&b, recording.Header{}, recording.Base)
		if err != nil {
			t.Fatal(err)
		}
		p := replay.NewPlayer(source(t, in), recording.Base)
		var o mihf.Observation
		for {
			if _, ok := p.Next(&o); !ok {
				break
			}
			if err := w.Write(&o); err != nil {
				t.Fatal(err)
			}
		}
		if p.Err() != nil {
			t.Fatal(p.Err())
		}
		return b.String()
	}
	once := again(walk)
	if diff := cmp.Diff(once, again(once)); diff != "" || once != walk {
		t.Errorf("the second is another one (-once +twice)\n%s\n%s", diff, cmp.Diff(walk, once))
	}
}
