package conv

import (
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// same compares values of the vocabulary with all their unexported fields.
var same = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

const now = mihf.Time(time.Hour)

// gen draws values for one property check.
type gen struct{ *rapid.T }

func (g gen) bool() bool   { return rapid.Bool().Draw(g.T, "bool") }
func (g gen) n(hi int) int { return rapid.IntRange(0, hi).Draw(g.T, "n") }
func (g gen) text() string {
	return strings.ToValidUTF8(rapid.StringN(0, 8, 20).Draw(g.T, "text"), "")
}
func (g gen) octets() []byte { return rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(g.T, "octets") }
func (g gen) float(lo, hi float64) float64 {
	return rapid.Float64Range(lo, hi).Draw(g.T, "float")
}
func (g gen) u64() uint64 { return rapid.Uint64().Draw(g.T, "u64") }
func (g gen) u32() uint32 { return rapid.Uint32().Draw(g.T, "u32") }

// span is a length of time, often 0.
func (g gen) span() time.Duration {
	if g.bool() {
		return 0
	}
	return time.Duration(rapid.Int64Range(1, int64(maxSpan)).Draw(g.T, "span"))
}

// when is a moment around now; sometimes none.
func (g gen) when() mihf.Time {
	if g.n(4) == 0 {
		return 0
	}
	return mihf.Time(rapid.Int64Range(1, int64(48*time.Hour)).Draw(g.T, "when"))
}

func (g gen) ssid() []byte {
	if g.bool() {
		return nil
	}
	return g.octets()
}

func (g gen) link() mihf.LinkID {
	if g.n(3) == 0 {
		return ""
	}
	return mihf.NewLinkID(mihf.LinkType(g.n(5)), g.text())
}

func (g gen) poa() mihf.PoA { return mihf.PoA(g.text()) }
func (g gen) flowID() mihf.FlowID {
	return mihf.FlowID(rapid.StringMatching(`[0-9A-Z]{1,26}`).Draw(g.T, "flow"))
}
func (g gen) boot() mihf.BootID     { return mihf.BootID(g.u32()) }
func (g gen) param() mihf.Parameter { return mihf.Parameter(g.n(mihf.NumParameters - 1)) }

func (g gen) predictionID() mihf.PredictionID {
	return mihf.PredictionID{Boot: g.boot(), N: g.u64()}
}

func (g gen) addr() netip.Addr {
	switch g.n(3) {
	case 0:
		return netip.Addr{}
	case 1:
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(g.n(255))})
	case 2:
		return netip.MustParseAddr("fe80::1").WithZone("eth0")
	default:
		return netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 15: byte(g.n(255))})
	}
}

func (g gen) addrPort() netip.AddrPort {
	return netip.AddrPortFrom(g.addr(), uint16(g.n(65535)))
}

func (g gen) address() mihf.Address {
	a := mihf.Address{Tentative: g.bool(), Deprecated: g.bool(), Temporary: g.bool(), LinkLocal: g.bool()}
	if ip := g.addr().WithZone(""); ip.IsValid() {
		a.Prefix = netip.PrefixFrom(ip, g.n(ip.BitLen()))
	}
	return a
}

func (g gen) values() (vs mihf.Values) {
	for range g.n(4) {
		// Every parameter but RTT (which is never 0) can have a value between these.
		vs.Set(g.param(), rapid.SampledFrom([]float64{0, 0.5, 1, 17, -23, -60, -101}).Draw(g.T, "value"))
	}
	return vs
}

func slice[T any](g gen, f func() T) []T {
	var out []T
	for range g.n(2) {
		out = append(out, f())
	}
	return out
}

func maybe[T any](g gen, f func() T) *T {
	if g.bool() {
		return nil
	}
	v := f()
	return &v
}

func opt[T any](g gen, f func() T) mihf.Opt[T] {
	if g.bool() {
		return mihf.Opt[T]{}
	}
	return mihf.Some(f())
}

func (g gen) facts() mihf.LinkFacts {
	return mihf.LinkFacts{
		Name: string(g.octets()), Index: g.n(1 << 20), Namespace: g.text(), Kind: g.text(), HardwareAddr: g.text(), MTUBytes: g.n(65536),
		AdminUp: g.bool(), Carrier: g.bool(), Oper: mihf.OperState(g.n(6)), Addresses: slice(g, g.address),
		Defaults: slice(g, func() mihf.Route {
			return mihf.Route{IPv6: g.bool(), Gateway: g.addr(), Source: g.addr(), Table: g.u32(), Metric: g.u32()}
		}),
	}
}

func (g gen) characteristic() mihf.Characteristic {
	if g.bool() {
		return mihf.Characteristic{}
	}
	ns := rapid.Int64Range(0, int64(time.Minute)).Draw(g.T, "ns")
	return mihf.Characteristic{Value: float64(ns) / 1e9, Source: mihf.Source(1 + g.n(4)), At: g.when(), Confidence: g.float(0, 1)}
}

func (g gen) lci() mihf.LCI {
	c := g.characteristic
	return mihf.LCI{
		Link: g.link(), PoA: g.poa(), CapacityDownBPS: c(), CapacityUpBPS: c(), RTTSeconds: c(), JitterSeconds: c(),
		LossRatio: c(), MTUBytes: c(), BufferBytes: c(),
	}
}

func (g gen) trend() mihf.Trend {
	if g.bool() {
		return mihf.Trend{}
	}
	return mihf.Trend{
		Parameter: g.param(), Level: g.float(-100, 100), Slope: g.float(-9, 9), Floor: g.float(-100, 100), Noise: g.float(0, 9), Samples: g.n(99),
	}
}

func (g gen) prediction() mihf.Prediction {
	return mihf.Prediction{
		ID: mihf.PredictionID{Boot: g.boot(), N: 1 + g.u64()/2}, Revision: g.u32(), Cause: mihf.Cause(g.n(1)), OpenedAt: g.when(), RevisedAt: g.when(),
		P10: g.span(), P50: g.span(), P90: g.span(), Confidence: g.float(0, 1), Trend: g.trend(), ExpiresAt: g.when(),
		Outcome: mihf.Outcome(g.n(4)),
	}
}

func (g gen) egress() mihf.Egress {
	return mihf.Egress{IPv6: g.bool(), Link: g.link(), Gateway: g.addr(), Source: g.addr(), Table: g.u32(), Metric: g.u32()}
}

func (g gen) condition() mihf.SensorCondition {
	return mihf.SensorCondition{Sensor: g.text(), Condition: mihf.Condition(g.n(5)), Text: g.text()}
}

func (g gen) reason() mihf.DownReason { return mihf.DownReason(g.n(int(mihf.DownUnknown))) }

func (g gen) detected() mihf.Detected {
	return mihf.Detected{PoA: g.poa(), SSID: g.ssid(), Values: g.values()}
}

// event draws an event of the kind given.
func (g gen) event(k mihf.Kind) mihf.Event {
	ev := mihf.Event{Sequence: g.u64(), Boot: g.boot(), Link: g.link(), At: g.when(), Kind: k}
	ends := func() {
		if g.bool() {
			ev.Prediction = g.prediction()
		}
	}
	switch k {
	case mihf.LinkDetected:
		ev.Detected = new(g.detected())
	case mihf.LinkUp:
		ev.Up = &mihf.Up{PoA: g.poa(), SSID: g.ssid(), Facts: maybe(g, g.facts), LCI: maybe(g, g.lci)}
	case mihf.LinkDown:
		ends()
		ev.Down = mihf.Down{Reason: g.reason(), Code: g.u32(), PoA: g.poa(), Withheld: g.span()}
	case mihf.LinkParametersReport:
		ev.Report = mihf.Report{Parameter: g.param(), Value: g.float(-1e12, 1e12), Previous: opt(g, func() float64 { return g.float(-9, 9) }), Periodic: g.bool()}
		ev.Report.Threshold = opt(g, func() mihf.Threshold {
			return mihf.Threshold{Value: g.float(-99, 99), Direction: mihf.ThresholdDirection(g.n(1))}
		})
	case mihf.LinkGoingDown:
		ev.Prediction = g.prediction()
		ev.Prediction.Outcome, ev.Prediction.RevisedAt = mihf.OutcomeOpen, ev.At
	case mihf.LinkEventRollback, mihf.PredictionExpired:
		ev.Prediction = g.prediction()
	case mihf.LinkHandoverImminent, mihf.LinkHandoverComplete:
		ends()
		ev.Handover = &mihf.Handover{OldLink: g.link(), NewLink: g.link(), OldPoA: g.poa(), NewPoA: g.poa(), NetworkOrdered: g.bool(), DataGap: opt(g, g.span)}
	case mihf.PathUsable, mihf.PathLost:
		ev.Path = &mihf.Path{IPv6: g.bool(), Source: g.addr(), Gateway: g.addr(), Reason: g.reason(), LCI: maybe(g, g.lci)}
	case mihf.DefaultRouteChanged:
		ev.Egress = &mihf.EgressChange{Old: g.egress(), New: g.egress()}
	case mihf.AddressChanged:
		ev.Address = &mihf.AddressChange{Old: g.address(), New: g.address(), Minor: g.bool()}
	case mihf.LinkRenamed:
		ev.Rename = &mihf.Rename{Old: string(g.octets()), New: string(g.octets())}
	case mihf.LinkRemoved:
		ends()
		ev.Removed = g.reason()
	case mihf.SensorConditionChanged:
		ev.Condition = new(g.condition())
	case mihf.ResumedFromSuspend:
		ev.Gap = g.span()
	case mihf.Resync:
		ev.Resync = &mihf.ResyncInfo{Sensor: g.text(), Lost: g.bool(), Reason: g.text()}
	case mihf.ShareReport:
		ev.ShareReport = &mihf.ShareReportPayload{Flow: g.flowID(), LimitBPS: g.float(0, 1e9)}
	}
	return ev
}

// hint draws a hint of the kind given.
func (g gen) hint(k mihf.HintKind) mihf.Hint {
	h := mihf.Hint{Sequence: g.u64(), Boot: g.boot(), Flow: g.flowID(), Link: g.link(), Epoch: g.u64(), Prediction: g.predictionID(), At: g.when(), Kind: k}
	switch k {
	case mihf.HintFreeze:
		h.Freeze = mihf.Freeze{Lease: g.span(), ExpectedOutage: g.span(), Reason: mihf.FreezeReason(g.n(2))}
		if g.bool() {
			h.Freeze.P10, h.Freeze.P50, h.Freeze.P90 = g.span(), g.span(), g.span()
		}
	case mihf.HintUnfreeze:
		h.Unfreeze = mihf.Unfreeze{Cause: mihf.UnfreezeCause(g.n(6)), Recovery: g.bool(), LCI: maybe(g, g.lci)}
	case mihf.HintPrepare:
		h.Prepare = mihf.Prepare{Target: g.link(), Deadline: g.span()}
	case mihf.HintSwitch:
		h.Switch = mihf.Switch{Target: g.link(), LCI: maybe(g, g.lci)}
	case mihf.HintAbandon:
		h.Abandon = mihf.AbandonReason(g.n(2))
	case mihf.HintCharacteristics:
		h.Characteristics = maybe(g, g.lci)
	}
	return h
}

// observation draws an observation of the kind given.
func (g gen) observation(k mihf.ObservationKind) mihf.Observation {
	o := mihf.Observation{At: g.when(), Age: g.span(), Sensor: g.text(), Link: g.link(), Kind: k}
	switch k {
	case mihf.ObsLink:
		o.Facts = new(g.facts())
	case mihf.ObsLinkGone:
		o.Gone = g.reason()
	case mihf.ObsRadio:
		o.Values, o.PoA = g.values(), g.poa()
	case mihf.ObsAssociation:
		o.Association = &mihf.Association{State: mihf.AssociationState(g.n(4)), PoA: g.poa(), SSID: g.ssid(), Cause: g.reason(), Code: g.u32(), Local: g.bool(), Technology: string(g.poa())}
	case mihf.ObsDetected:
		o.Detected = new(g.detected())
	case mihf.ObsScan:
		o.Scanning = g.bool()
	case mihf.ObsHandover:
		o.PoA = g.poa()
	case mihf.ObsEgress:
		o.Egress = new(g.egress())
	case mihf.ObsPeer:
		o.Peer = &mihf.PeerRoute{Peer: g.addr(), Link: g.link(), Source: g.addr(), Gateway: g.addr()}
	case mihf.ObsFlow:
		o.Flow = new(g.flowReading())
	case mihf.ObsCondition:
		o.Condition = new(g.condition())
	case mihf.ObsResync:
		o.Lost = g.bool()
	case mihf.ObsResume:
		o.Gap = g.span()
	case mihf.ObsTruth:
		o.Truth = &mihf.Truth{Kind: g.text(), Until: g.when()}
	}
	return o
}

func (g gen) flowReading() mihf.FlowReading {
	return mihf.FlowReading{
		Endpoints: mihf.Endpoints{
			Protocol: mihf.Protocol(g.n(255)), Local: netip.AddrPortFrom(g.knownAddr(), 1), Remote: netip.AddrPortFrom(g.knownAddr(), 2),
		},
		RTT: opt(g, g.rtt), RTTVar: opt(g, g.rtt), MinRTT: opt(g, g.rtt), ReceiveRTT: opt(g, g.rtt),
		CwndBytes: opt(g, g.u64), FlightBytes: opt(g, g.u64), DeliveryRateBPS: opt(g, func() float64 { return g.float(0, mihf.MaxFlowRate) }),
		AppLimited: g.bool(), PathMTUBytes: opt(g, g.u64), AckedBytes: opt(g, g.u64), ReceivedBytes: opt(g, g.u64),
		SentSegments: opt(g, g.u64), DeliveredSegments: opt(g, g.u64), RetransSegments: opt(g, g.u64), Busy: opt(g, g.span), WindowLimited: opt(g, g.span), BufferLimited: opt(g, g.span),
	}
}

func (g gen) rtt() time.Duration { return min(g.span(), mihf.MaxFlowRTT) }

func (g gen) knownAddr() netip.Addr {
	if a := g.addr(); a.IsValid() {
		return a
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, 1})
}

func (g gen) flowSpec() mihf.FlowSpec {
	return mihf.FlowSpec{
		ID: g.flowID(), Group: string(g.flowID()), Link: g.link(), Continuity: mihf.Continuity(g.n(2)), Direction: mihf.Direction(g.n(2)),
		Tuples: slice(g, g.endpoints), Owner: opt(g, g.u32), RTT: g.span(), LocalDrain: g.span(), Lead: g.span(), CostMiss: g.span(),
		CostNeedless: g.span(), Recovery: g.span(), LateFreeze: g.bool(), MaxFreeze: g.span(), Hints: mihf.HintSet(g.n(127)) & mihf.AllHints,
	}
}

func (g gen) endpoints() mihf.Endpoints {
	return mihf.Endpoints{Protocol: mihf.Protocol(g.n(255)), Local: g.addrPort(), Remote: g.addrPort()}
}

func (g gen) forecast() mihf.Forecast {
	f := mihf.Forecast{At: g.when(), Target: g.poa(), Interval: g.span(), Trend: g.trend()}
	p := g.float(0, 1)
	f.Loss.Set(func(s float64) float64 { return p * s / 10 })
	return f
}

func (g gen) snapshot() *mihf.Snapshot {
	return &mihf.Snapshot{
		Sequence: g.u64(), Boot: g.boot(), Node: mihf.NodeID(g.text()), At: g.when(), Links: slice(g, g.linkStatus),
		Flows: slice(g, func() mihf.FlowStatus {
			return mihf.FlowStatus{
				Spec: g.flowSpec(), Link: g.link(), Lead: g.span(), Frozen: g.bool(), FrozenSince: g.when(), Epoch: g.u64(),
				Acknowledged: g.u64(), LastAck: mihf.AckResult(g.n(2)), Needless: g.span(), BackoffUntil: g.when(),
				RTT: g.span(), RTTSource: mihf.RTTSource(g.n(2)),
			}
		}),
		Sensors: slice(g, g.condition), Egress: slice(g, g.egress),
		Kinds: mihf.KindSet(g.n(1<<mihf.NumKinds-1)) &^ 1,
	}
}

func (g gen) linkStatus() mihf.LinkStatus {
	return mihf.LinkStatus{
		Link: g.link(), Facts: maybe(g, g.facts), Up: g.bool(), Since: g.when(), PoA: g.poa(), SSID: g.ssid(),
		Association: mihf.AssociationState(g.n(4)), Technology: string(g.poa()), UsableIPv4: g.bool(), UsableIPv6: g.bool(), Values: g.values(), ValuesAt: g.when(),
		Prediction: opt(g, g.prediction), Forecast: maybe(g, g.forecast), LCI: maybe(g, g.lci), HoldDown: g.bool(),
	}
}

func (g gen) information() *mihf.Information {
	return &mihf.Information{At: g.when(), Forgotten: g.u64(), PoAs: slice(g, func() mihf.PoAInformation {
		return mihf.PoAInformation{
			PoA: g.poa(), Link: g.link(), SSID: g.ssid(), FirstHeard: g.when(), LastHeard: g.when(), Attached: g.bool(), Attachments: g.u64(),
			LCI: maybe(g, g.lci), Readings: slice(g, func() mihf.Reading {
				return mihf.Reading{Parameter: mihf.ParamRSSI, Value: g.float(-110, -10), At: g.when()}
			}),
		}
	})}
}

func (g gen) informationRequest() mihf.InformationRequest {
	return mihf.InformationRequest{
		Links: slice(g, func() mihf.LinkID { return mihf.NewLinkID(mihf.LinkWiFi, g.text()) }),
		SSIDs: slice(g, g.octets),
		PoAs:  slice(g, func() mihf.PoA { return "02:" + g.poa() }),
	}
}

func (g gen) explanation() *mihf.Explanation {
	return &mihf.Explanation{
		Prediction: g.prediction(), Announced: g.prediction(), Link: g.link(), OutcomeAt: g.when(),
		Samples: slice(g, func() mihf.Sample { return mihf.Sample{At: g.when(), Values: g.values(), PoA: g.poa()} }),
		Forecasts: slice(g, func() mihf.ForecastPoint {
			return mihf.ForecastPoint{At: g.when(), Within: g.span(), PLoss: g.float(0, 1), PHandover: g.float(0, 1), P50: opt(g, g.span)}
		}),
		Decisions: slice(g, func() mihf.Decision { return mihf.Decision{At: g.when(), Flow: g.flowID(), Rule: g.text()} }),
	}
}
