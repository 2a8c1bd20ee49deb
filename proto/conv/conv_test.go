package conv

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// wire passes a message through its encoded form, as on a connection.
func wire[T proto.Message](t rapid.TB, p T, out T) T {
	t.Helper()
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	return out
}

func wantSame(t rapid.TB, want, got any, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// What was encoded and is decoded at once is equal to the original, for every kind.
func TestRoundTrip(t *testing.T) {
	enc, dec := Encoder{Now: now, Wall: time.Unix(1e9, 0), Node: "n"}, Decoder{Now: now}
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		t.Run("event/"+k.String(), rapid.MakeCheck(func(rt *rapid.T) {
			want := gen{rt}.event(k)
			got, err := dec.Event(wire(rt, enc.Event(&want), &mihv1.Event{}))
			wantSame(rt, want, got, err)
		}))
	}
	for k := mihf.HintFreeze; k <= mihf.HintCharacteristics; k++ {
		t.Run("hint/"+k.String(), rapid.MakeCheck(func(rt *rapid.T) {
			want := gen{rt}.hint(k)
			got, err := dec.Hint(wire(rt, enc.Hint(&want), &mihv1.Hint{}))
			wantSame(rt, want, got, err)
		}))
	}
	for k := mihf.ObsLink; k <= mihf.ObsTruth; k++ {
		t.Run("observation/"+k.String(), rapid.MakeCheck(func(rt *rapid.T) {
			want := gen{rt}.observation(k)
			got, err := dec.Observation(wire(rt, enc.Observation(&want), &mihv1.Observation{}))
			wantSame(rt, want, got, err)
		}))
	}
	t.Run("snapshot", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.snapshot()
		got, err := dec.Snapshot(wire(rt, enc.Snapshot(want), &mihv1.Snapshot{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("link_status", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.linkStatus()
		got, err := dec.LinkStatus(wire(rt, enc.LinkStatus(&want), &mihv1.LinkStatus{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("lci", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.lci()
		got, err := dec.LCI(wire(rt, enc.LCI(&want), &mihv1.Lci{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("information", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.information()
		got, err := dec.Information(wire(rt, enc.Information(want), &mihv1.GetInformationResponse{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("explanation", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.explanation()
		got, err := dec.Explanation(wire(rt, enc.Explanation(want), &mihv1.ExplainResponse{}))
		wantSame(rt, want, got, err)
	}))
}

func TestRoundTripRequests(t *testing.T) {
	t.Run("flow_spec", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.flowSpec()
		got, err := DecodeFlowSpec(wire(rt, EncodeFlowSpec(&want), &mihv1.FlowSpec{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("flow_update", rapid.MakeCheck(func(rt *rapid.T) {
		g := gen{rt}
		want := mihf.FlowUpdate{Flow: g.flowID(), RTT: opt(g, g.span), LocalDrain: opt(g, g.span), Lead: opt(g, g.span), Tuples: slice(g, g.endpoints), Link: opt(g, g.link)}
		got, err := DecodeFlowUpdate(wire(rt, EncodeFlowUpdate(&want), &mihv1.FlowUpdate{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("information_request", rapid.MakeCheck(func(rt *rapid.T) {
		want := gen{rt}.informationRequest()
		got, err := DecodeInformationRequest(wire(rt, EncodeInformationRequest(&want), &mihv1.GetInformationRequest{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("registration", rapid.MakeCheck(func(rt *rapid.T) {
		g := gen{rt}
		want := mihf.Registration{Flow: g.flowID(), Boot: g.boot(), Link: g.link(), Lead: g.span(), Lease: g.span(), Hints: mihf.AllHints, Frozen: g.bool()}
		got, err := DecodeRegistration(wire(rt, EncodeRegistration(&want), &mihv1.Registration{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("ack", rapid.MakeCheck(func(rt *rapid.T) {
		g := gen{rt}
		want := mihf.Ack{Flow: g.flowID(), Epoch: g.u64(), Result: mihf.AckResult(g.n(2)), Held: g.span()}
		got, err := DecodeAck(wire(rt, EncodeAck(&want), &mihv1.Ack{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("subscribe", rapid.MakeCheck(func(rt *rapid.T) {
		g := gen{rt}
		want := mihf.SubscribeRequest{After: g.u64(), Boot: 1 + g.boot()/2, Kinds: mihf.KindSet(g.u32()) & (1<<mihf.NumKinds - 2), Hints: g.bool(), Present: g.bool(), HintsOnly: g.bool()}
		got, err := DecodeSubscribe(wire(rt, EncodeSubscribe(&want), &mihv1.SubscribeRequest{}))
		wantSame(rt, want, got, err)
	}))
	t.Run("thresholds", rapid.MakeCheck(func(rt *rapid.T) {
		g := gen{rt}
		want := []mihf.ThresholdConfig{{
			Parameter: mihf.ParamRSSI, Action: mihf.ThresholdAction(g.n(2)), Hysteresis: g.float(0, 9), Period: mihf.MinReportPeriod + g.span()/2,
			Threshold: opt(g, func() mihf.Threshold {
				return mihf.Threshold{Value: g.float(-100, -20), Direction: mihf.ThresholdDirection(g.n(1))}
			}),
		}}
		got, err := DecodeThresholds(wire(rt, &mihv1.ConfigureThresholdsRequest{Items: EncodeThresholds(want)}, &mihv1.ConfigureThresholdsRequest{}).GetItems())
		wantSame(rt, want, got, err)
	}))
	t.Run("status", func(t *testing.T) {
		want := mihf.Status{
			Version: "1", Node: "n", Boot: 7, Uptime: time.Hour, Sequence: 9, Subscribers: 1, Flows: 2, Links: 3, Predictor: "p",
			Sensors:  []mihf.SensorCondition{{Sensor: "rtnl", Condition: mihf.ConditionOK}},
			Fronts:   []mihf.SensorCondition{{Sensor: "nats", Condition: mihf.ConditionDegraded, Text: "away"}},
			Counters: []mihf.CounterValue{{Name: "mihf_broker_events_total", Value: 5}},
		}
		got, err := DecodeStatus(wire(t, EncodeStatus(&want), &mihv1.StatusResponse{}))
		wantSame(t, want, got, err)
	})
	gap := mihf.Gap{From: 1, To: 9, Reason: "slow"}
	wantSame(t, gap, DecodeGap(EncodeGap(&gap)), nil)
}

// A message carries durations: a receiver with another clock counts back from its own
// arrival, less the time that the message was held.
func TestDecoderCountsFromArrival(t *testing.T) {
	ev := mihf.Event{Sequence: 1, Boot: 1, Kind: mihf.LinkGoingDown, At: now.Add(-time.Second), Prediction: mihf.Prediction{
		ID: mihf.PredictionID{Boot: 1, N: 1}, OpenedAt: now.Add(-time.Second), P50: 3 * time.Second, ExpiresAt: now.Add(9 * time.Second),
	}}
	p := Encoder{Now: now}.Event(&ev)
	if got := p.GetLinkGoingDown().GetTimeToLossP50().AsDuration(); got != 2*time.Second {
		t.Errorf("time to loss on the wire %v, want 2s: it counts from the encoding", got)
	}
	const there = mihf.Time(500 * time.Hour)
	got, err := Decoder{Now: there, Held: 200 * time.Millisecond}.Event(p)
	if err != nil {
		t.Fatal(err)
	}
	if want := there.Add(-1200 * time.Millisecond); got.At != want {
		t.Errorf("event at %v, want %v", got.At, want)
	}
	if want := there.Add(8800 * time.Millisecond); got.Prediction.ExpiresAt != want {
		t.Errorf("expires at %v, want %v", got.Prediction.ExpiresAt, want)
	}
	if got.Prediction.P50 != 3*time.Second {
		t.Errorf("p50 %v from the event, want 3s", got.Prediction.P50)
	}
}

func TestHeldOutOfRangeIsNothing(t *testing.T) {
	for _, d := range []*durationpb.Duration{nil, {Seconds: -1}, {Seconds: 1, Nanos: -5}, {Seconds: math.MinInt64}} {
		if got := Held(d); got != 0 {
			t.Errorf("Held(%v) = %v, want 0", d, got)
		}
	}
	if got := Held(durationpb.New(time.Second)); got != time.Second {
		t.Errorf("Held = %v", got)
	}
}

// "Kinds, parameters and reasons in an answer that a newer broker added are passed over or
// unknown; the rest of the message is read": in a request they are mistakes.
func TestNewerBroker(t *testing.T) {
	s, err := Decoder{Now: now}.Snapshot(&mihv1.Snapshot{
		Sequence: 7, Kinds: []mihv1.EventKind{mihv1.EventKind_EVENT_KIND_LINK_UP, 99},
		Links: []*mihv1.LinkStatus{{Link: "wifi-00000001", Values: []*mihv1.Value{{Parameter: 99, Value: 5}, {Parameter: mihv1.Parameter_PARAMETER_RSSI_DBM, Value: -60}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := s.Links[0].Values.Get(mihf.ParamRSSI); s.Sequence != 7 || s.Kinds != mihf.Kinds(mihf.LinkUp) || !ok || v != -60 || s.Links[0].Values.Len() != 1 {
		t.Errorf("%+v", s)
	}
	ev, err := Decoder{Now: now}.Event(&mihv1.Event{Sequence: 8, Kind: &mihv1.Event_LinkDown{LinkDown: &mihv1.LinkDown{Reason: 99, Poa: "x"}}})
	if err != nil || ev.Down.Reason != mihf.DownUnknown || ev.Down.PoA != "x" {
		t.Errorf("%+v, %v", ev.Down, err)
	}
	if _, err := DecodeSubscribe(&mihv1.SubscribeRequest{Kinds: []mihv1.EventKind{99}}); !errors.Is(err, mihf.ErrInvalid) {
		t.Errorf("subscribed to kind 99: %v", err)
	}
	if _, err := DecodeThresholds([]*mihv1.ThresholdConfig{{Parameter: 99}}); !errors.Is(err, mihf.ErrInvalid) {
		t.Errorf("threshold of parameter 99: %v", err)
	}
}

// What is no probability does not pass, and an address that was added has no old one.
func TestRefusedAndAbsent(t *testing.T) {
	for _, p := range []float32{-0.1, 1.1, float32(math.NaN())} {
		loss := make([]float32, len(mihf.Horizons))
		loss[3] = p
		_, err := Decoder{Now: now}.LinkStatus(&mihv1.LinkStatus{Link: "wifi-00000001", Forecast: &mihv1.Forecast{Loss: loss}})
		if !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("incidence %v: %v", p, err)
		}
	}
	if _, err := DecodeFlowSpec(&mihv1.FlowSpec{Link: "wifi-00000001", Tuples: make([]*mihv1.Endpoints, mihf.MaxTuples+1)}); !errors.Is(err, mihf.ErrInvalid) {
		t.Errorf("too many tuples: %v", err)
	}
	p := Encoder{Now: now}.Event(&mihf.Event{Kind: mihf.AddressChanged, Address: &mihf.AddressChange{New: mihf.Address{Prefix: netip.MustParsePrefix("192.0.2.1/24")}}})
	if c := p.GetAddressChanged(); c.GetOld() != nil || c.GetNew().GetPrefix() != "192.0.2.1/24" {
		t.Errorf("%v", c)
	}
}

// Octets that are not UTF-8 in any string end no stream.
func TestInvalidUTF8Passes(t *testing.T) {
	bad := "\xff\xfe"
	ev := mihf.Event{
		Kind: mihf.LinkUp, Link: mihf.LinkID(bad), Boot: 1, At: now,
		Up: &mihf.Up{PoA: mihf.PoA(bad), SSID: []byte(bad), Facts: &mihf.LinkFacts{Name: bad, Namespace: bad, Kind: bad, HardwareAddr: bad}},
	}
	got, err := Decoder{Now: now}.Event(wire(t, Encoder{Now: now, Node: mihf.NodeID(bad)}.Event(&ev), &mihv1.Event{}))
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Up.SSID) != bad || got.Up.Facts.Name != bad {
		t.Errorf("SSID %q and name %q must pass as they are", got.Up.SSID, got.Up.Facts.Name)
	}
	if got.Up.PoA != `\xff\xfe` || got.Up.Facts.Kind != `\xff\xfe` {
		t.Errorf("PoA %q, kind %q: want them escaped", got.Up.PoA, got.Up.Facts.Kind)
	}
}

// What is not finite is absent, and the event goes out all the same.
func TestNotFiniteIsAbsent(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	ev := mihf.Event{Kind: mihf.LinkGoingDown, Boot: 1, Prediction: mihf.Prediction{
		ID: mihf.PredictionID{Boot: 1, N: 1}, Confidence: nan, Trend: mihf.Trend{Level: inf, Slope: nan, Floor: -inf, Noise: nan},
	}}
	p := Encoder{Now: now}.Event(&ev)
	g := p.GetLinkGoingDown()
	if r := g.Reason; g.Confidence != nil || r.Level != nil || r.SlopePerSecond != nil || r.Floor != nil || r.Noise != nil {
		t.Errorf("%v: want every number absent", g)
	}
	lci := Encoder{Now: now}.LCI(&mihf.LCI{
		RTTSeconds: mihf.Characteristic{Value: nan, Source: mihf.SourceMeasured}, CapacityUpBPS: mihf.Characteristic{Value: inf, Source: mihf.SourcePHY},
		LossRatio: mihf.Characteristic{Value: 0.5, Source: mihf.SourceMeasured, Confidence: nan},
	})
	if lci.Rtt != nil || lci.CapacityUpBps != nil || lci.LossRatio.GetConfidence() != 0 {
		t.Errorf("%v: want them absent", lci)
	}
	report := mihf.Event{Kind: mihf.LinkParametersReport, Report: mihf.Report{Value: nan}}
	if q := (Encoder{Now: now}).Event(&report).GetLinkParametersReport(); q.Value != nil {
		t.Errorf("report %v: want no value", q)
	}
}

func TestBadRequestsNameTheField(t *testing.T) {
	dur := func(d time.Duration) *durationpb.Duration { return durationpb.New(d) }
	tuples := make([]*mihv1.Endpoints, mihf.MaxTuples+1)
	for i := range tuples {
		tuples[i] = &mihv1.Endpoints{}
	}
	spec := func(p *mihv1.FlowSpec) error { _, err := DecodeFlowSpec(p); return err }
	update := func(p *mihv1.FlowUpdate) error { _, err := DecodeFlowUpdate(p); return err }
	ack := func(p *mihv1.Ack) error { _, err := DecodeAck(p); return err }
	subscribe := func(p *mihv1.SubscribeRequest) error { _, err := DecodeSubscribe(p); return err }
	threshold := func(p *mihv1.ThresholdConfig) error {
		_, err := DecodeThresholds([]*mihv1.ThresholdConfig{p})
		return err
	}
	local := "192.0.2.1"
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"negative rtt", spec(&mihv1.FlowSpec{Rtt: dur(-1)}), "register.rtt: -1ns is outside"},
		{"huge lead", spec(&mihv1.FlowSpec{Lead: dur(25 * time.Hour)}), "register.lead: 25h0m0s is outside"},
		{"duration out of range", spec(&mihv1.FlowSpec{MaxFreeze: &durationpb.Duration{Seconds: math.MaxInt64}}), "register.max_freeze"},
		{"mixed signs", spec(&mihv1.FlowSpec{MaxFreeze: &durationpb.Duration{Seconds: 1, Nanos: -1}}), "register.max_freeze"},
		{"too many tuples", spec(&mihv1.FlowSpec{Tuples: tuples}), "register.tuples: 17 items, at most 16"},
		{"no port", spec(&mihv1.FlowSpec{Tuples: []*mihv1.Endpoints{{Local: &local}}}), `register.tuples[0].local: "192.0.2.1" is not`},
		{"protocol", spec(&mihv1.FlowSpec{Tuples: []*mihv1.Endpoints{{Protocol: 256}}}), "register.tuples[0].protocol: 256"},
		{"flow id", spec(&mihv1.FlowSpec{Flow: "a b"}), "register.flow"},
		{"long flow id", spec(&mihv1.FlowSpec{Flow: strings.Repeat("a", 65)}), "register.flow: 65 octets, at most 64"},
		{"link id", spec(&mihv1.FlowSpec{Link: "wlan0"}), `register.link: "wlan0" is not a link id`},
		{"continuity", spec(&mihv1.FlowSpec{Continuity: 99}), "register.continuity: 99"},
		{"hints", spec(&mihv1.FlowSpec{Hints: []mihv1.HintKind{0}}), "register.hints: 0"},
		{"update without a flow", update(&mihv1.FlowUpdate{}), "update.flow: is absent"},
		{"update rtt", update(&mihv1.FlowUpdate{Flow: "F", Rtt: dur(-1)}), "update.rtt"},
		{"ack result", ack(&mihv1.Ack{Flow: "F"}), "ack.result: 0"},
		{"boot id", subscribe(&mihv1.SubscribeRequest{BootId: "x"}), "boot_id"},
		{"event kind", subscribe(&mihv1.SubscribeRequest{Kinds: []mihv1.EventKind{77}}), "kinds: 77"},
		{"links", subscribe(&mihv1.SubscribeRequest{Links: []string{"eth0"}}), "links"},
		{"NaN threshold", threshold(&mihv1.ThresholdConfig{Parameter: 1, Threshold: &mihv1.Threshold{Value: math.NaN(), Direction: 1}}), "items[0].threshold.value: NaN is not a finite"},
		{"threshold out of range", threshold(&mihv1.ThresholdConfig{Parameter: 1, Threshold: &mihv1.Threshold{Value: 5, Direction: 1}}), "rssi_dbm 5 is outside"},
		{"no direction", threshold(&mihv1.ThresholdConfig{Parameter: 1, Threshold: &mihv1.Threshold{Value: -60}}), "threshold.direction: 0"},
		{"no parameter", threshold(&mihv1.ThresholdConfig{}), "items[0].parameter: 0"},
		{"infinite hysteresis", threshold(&mihv1.ThresholdConfig{Parameter: 1, Hysteresis: math.Inf(1)}), "items[0].hysteresis"},
		{"negative hysteresis", threshold(&mihv1.ThresholdConfig{Parameter: 1, Hysteresis: -1}), "items[0].hysteresis: -1"},
		{"short period", threshold(&mihv1.ThresholdConfig{Parameter: 1, Period: dur(1)}), "items[0].period: 1ns is shorter"},
	} {
		if !errors.Is(tc.err, mihf.ErrInvalid) || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v, want an invalid request with %q", tc.name, tc.err, tc.want)
		}
	}
}

// An event of a newer version is refused, but its place in the order is known.
func TestUnknownKindKeepsSequence(t *testing.T) {
	got, err := Decoder{Now: now}.Event(&mihv1.Event{Sequence: 5, BootId: "00000001"})
	if !errors.Is(err, mihf.ErrInvalid) || got.Sequence != 5 {
		t.Errorf("sequence %d, %v", got.Sequence, err)
	}
}

func TestPortWithoutAddress(t *testing.T) {
	want := mihf.FlowSpec{ID: "F", Tuples: []mihf.Endpoints{{Protocol: 6, Local: netip.AddrPortFrom(netip.Addr{}, 443)}}}
	got, err := DecodeFlowSpec(EncodeFlowSpec(&want))
	wantSame(t, want, got, err)
}

func TestReasonText(t *testing.T) {
	trend := mihf.Trend{Parameter: mihf.ParamRSSI, Level: -82.31, Slope: -2.4, Floor: -87, Samples: 20}
	for _, tc := range []struct {
		p    mihf.Prediction
		want string
	}{
		{mihf.Prediction{P50: 1900 * time.Millisecond, Trend: trend}, "rssi -82.3 dBm, falling 2.4 dB/s, expected below -87 dBm in 1.9 s"},
		{mihf.Prediction{P50: time.Second, Cause: mihf.CauseHandover, Trend: trend}, "rssi -82.3 dBm, falling 2.4 dB/s, a handover expected in 1 s"},
		{mihf.Prediction{P50: time.Second, Trend: mihf.Trend{Parameter: mihf.ParamSilence, Level: 0.2, Slope: 1, Floor: 2}}, "silence 0.2 s, rising 1 s/s, expected above 2 s in 1 s"},
		{mihf.Prediction{P50: time.Second, Trend: mihf.Trend{Parameter: mihf.ParamRSSI, Level: -88, Slope: -2, Floor: -87}}, "rssi -88 dBm, falling 2 dB/s, already below -87 dBm, a loss expected in 1 s"},
		{mihf.Prediction{P50: time.Second, Trend: mihf.Trend{Parameter: mihf.ParamRTT, Level: 0.1, Slope: 0.2, Floor: 0.5}}, "rtt 0.1 s, rising 0.2 s/s, expected above 0.5 s in 1 s"},
		{mihf.Prediction{P50: time.Second, Trend: mihf.Trend{Parameter: mihf.ParamTxFailRatio, Level: 0.25, Floor: 0.1}}, "tx fail ratio 0.2, steady, expected below 0.1 in 1 s"},
		{mihf.Prediction{P50: 2 * time.Second}, "a loss expected in 2 s"},
		{mihf.Prediction{P50: 2 * time.Second, Trend: mihf.Trend{Level: math.NaN()}}, "a loss expected in 2 s"},
	} {
		if got := ReasonText(&tc.p); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
