package recording_test

import (
	"math"
	"net/netip"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// octets draws names of arbitrary octets, among them what a terminal would obey.
func octets() *rapid.Generator[string] {
	return rapid.Custom(func(rt *rapid.T) string {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(rt, "octets"))
	})
}

// ssids draws none, the empty one, and others.
func ssids() *rapid.Generator[[]byte] {
	return rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 32))
}

func addrs() *rapid.Generator[netip.Addr] {
	return rapid.SampledFrom([]netip.Addr{
		{}, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("fe80::1%wlan0"),
	})
}

func moments() *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(0, int64(20*24*time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
}

func values() *rapid.Generator[mihf.Values] {
	return rapid.Custom(func(rt *rapid.T) (vs mihf.Values) {
		for range rapid.IntRange(0, 4).Draw(rt, "n") {
			vs.Set(mihf.Parameter(rapid.IntRange(0, mihf.NumParameters-1).Draw(rt, "parameter")), rapid.Float64Range(-120, 1e6).Draw(rt, "value"))
		}
		return vs
	})
}

// observations draws any kind, with its payload.
func observations() *rapid.Generator[mihf.Observation] {
	return rapid.Custom(func(rt *rapid.T) mihf.Observation {
		o := mihf.Observation{
			At:     recording.Base.Add(moments().Draw(rt, "at")),
			Age:    moments().Draw(rt, "age"),
			Sensor: octets().Draw(rt, "sensor"),
			Link:   mihf.LinkID(octets().Draw(rt, "link")),
			Kind:   mihf.ObservationKind(rapid.IntRange(int(mihf.ObsLink), int(mihf.ObsTruth)).Draw(rt, "kind")),
		}
		small := func(label string, n int) uint8 { return uint8(rapid.IntRange(0, n).Draw(rt, label)) }
		flag := func(label string) bool { return rapid.Bool().Draw(rt, label) }
		poa := func() mihf.PoA { return mihf.PoA(octets().Draw(rt, "poa")) }
		switch o.Kind {
		case mihf.ObsLink:
			o.Facts = facts(rt)
		case mihf.ObsLinkGone:
			o.Gone = mihf.DownReason(small("reason", int(mihf.DownUnknown)))
		case mihf.ObsRadio:
			o.Values, o.PoA = values().Draw(rt, "values"), poa()
		case mihf.ObsAssociation:
			o.Association = &mihf.Association{
				State: mihf.AssociationState(small("state", int(mihf.AssociationAuthorised))), PoA: poa(),
				SSID: ssids().Draw(rt, "ssid"), Cause: mihf.DownReason(small("cause", int(mihf.DownUnknown))),
				Code: rapid.Uint32().Draw(rt, "code"), Local: flag("local"), Technology: rapid.SampledFrom([]string{"", "lte", "lte+5gnr"}).Draw(rt, "technology"),
			}
		case mihf.ObsDetected:
			o.Detected = &mihf.Detected{PoA: poa(), SSID: ssids().Draw(rt, "ssid"), Values: values().Draw(rt, "values")}
		case mihf.ObsScan:
			o.Scanning = flag("scanning")
		case mihf.ObsHandover:
			o.PoA = poa()
		case mihf.ObsEgress:
			o.Egress = &mihf.Egress{
				IPv6: flag("v6"), Link: mihf.LinkID(octets().Draw(rt, "egress")), Gateway: addrs().Draw(rt, "gateway"),
				Source: addrs().Draw(rt, "source"), Table: rapid.Uint32().Draw(rt, "table"), Metric: rapid.Uint32().Draw(rt, "metric"),
			}
		case mihf.ObsPeer:
			o.Peer = &mihf.PeerRoute{
				Peer: netip.MustParseAddr("198.51.100.7"), Link: mihf.LinkID(octets().Draw(rt, "via")),
				Source: addrs().Draw(rt, "source"), Gateway: addrs().Draw(rt, "gateway"),
			}
		case mihf.ObsFlow:
			o.Flow = flowReading(rt)
		case mihf.ObsCondition:
			o.Condition = &mihf.SensorCondition{
				Sensor: octets().Draw(rt, "of"), Condition: mihf.Condition(small("condition", int(mihf.ConditionStopped))), Text: octets().Draw(rt, "text"),
			}
		case mihf.ObsResync:
			o.Lost = flag("lost")
		case mihf.ObsResume:
			o.Gap = moments().Draw(rt, "gap")
		case mihf.ObsTruth:
			o.Truth = &mihf.Truth{Kind: octets().Draw(rt, "truth")}
			if flag("until") {
				o.Truth.Until = o.At.Add(moments().Draw(rt, "end") / 10)
			}
		}
		return o
	})
}

func flowReading(rt *rapid.T) *mihf.FlowReading {
	time := func(label string) (o mihf.Opt[time.Duration]) {
		if rapid.Bool().Draw(rt, label+"?") {
			o = mihf.Some(time.Duration(rapid.Int64Range(0, int64(mihf.MaxFlowRTT)).Draw(rt, label)))
		}
		return o
	}
	count := func(label string) (o mihf.Opt[uint64]) {
		if rapid.Bool().Draw(rt, label+"?") {
			o = mihf.Some(rapid.Uint64().Draw(rt, label))
		}
		return o
	}
	f := &mihf.FlowReading{
		Endpoints: mihf.Endpoints{
			Protocol: 6, Local: netip.MustParseAddrPort("192.0.2.7:40000"),
			Remote: rapid.SampledFrom([]netip.AddrPort{netip.MustParseAddrPort("198.51.100.7:443"), netip.MustParseAddrPort("[2001:db8::7]:443")}).Draw(rt, "remote"),
		},
		RTT: time("rtt"), RTTVar: time("rtt var"), MinRTT: time("min rtt"), ReceiveRTT: time("receive rtt"),
		CwndBytes: count("cwnd"), FlightBytes: count("flight"), AppLimited: rapid.Bool().Draw(rt, "app limited"), PathMTUBytes: count("mtu"),
		AckedBytes: count("acked"), ReceivedBytes: count("received"), SentSegments: count("segments"), RetransSegments: count("again"), DeliveredSegments: count("delivered"),
		Busy: time("busy"), WindowLimited: time("window"), BufferLimited: time("buffer"),
	}
	if rapid.Bool().Draw(rt, "rate?") {
		f.DeliveryRateBPS = mihf.Some(rapid.Float64Range(0, mihf.MaxFlowRate).Draw(rt, "rate"))
	}
	return f
}

func facts(rt *rapid.T) *mihf.LinkFacts {
	flag := func(label string) bool { return rapid.Bool().Draw(rt, label) }
	f := &mihf.LinkFacts{
		Name: octets().Draw(rt, "name"), Index: rapid.IntRange(0, math.MaxInt32).Draw(rt, "index"), Namespace: octets().Draw(rt, "namespace"),
		Kind: octets().Draw(rt, "link kind"), HardwareAddr: octets().Draw(rt, "address"), MTUBytes: rapid.IntRange(0, 65536).Draw(rt, "mtu"),
		AdminUp: flag("up"), Carrier: flag("carrier"), Oper: mihf.OperState(rapid.IntRange(0, int(mihf.OperUp)).Draw(rt, "oper")),
	}
	for range rapid.IntRange(0, 2).Draw(rt, "addresses") {
		f.Addresses = append(f.Addresses, mihf.Address{
			Prefix:    rapid.SampledFrom([]netip.Prefix{netip.MustParsePrefix("192.0.2.7/24"), netip.MustParsePrefix("2001:db8::7/64")}).Draw(rt, "prefix"),
			Tentative: flag("tentative"), Deprecated: flag("deprecated"), Temporary: flag("temporary"), LinkLocal: flag("link local"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(rt, "routes") {
		f.Defaults = append(f.Defaults, mihf.Route{
			IPv6: flag("v6"), Gateway: addrs().Draw(rt, "gateway"), Source: addrs().Draw(rt, "source"),
			Table: rapid.Uint32().Draw(rt, "table"), Metric: rapid.Uint32().Draw(rt, "metric"),
		})
	}
	return f
}
