package liveview

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	wlan = mihf.LinkID("wifi-3fa9c01d")
	wwan = mihf.LinkID("wwan-0badcafe")
	eth  = mihf.LinkID("ethernet-00000001")
	evil = mihf.LinkID("wifi-666e7669")
	now  = mihf.Time(2 * time.Hour)
)

// scene is a minute in which wlan fades.
func scene() *state {
	s := &state{}
	boot := mihf.BootID(0x5f3a0c11)
	var snap *mihf.Snapshot
	for i := range 240 {
		at := now.Add(-time.Minute + time.Duration(i+1)*250*time.Millisecond)
		sec := float64(i) / 4
		wifi := mihf.LinkStatus{
			Link: wlan, Facts: &mihf.LinkFacts{Name: "wlan0", Index: 3}, Up: true, Since: now.Add(-133 * time.Second),
			PoA: "02:00:00:00:00:01", SSID: []byte("cafe"), UsableIPv4: true, UsableIPv6: true, ValuesAt: at,
		}
		wifi.Values.Set(mihf.ParamRSSI, -55-30*max(sec-30, 0)/30+2*float64(i%3-1))
		wifi.Forecast = &mihf.Forecast{At: at}
		p := max(sec-40, 0) / 20
		wifi.Forecast.Loss.Set(func(h float64) float64 { return p * min(h/4, 1) })
		snap = &mihf.Snapshot{Sequence: uint64(18000 + i), Boot: boot, Node: "laptop", At: at, Links: []mihf.LinkStatus{
			{Link: eth, Facts: &mihf.LinkFacts{Name: "eth0"}, Since: now.Add(-26 * time.Hour)},
			wifi,
			{Link: wwan, Facts: &mihf.LinkFacts{Name: "wwan0"}, Up: true, Since: now.Add(-26 * time.Hour), PoA: "26201-1f2e", UsableIPv4: true},
			{Link: evil, Facts: &mihf.LinkFacts{Name: "x\x1b[2J\n"}, Up: true, SSID: []byte("\x1b]0;pwn\x07")},
		}}
		snap.Kinds, snap.Egress = mihf.Kinds(mihf.LinkParametersReport), []mihf.Egress{{Link: wlan}}
		s.update(snap)
	}
	prediction := mihf.Prediction{
		ID: mihf.PredictionID{Boot: boot, N: 3}, Revision: 2, OpenedAt: now.Add(-1200 * time.Millisecond),
		P10: 800 * time.Millisecond, P50: 1900 * time.Millisecond, P90: 3100 * time.Millisecond, Confidence: 0.87,
		Trend: mihf.Trend{Parameter: mihf.ParamRSSI, Level: -82.3, Slope: -2.4, Floor: -87},
	}
	snap.Links[1].Prediction = mihf.Some(prediction)
	snap.Links[2].LCI = &mihf.LCI{
		CapacityUpBPS:   mihf.Characteristic{Value: 8.2e6, Source: mihf.SourceMeasured},
		CapacityDownBPS: mihf.Characteristic{Value: 99e6, Source: mihf.SourcePHY},
	}
	snap.Flows = []mihf.FlowStatus{
		{Spec: mihf.FlowSpec{ID: "01J9ZK3V5Q8X6T7M2N4P0R1S3A", Direction: mihf.DirectionReceive}, Link: wlan, Lead: 105 * time.Millisecond, Frozen: true, FrozenSince: now.Add(-450 * time.Millisecond), Epoch: 3},
		{Spec: mihf.FlowSpec{ID: "01J9ZK3V5Q8X6T7M2N4P0R1S3B"}, Link: wwan, RTT: 35 * time.Millisecond, RTTSource: mihf.RTTMeasured, Lead: 40 * time.Millisecond, Epoch: 1},
	}
	event := func(before time.Duration, ev mihf.Event) {
		ev.At = now.Add(-before)
		s.take(&mihf.Delivery{Kind: mihf.DeliverEvent, Event: ev})
	}
	event(40*time.Second, mihf.Event{Kind: mihf.LinkRenamed, Link: evil, Rename: &mihf.Rename{Old: "y", New: "x\x1b[2J\n"}})
	event(30*time.Second, mihf.Event{Kind: mihf.SensorConditionChanged, Condition: &mihf.SensorCondition{Sensor: "nl80211", Condition: mihf.ConditionOK}})
	event(1200*time.Millisecond, mihf.Event{Kind: mihf.LinkGoingDown, Link: wlan, Prediction: prediction})
	s.take(&mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{
		Kind: mihf.HintFreeze, Link: wlan, Flow: "01J9ZK3V5Q8X6T7M2N4P0R1S3A", At: now.Add(-450 * time.Millisecond), Epoch: 3, Prediction: prediction.ID,
		Freeze: mihf.Freeze{Lease: 3 * time.Second, P10: time.Millisecond, P50: time.Second, P90: 2 * time.Second},
	}})
	s.take(&mihf.Delivery{Kind: mihf.DeliverGap, Gap: mihf.Gap{From: 18000, To: 18010, Reason: "the connection was lost"}})
	return s
}

func newFrame(width, height int, colour bool) *frame {
	return &frame{
		now: now, width: width, height: height, colour: colour,
		clock: func(t mihf.Time) string { return time.Unix(int64(t)/1e9, 0).UTC().Format("15:04:05") },
	}
}

func TestRender(t *testing.T) {
	silent := scene()
	silent.problem = "no answer from the daemon: connection refused\x1b[31m"
	idle := &state{}
	idle.update(&mihf.Snapshot{
		Node: "server", At: now, Links: []mihf.LinkStatus{{Link: eth, Facts: &mihf.LinkFacts{Name: "eth0"}, Since: now.Add(-time.Hour)}},
		Sensors: []mihf.SensorCondition{{Sensor: "rtnl", Condition: mihf.ConditionOK}, {Sensor: "nl80211", Condition: mihf.ConditionUnavailable, Text: "no \x1b radio"}},
	})
	for name, c := range map[string]struct {
		s             *state
		width, height int
		colour        bool
	}{
		"80x24":        {scene(), 80, 24, false},
		"80x24-colour": {scene(), 80, 24, true},
		"120x40":       {scene(), 120, 40, false},
		"40x12":        {scene(), 40, 12, false},
		"30x5":         {scene(), 30, 5, false},
		"10x3":         {scene(), 10, 3, false},
		"waiting":      {&state{}, 80, 24, false},
		"silent":       {silent, 80, 24, false},
		"idle":         {idle, 80, 24, false},
		"idle-small":   {idle, 60, 9, false},
	} {
		got := strings.Join(c.s.render(newFrame(c.width, c.height, c.colour)), "\n") + "\n"
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got; -update writes it anew)\n%s", name, diff)
		}
	}
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Whatever the size, a frame fits it, and only colours are ever escape sequences.
func TestFits(t *testing.T) {
	s := scene()
	for width := 1; width < 130; width += 3 {
		for height := 1; height < 45; height += 2 {
			lines := s.render(newFrame(width, height, true))
			if len(lines) > height {
				t.Fatalf("%dx%d: %d lines", width, height, len(lines))
			}
			for _, l := range lines {
				l = sgr.ReplaceAllString(l, "")
				if n := show.Width(l); n > width {
					t.Fatalf("%dx%d: %d cells in %q", width, height, n, l)
				}
				if strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("%dx%d: %q", width, height, l)
				}
			}
		}
	}
}

// "What it keeps is bounded."
func TestBounded(t *testing.T) {
	s := scene()
	for i := range 5000 {
		l := mihf.LinkStatus{Link: wlan, ValuesAt: now.Add(time.Duration(i) * time.Millisecond)}
		l.Values.Set(mihf.ParamRSSI, -60)
		l.Forecast = &mihf.Forecast{At: l.ValuesAt}
		s.update(&mihf.Snapshot{At: l.ValuesAt, Links: []mihf.LinkStatus{l}})
		s.take(&mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Kind: mihf.LinkUp, Link: mihf.LinkID(fmt.Sprint(i))}})
	}
	if n := len(s.links[wlan].signal.at); n > maxSamples {
		t.Errorf("%d samples", n)
	}
	if len(s.lines) > maxLines || len(s.links) != 1 {
		t.Errorf("%d lines, %d links", len(s.lines), len(s.links))
	}
}

// A reading that is seen again is one sample; another parameter is another series.
func TestSeries(t *testing.T) {
	var tr trace
	l := mihf.LinkStatus{ValuesAt: now}
	l.Values.Set(mihf.ParamRSSI, -60)
	tr.add(&l)
	tr.add(&l)
	if len(tr.signal.at) != 1 {
		t.Errorf("%d samples of one reading", len(tr.signal.at))
	}
	l.ValuesAt = now + 1
	l.Values.Set(mihf.ParamBeaconSignal, -70)
	tr.add(&l)
	if diff := cmp.Diff([]float64{-70}, tr.signal.values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A revision takes the place of the one before it, a lease that is renewed likewise; the
// announcement and the first Freeze stay.
func TestRepetitions(t *testing.T) {
	s := &state{}
	p := mihf.Prediction{ID: mihf.PredictionID{Boot: 1, N: 1}}
	for i := range uint32(5) {
		p.Revision = i
		s.take(&mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Kind: mihf.LinkGoingDown, Prediction: p}})
		s.take(&mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{Kind: mihf.HintFreeze, Flow: "01J9ZK3V5Q8X6T7M2N4P0R1S3A", Epoch: uint64(i)}})
		s.take(&mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{Kind: mihf.HintCharacteristics, Flow: "f"}})
	}
	var got []string
	for _, l := range s.lines {
		got = append(got, l.text)
	}
	want := []string{
		"steady → going down, a loss expected in 0 s (p10 0 ms, p90 0 ms, P 0.00) [00000001-1 rev 0]",
		"flow …4P0R1S3A: running → frozen, predicted, lease 0 ms (epoch 0)",
		"going down → going down, a loss expected in 0 s (p10 0 ms, p90 0 ms, P 0.00) [00000001-1 rev 4]",
		"flow …4P0R1S3A: frozen → frozen, predicted, lease 0 ms (epoch 4)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The widest kind of link leaves a blank before a flow's state.
func TestWideLink(t *testing.T) {
	s := &state{}
	s.update(&mihf.Snapshot{At: now, Flows: []mihf.FlowStatus{{Link: "ethernet-00000001"}}})
	got := strings.Join(s.render(newFrame(80, 24, false)), "\n")
	if want := "ethernet-00000001 running"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
