package show_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "0 ms",
		99 * time.Microsecond:                "0 ms",
		1234 * time.Microsecond:              "1.2 ms",
		320 * time.Millisecond:               "320 ms",
		999 * time.Millisecond:               "999 ms",
		9996e5:                               "1.0 s",
		1900 * time.Millisecond:              "1.9 s",
		59949 * time.Millisecond:             "59.9 s",
		59960 * time.Millisecond:             "1m00s",
		133 * time.Second:                    "2m13s",
		2*time.Hour + 3*time.Minute:          "2h03m",
		76 * time.Hour:                       "3d04h",
		-1900 * time.Millisecond:             "-1.9 s",
		time.Hour - 100*time.Millisecond:     "1h00m",
		48*time.Hour - 100*time.Millisecond:  "2d00h",
		2*time.Minute - 100*time.Millisecond: "2m00s",
	} {
		if got := show.Span(d); got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", -82.34: "-82.3", -82: "-82", 1500: "1500", 0.25: "0.25", 100: "100", 1e9: "1e+09", math.Inf(1): show.Unknown,
	} {
		if got := show.Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
	if got := show.Number(math.NaN()); got != show.Unknown {
		t.Errorf("Number(NaN) = %q", got)
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		p    mihf.Parameter
		v    float64
		want string
	}{
		{mihf.ParamRSSI, -82.34, "-82.3 dBm"},
		{mihf.ParamTxPHYRate, 6.5e6, "6.5 Mbit/s"},
		{mihf.ParamTxPHYRate, 500, "500 bit/s"},
		{mihf.ParamRTT, 0.12, "120 ms"},
		{mihf.ParamTxRetryRatio, 0.25, "0.25"},
		{mihf.ParamQuality, 70, "70 %"},
	} {
		if got := show.Value(c.p, c.v); got != c.want {
			t.Errorf("Value(%v, %v) = %q, want %q", c.p, c.v, got, c.want)
		}
	}
}

// "East Asian wide characters and pictographs take two cells, combining marks none."
func TestWidths(t *testing.T) {
	for s, want := range map[string]int{"": 0, "wlan0": 5, "喫茶": 4, "🚆": 2, "e\u0301": 1, "▁▇": 2} {
		if got := show.Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, w := rapid.String().Draw(t, "s"), rapid.IntRange(0, 12).Draw(t, "w")
		if got := show.Width(show.Fit(s, w)); got > w {
			t.Fatalf("Fit(%q, %d) has %d cells", s, w, got)
		}
		if got := show.Width(show.Pad(s, w)); got < w {
			t.Fatalf("Pad(%q, %d) has %d cells", s, w, got)
		}
	})
}

func TestTable(t *testing.T) {
	got := show.Table([][]string{{"LINK", "SSID", "X"}, {"wifi-1", "喫茶", "1"}, {"e", "", ""}})
	want := []string{
		"LINK    SSID  X",
		"wifi-1  喫茶  1",
		"e",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPlots(t *testing.T) {
	nan := math.NaN()
	if got, want := show.Sparkline([]float64{-100, -90, nan, -80, -60, 99}, -100, -60), "▁▃ ▅██"; got != want {
		t.Errorf("Sparkline %q, want %q", got, want)
	}
	if got, want := show.Sparkline([]float64{1, 2}, 5, 5), "▁▁"; got != want {
		t.Errorf("Sparkline without a range %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"  █", " ██", "▁██"}, show.Plot([]float64{0, 0.65, 1}, 0, 1, 3)); diff != "" {
		t.Errorf("Plot (-want +got)\n%s", diff)
	}
	got := show.Resample([]float64{0, 1, 2, 9.9, 10, 11}, []float64{2, 4, 6, 8, 10, 12}, 0, 10, 5)
	if diff := cmp.Diff([]float64{3, 6, nan, nan, 9}, got, cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })); diff != "" {
		t.Errorf("Resample (-want +got)\n%s", diff)
	}
}

func TestRange(t *testing.T) {
	low, high, ok := show.Range([]float64{-61, math.NaN(), -63}, 20)
	if !ok || low != -80 || high != -50 {
		t.Errorf("Range %v to %v, %v", low, high, ok)
	}
	if _, _, ok := show.Range([]float64{math.NaN()}, 20); ok {
		t.Error("a range of nothing")
	}
}

const wlan = mihf.LinkID("wifi-3fa9c01d")

var prediction = mihf.Prediction{
	ID: mihf.PredictionID{Boot: 0x5f3a0c11, N: 3}, Revision: 0, P10: 800 * time.Millisecond, P50: 1900 * time.Millisecond, P90: 3100 * time.Millisecond,
	Confidence: 0.87, Trend: mihf.Trend{Parameter: mihf.ParamRSSI, Level: -82.3, Slope: -2.4, Floor: -87, Noise: 1, Samples: 30},
}

// old → new, link, reason, sequence: for each kind.
func TestChangeLines(t *testing.T) {
	revised := prediction
	revised.Revision = 2
	egress := &mihf.EgressChange{
		Old: mihf.Egress{Link: wlan, Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600},
		New: mihf.Egress{Link: "wwan-00000001", Metric: 700},
	}
	c := show.Changes{Time: func(t mihf.Time) string { return t.String() }}
	for _, x := range []struct {
		ev   mihf.Event
		want string
	}{
		{mihf.Event{Kind: mihf.LinkUp, Up: &mihf.Up{PoA: "02:00:00:00:00:01", SSID: []byte("cafe")}}, "link_up                 down → up, at 02:00:00:00:00:01 (cafe)"},
		{mihf.Event{Kind: mihf.LinkDown, Down: mihf.Down{Reason: mihf.DownBeaconLoss, Code: 4, Withheld: 30 * time.Millisecond}, Prediction: prediction}, "link_down               up → down, beacon_loss (code 4), withheld 30 ms, as predicted [5f3a0c11-3]"},
		{mihf.Event{Kind: mihf.LinkGoingDown, Prediction: prediction}, "link_going_down         steady → going down, rssi -82.3 dBm, falling 2.4 dB/s, expected below -87 dBm in 1.9 s (p10 800 ms, p90 3.1 s, P 0.87) [5f3a0c11-3 rev 0]"},
		{mihf.Event{Kind: mihf.LinkGoingDown, Prediction: revised}, "link_going_down         going down → going down, rssi -82.3 dBm, falling 2.4 dB/s, expected below -87 dBm in 1.9 s (p10 800 ms, p90 3.1 s, P 0.87) [5f3a0c11-3 rev 2]"},
		{mihf.Event{Kind: mihf.LinkEventRollback, Prediction: prediction}, "link_event_rollback     going down → steady, taken back [5f3a0c11-3]"},
		{mihf.Event{Kind: mihf.PredictionExpired, Prediction: prediction}, "prediction_expired      going down → steady, did not come true in time [5f3a0c11-3]"},
		{mihf.Event{Kind: mihf.LinkParametersReport, Report: mihf.Report{Parameter: mihf.ParamRSSI, Value: -81, Previous: mihf.Some(-78.0), Threshold: mihf.Some(mihf.Threshold{Value: -80, Direction: mihf.ThresholdBelow})}}, "link_parameters_report  rssi_dbm -78 dBm → -81 dBm, below -80 dBm"},
		{mihf.Event{Kind: mihf.LinkParametersReport, Report: mihf.Report{Parameter: mihf.ParamRSSI, Value: -81, Periodic: true}}, "link_parameters_report  rssi_dbm – → -81 dBm, periodic"},
		{mihf.Event{Kind: mihf.LinkHandoverImminent, Handover: &mihf.Handover{OldPoA: "a", NewPoA: "b", NetworkOrdered: true}}, "link_handover_imminent  a → b, about to, ordered by the network"},
		{mihf.Event{Kind: mihf.LinkHandoverComplete, Handover: &mihf.Handover{OldLink: wlan, NewLink: "wwan-00000001", DataGap: mihf.Some(40 * time.Millisecond)}}, "link_handover_complete  wifi-3fa9c01d → wwan-00000001, data gap 40 ms"},
		{mihf.Event{Kind: mihf.PathUsable, Path: &mihf.Path{Source: netip.MustParseAddr("192.0.2.2"), Gateway: netip.MustParseAddr("192.0.2.1")}}, "path_usable             IPv4 lost → usable, from 192.0.2.2 by 192.0.2.1"},
		{mihf.Event{Kind: mihf.PathLost, Path: &mihf.Path{IPv6: true, Reason: mihf.DownNoRoute}}, "path_lost               IPv6 usable → lost, no_route"},
		{mihf.Event{Kind: mihf.DefaultRouteChanged, Egress: egress}, "default_route_changed   IPv4 wifi-3fa9c01d by 192.0.2.1 metric 600 → wwan-00000001 by – metric 700"},
		{mihf.Event{Kind: mihf.AddressChanged, Address: &mihf.AddressChange{New: mihf.Address{Prefix: netip.MustParsePrefix("192.0.2.2/24"), Tentative: true}}}, "address_changed         none → 192.0.2.2/24 (tentative)"},
		{mihf.Event{Kind: mihf.LinkRenamed, Rename: &mihf.Rename{Old: "wlan0", New: "wl\x1bp3"}}, `link_renamed            wlan0 → wl\x1bp3`},
		{mihf.Event{Kind: mihf.LinkRemoved, Removed: mihf.DownRemoved}, "link_removed            present → removed"},
		{mihf.Event{Kind: mihf.LinkRemoved, Removed: mihf.DownMoved}, "link_removed            present → removed, moved_netns"},
		{mihf.Event{Kind: mihf.SensorConditionChanged, Condition: &mihf.SensorCondition{Sensor: "rtnl", Condition: mihf.ConditionOK}}, "sensor_condition        rtnl – → ok"},
		{mihf.Event{Kind: mihf.SensorConditionChanged, Condition: &mihf.SensorCondition{Sensor: "rtnl", Condition: mihf.ConditionDenied, Text: "run as root"}}, "sensor_condition        rtnl ok → denied, run as root"},
		{mihf.Event{Kind: mihf.ResumedFromSuspend, Gap: time.Minute}, "resumed_from_suspend    suspended → running, for 1m00s"},
		{mihf.Event{Kind: mihf.Resync, Resync: &mihf.ResyncInfo{Sensor: "rtnl", Lost: true}}, "resync                  rtnl read all its state again, messages were lost"},
		{mihf.Event{Kind: mihf.ShareReport, ShareReport: &mihf.ShareReportPayload{Flow: "f", LimitBPS: 2e6}}, "share_report            flow f limit 2 Mbit/s"},
		{mihf.Event{Kind: mihf.LinkDetected, Detected: &mihf.Detected{PoA: "a", SSID: []byte("b")}}, "link_detected           – → heard, a (b)"},
	} {
		x.ev.At, x.ev.Sequence, x.ev.Link = mihf.Time(12345e6), 7, wlan
		got := c.Line(&mihf.Delivery{Kind: mihf.DeliverEvent, Event: x.ev})
		if diff := cmp.Diff("12.345s      7  wifi-3fa9c01d  "+x.want, got); diff != "" {
			t.Errorf("%v (-want +got)\n%s", x.ev.Kind, diff)
		}
	}
}

func TestHintLines(t *testing.T) {
	c := show.Changes{Time: func(t mihf.Time) string { return t.String() }}
	freeze := mihf.Freeze{Lease: 3 * time.Second, P10: 800 * time.Millisecond, P50: 1900 * time.Millisecond, P90: 3100 * time.Millisecond}
	for _, x := range []struct {
		h    mihf.Hint
		want string
	}{
		{mihf.Hint{Kind: mihf.HintFreeze, Freeze: freeze, Prediction: prediction.ID}, "hint freeze             flow F: running → frozen, loss in 1.9 s (p10 800 ms, p90 3.1 s), lease 3.0 s (epoch 1) [5f3a0c11-3]"},
		{mihf.Hint{Kind: mihf.HintFreeze, Freeze: mihf.Freeze{Lease: 3 * time.Second, Reason: mihf.FreezeLinkDown}}, "hint freeze             flow F: frozen → frozen, link_down, lease 3.0 s (epoch 2)"},
		{mihf.Hint{Kind: mihf.HintUnfreeze, Unfreeze: mihf.Unfreeze{Cause: mihf.UnfreezeExpired, Recovery: true}}, "hint unfreeze           flow F: frozen → recovery, expired (epoch 3)"},
		{mihf.Hint{Kind: mihf.HintPrepare, Prepare: mihf.Prepare{Target: "wwan-00000001", Deadline: time.Second}}, "hint prepare            flow F: prepare for wwan-00000001 in 1.0 s (epoch 4)"},
		{mihf.Hint{Kind: mihf.HintSwitch, Switch: mihf.Switch{Target: "wwan-00000001"}}, "hint switch             flow F: wifi-3fa9c01d → wwan-00000001, switch (epoch 5)"},
		{mihf.Hint{Kind: mihf.HintAbandon, Abandon: mihf.AbandonAddressGone}, "hint abandon            flow F: running → abandoned, address_gone (epoch 6)"},
		{mihf.Hint{Kind: mihf.HintCharacteristics, Characteristics: &mihf.LCI{MTUBytes: mihf.Characteristic{Value: 1500, Source: mihf.SourcePHY}}}, "hint characteristics    flow F: characteristics MTU 1500 bytes (phy) (epoch 7)"},
	} {
		x.h.Flow, x.h.Link, x.h.At = "F", wlan, mihf.Time(12345e6)
		x.h.Sequence, x.h.Epoch = 7, uint64(x.h.Kind)
		if x.h.Kind == mihf.HintFreeze && x.h.Prediction.IsZero() {
			x.h.Epoch = 2
		} else if x.h.Kind != mihf.HintFreeze {
			x.h.Epoch++
		}
		got := c.Line(&mihf.Delivery{Kind: mihf.DeliverHint, Hint: x.h})
		if diff := cmp.Diff("12.345s      7  wifi-3fa9c01d  "+x.want, got); diff != "" {
			t.Errorf("%v (-want +got)\n%s", x.h.Kind, diff)
		}
	}
}

func TestGap(t *testing.T) {
	for want, g := range map[string]mihf.Gap{
		"deliveries 6 to 9 are missing, the connection was lost": {From: 5, To: 9, Reason: "the connection was lost"},
		"begins anew, sequence 99999 is not reached yet":         {From: 35, To: 35, Reason: "sequence 99999 is not reached yet"},
	} {
		if got := show.Gap(&g); got != want {
			t.Errorf("Gap(%d, %d) = %q, want %q", g.From, g.To, got, want)
		}
	}
}

// A link that the snapshot names has its room in each line.
func TestColumns(t *testing.T) {
	c := show.Changes{Time: func(mihf.Time) string { return "T" }}
	got := []string{
		c.Line(&mihf.Delivery{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Links: []mihf.LinkStatus{{Link: "ethernet-00000001"}}}}),
		c.Line(&mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{At: 1, Sequence: 1, Kind: mihf.LinkUp, Link: "wifi-00000001"}}),
		c.Line(&mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{At: 1, Sequence: 2, Kind: mihf.LinkUp, Link: "ethernet-00000001"}}),
	}
	want := []string{
		"–      0  –                  snapshot                state of run 00000000 on –: 1 link, 0 up, 0 flows",
		"T      1  wifi-00000001      link_up                 down → up",
		"T      2  ethernet-00000001  link_up                 down → up",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSnapshot(t *testing.T) {
	s := mihf.Snapshot{Boot: 1, Node: "n", Links: make([]mihf.LinkStatus, 1), Flows: make([]mihf.FlowStatus, 2)}
	if got, want := show.Snapshot(&s), "state of run 00000001 on n: 1 link, 0 up, 2 flows"; got != want {
		t.Errorf("Snapshot = %q, want %q", got, want)
	}
}

// "No byte of a name can steer a terminal."
func TestNothingSteersTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := func() string {
			return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2J", "a\nb", "\x9b31m", "\xff", "\u202e", "\x1b]0;x\x07"})).Draw(t, "s")
		}
		ev := mihf.Event{
			Kind: mihf.Kind(rapid.IntRange(0, mihf.NumKinds).Draw(t, "kind")), Link: mihf.LinkID(s()),
			Detected: &mihf.Detected{PoA: mihf.PoA(s()), SSID: []byte(s())}, Up: &mihf.Up{PoA: mihf.PoA(s()), SSID: []byte(s())},
			Down: mihf.Down{PoA: mihf.PoA(s())}, Handover: &mihf.Handover{OldPoA: mihf.PoA(s()), NewPoA: mihf.PoA(s()), OldLink: mihf.LinkID(s()), NewLink: mihf.LinkID(s())},
			Path: &mihf.Path{Source: netip.MustParseAddr("fe80::1").WithZone(s())}, Egress: &mihf.EgressChange{Old: mihf.Egress{Link: mihf.LinkID(s())}},
			Rename: &mihf.Rename{Old: s(), New: s()}, Condition: &mihf.SensorCondition{Sensor: s(), Text: s()},
			Resync: &mihf.ResyncInfo{Sensor: s(), Reason: s()}, ShareReport: &mihf.ShareReportPayload{Flow: mihf.FlowID(s())},
		}
		h := mihf.Hint{
			Kind: mihf.HintKind(rapid.IntRange(0, 7).Draw(t, "hint")), Flow: mihf.FlowID(s()), Link: mihf.LinkID(s()),
			Prepare: mihf.Prepare{Target: mihf.LinkID(s())}, Switch: mihf.Switch{Target: mihf.LinkID(s())},
		}
		c := show.Changes{Time: func(mihf.Time) string { return "" }}
		for _, d := range []mihf.Delivery{
			{Kind: mihf.DeliverEvent, Event: ev},
			{Kind: mihf.DeliverHint, Hint: h},
			{Kind: mihf.DeliverGap, Gap: mihf.Gap{Reason: s()}},
			{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Node: mihf.NodeID(s())}},
		} {
			line := c.Line(&d)
			if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
				t.Fatalf("line %q has %q", line, line[i:])
			}
		}
	})
}
