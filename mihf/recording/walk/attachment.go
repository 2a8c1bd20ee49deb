package walk

import (
	"net/netip"

	"mihf.dev/mihf"
)

// attachment makes everything but the readings: what nl80211 and rtnetlink report, and
// the truth.
func attachment() []mihf.Observation {
	var l script
	l.facts(0, facts(true, true, false))
	l.associate(0, mihf.AssociationAuthorised, AP1)
	l.egress(0, false, true)
	l.egress(0, true, true)

	l.add(LastFrame, mihf.Observation{Kind: mihf.ObsTruth, Link: Link, Truth: &mihf.Truth{Kind: "loss", Until: at(Usable)}})
	l.add(Disconnect, mihf.Observation{Kind: mihf.ObsAssociation, Sensor: "nl80211", Link: Link, Association: &mihf.Association{
		State: mihf.AssociationDisconnected, PoA: AP1, SSID: []byte(SSID), Cause: mihf.DownBeaconLoss, Code: 4, // inactivity
	}})
	l.facts(Disconnect+0.01, facts(false, false, false))
	l.egress(Disconnect+0.02, false, false)
	l.egress(Disconnect+0.02, true, false)

	l.scan(Disconnect+0.1, true)
	l.detected(Disconnect+0.6, AP2, -62)
	l.scan(Disconnect+0.7, false)
	l.associate(Associated-0.2, mihf.AssociationAuthenticating, AP2)
	l.associate(Associated-0.1, mihf.AssociationAssociated, AP2)
	l.associate(Associated, mihf.AssociationAuthorised, AP2)
	l.facts(Associated+0.01, facts(true, false, true))
	l.facts(Usable, facts(true, true, true))
	l.egress(Usable, false, true)
	l.facts(Usable+0.4, facts(true, true, false))
	l.egress(Usable+0.4, true, true)
	return l
}

type script []mihf.Observation

func (l *script) add(s float64, o mihf.Observation) {
	o.At = at(s)
	*l = append(*l, o)
}

func (l *script) facts(s float64, f *mihf.LinkFacts) {
	l.add(s, mihf.Observation{Kind: mihf.ObsLink, Sensor: "rtnl", Link: Link, Facts: f})
}

func (l *script) associate(s float64, state mihf.AssociationState, poa mihf.PoA) {
	l.add(s, mihf.Observation{Kind: mihf.ObsAssociation, Sensor: "nl80211", Link: Link, Association: &mihf.Association{
		State: state, PoA: poa, SSID: []byte(SSID),
	}})
}

func (l *script) scan(s float64, on bool) {
	l.add(s, mihf.Observation{Kind: mihf.ObsScan, Sensor: "nl80211", Link: Link, Scanning: on})
}

func (l *script) detected(s float64, poa mihf.PoA, dbm float64) {
	d := &mihf.Detected{PoA: poa, SSID: []byte(SSID)}
	d.Values.Set(mihf.ParamRSSI, dbm)
	l.add(s, mihf.Observation{Kind: mihf.ObsDetected, Sensor: "nl80211", Link: Link, Detected: d})
}

// egress is the kernel's choice in a family: this link, or none.
func (l *script) egress(s float64, ipv6, through bool) {
	e := &mihf.Egress{IPv6: ipv6}
	if through {
		e.Link, e.Gateway, e.Source, e.Table, e.Metric = Link, gateway4, IPv4.Addr(), 254, 600
		if ipv6 {
			e.Gateway, e.Source = gateway6, IPv6.Addr()
		}
	}
	l.add(s, mihf.Observation{Kind: mihf.ObsEgress, Sensor: "rtnl", Egress: e})
}

// facts is the link as the kernel has it: with carrier or not, with its default routes
// or without, and with its IPv6 addresses checked or still tentative. Addresses are
// kept while it is down.
func facts(carrier, routes, tentative bool) *mihf.LinkFacts {
	f := &mihf.LinkFacts{
		Name: Name, Index: 3, HardwareAddr: hardware, MTUBytes: 1500, AdminUp: true, Carrier: carrier, Oper: mihf.OperUp,
		Addresses: []mihf.Address{
			{Prefix: IPv4},
			{Prefix: IPv6, Tentative: tentative},
			{Prefix: netip.MustParsePrefix("fe80::ff:fe00:7/64"), Tentative: tentative, LinkLocal: true},
		},
	}
	if !carrier {
		f.Oper = mihf.OperDown
	}
	if routes {
		f.Defaults = []mihf.Route{
			{Gateway: gateway4, Source: IPv4.Addr(), Table: 254, Metric: 600},
			{IPv6: true, Gateway: gateway6, Table: 254, Metric: 600},
		}
	}
	return f
}
