package engine_test

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

func rebinds(id mihf.FlowID) mihf.FlowSpec {
	return mihf.FlowSpec{ID: id, Link: wlan, Continuity: mihf.ContinuityRebinds, Tuples: []mihf.Endpoints{tuple("", "203.0.113.1")}}
}

// A default route that is away for less than RouteHold moves nobody, whatever the kernel
// does meanwhile; one that stays away does.
func TestRouteHold(t *testing.T) {
	for away, want := range map[time.Duration]int{3 * time.Second: 0, 6 * time.Second: 1} {
		h := both(t)
		h.register(rebinds(quick))
		h.drop()
		h.give(wlan, device{addrs: wifi4.addrs}.facts())
		h.give("", egress(wwan))
		h.give("", peer("203.0.113.1", wwan))
		h.advance(away)
		h.give(wlan, wifi4.facts())
		h.give("", egress(wlan))
		h.give("", peer("203.0.113.1", wlan))
		if n := h.kinds(); n["switch"] != want || n["link_handover_complete"] != 0 {
			t.Errorf("away for %v: %v", away, n)
		}
		// One that was away so long that flows left must prove itself before they return.
		h.advance(4900 * time.Millisecond)
		if n := h.kinds(); n["switch"] != 0 {
			t.Errorf("away for %v: back at once", away)
		}
		h.advance(200 * time.Millisecond)
		if n := h.kinds(); n["switch"] != want || h.flow(quick).Link != wlan {
			t.Errorf("away for %v: %v, and on %v", away, n, h.flow(quick).Link)
		}
	}
}

// A link that loses its address is left at once: there is nothing to wait for.
func TestNoHoldWithoutAddress(t *testing.T) {
	h := both(t)
	h.register(rebinds(quick))
	h.drop()
	h.give(wlan, device{}.facts())
	h.want("wifi-00000001 path_lost v4 no_address", "quic: switch wwan-00000002")
}

// While Link_Down is withheld a roam is likely, and nobody is sent away; when it is
// announced they are.
func TestNoSwitchWhileARoamIsLikely(t *testing.T) {
	h := both(t)
	h.register(rebinds(quick))
	h.drop()
	h.give(wlan, left(mihf.DownExplicitDisconnect, true))
	h.advance(2 * time.Second)
	h.give(wlan, association(mihf.AssociationAuthorised, apB, "home"))
	h.want("wifi-00000001 path_lost v4 link_down", "wifi-00000001 link_handover_complete 02:00:00:00:00:0a > 02:00:00:00:00:0b gap 2s",
		"wifi-00000001 path_usable v4", "quic: characteristics wifi-00000001")
	h.give(wlan, left(mihf.DownExplicitDisconnect, true))
	h.advance(5 * time.Second)
	h.want("wifi-00000001 path_lost v4 link_down", "wifi-00000001 link_down explicit_disconnect withheld 3s", "quic: switch wwan-00000002")
}

// Metric games: the kernel's preference flaps between two links that both work. A flow is
// not sent after it more than once in a hold-down.
func TestMetricGames(t *testing.T) {
	for _, watched := range []bool{false, true} {
		h := both(t)
		h.register(mihf.FlowSpec{ID: quick, Continuity: mihf.ContinuityRebinds, Tuples: []mihf.Endpoints{tuple("", "203.0.113.1")}})
		h.drop()
		for i := range 20 {
			to := []mihf.LinkID{wwan, wlan}[i%2]
			h.give("", egress(to))
			if watched {
				h.give("", peer("203.0.113.1", to))
			}
			h.advance(time.Second)
		}
		if n := h.kinds(); n["switch"] > 5 || n["link_handover_complete"] != 0 {
			t.Errorf("peer watched %v: %v in 20 s", watched, n)
		}
		h.advance(10 * time.Second)
		if h.flow(quick).Link != wlan {
			t.Errorf("peer watched %v: not where the kernel prefers in the end", watched)
		}
	}
}

// A transport that chose its link, or has several subflows, is not sent to the one that the
// kernel prefers while its own works.
func TestChosenLinkStays(t *testing.T) {
	h := both(t)
	named := rebinds("named")
	named.Link = wwan
	h.register(named)
	h.register(mihf.FlowSpec{ID: "subflow", Group: "mptcp", Continuity: mihf.ContinuityRebinds, Tuples: []mihf.Endpoints{tuple("198.51.100.9", "203.0.113.1")}})
	h.give(wlan, wifi4.facts())
	h.give("", egress(wwan))
	h.give("", egress(wlan))
	h.advance(time.Minute)
	if n := h.kinds(); n["switch"] != 0 || h.flow("subflow").Link != wwan {
		t.Errorf("%v", n)
	}
}

// A flow goes only to a link that has a path in its own address family; with both it goes
// where either is.
func TestSwitchByFamily(t *testing.T) {
	h := onWiFi(t)
	h.give(wwan, device{addrs: []string{"2001:db8::9/64"}, routes: []string{"v6:700"}}.facts())
	h.give("", egress(wlan))
	h.register(rebinds("v4"))
	h.register(mihf.FlowSpec{ID: "both", Link: wlan, Continuity: mihf.ContinuityRebinds, Tuples: []mihf.Endpoints{tuple("", "203.0.113.1"), tuple("", "2001:db8:1::1")}})
	h.drop()
	h.foresee(wlan, 1, 2*time.Second)
	h.give(wlan, radio(apA, -80))
	h.want("wifi-00000001 link_going_down 00000007-1.0 loss p50 1s confidence 0.90 expires in 2.7s", "both: prepare wwan-00000002 in 200ms 00000007-1",
		"v4: freeze predicted lease 3s p50 1s 00000007-1", "both: freeze predicted lease 3s p50 1s 00000007-1")
	h.give(wlan, device{admin: true}.facts())
	h.want("wifi-00000001 path_lost v4 link_down", "wifi-00000001 link_down admin withheld 0s ends 00000007-1 link_down",
		"both: switch wwan-00000002", "both: unfreeze path_usable onto wwan-00000002 00000007-1")
	if h.flow("v4").Link != wlan {
		t.Error("sent to a link that cannot reach its peer")
	}
}

// Prepare also goes out when the other link becomes usable later, and never names a link
// that is about to be lost itself while there is another.
func TestPrepareTarget(t *testing.T) {
	h := onWiFi(t)
	h.register(rebinds(quick))
	h.foresee(wlan, 1, 4*time.Second)
	h.give(wlan, radio(apA, -80))
	h.drop()
	h.give(wwan, cell4.facts())
	h.want("wwan-00000002 link_up", "wwan-00000002 path_usable v4", "quic: prepare wwan-00000002 in 400ms 00000007-1")

	h = both(t)
	h.register(rebinds(quick))
	const tun, eth = mihf.LinkID("tunnel-00000003"), mihf.LinkID("ethernet-00000004")
	h.give(tun, device{addrs: []string{"10.8.0.2/24"}, routes: []string{"50"}}.facts())
	h.give(eth, device{addrs: []string{"192.0.2.77/24"}, routes: []string{"900"}}.facts())
	h.foresee(wwan, 1, 2*time.Second)
	h.give(wwan, radio("", -105))
	h.drop()
	h.foresee(wlan, 1, 2*time.Second)
	h.give(wlan, radio(apA, -80))
	h.want("wifi-00000001 link_going_down 00000007-2.0 loss p50 1s confidence 0.90 expires in 2.7s", "quic: prepare ethernet-00000004 in 200ms 00000007-2",
		"quic: freeze predicted lease 3s p50 1s 00000007-2")
}

// A vertical handover is stated once for both families, also where there was nothing in
// between; a mere change of preference is none.
func TestVerticalHandover(t *testing.T) {
	h := newEngine(t)
	dual := device{addrs: []string{"192.0.2.7/24", "2001:db8::7/64"}, routes: []string{"600", "v6:600"}}
	h.give(wlan, dual.facts())
	h.give(wwan, device{addrs: []string{"198.51.100.9/24", "2001:db8:2::9/64"}, routes: []string{"700", "v6:700"}}.facts())
	six := func(l mihf.LinkID) *mihf.Observation {
		return &mihf.Observation{Kind: mihf.ObsEgress, Egress: &mihf.Egress{IPv6: true, Link: l}}
	}
	h.give("", egress(wlan))
	h.give("", six(wlan))
	h.give("", egress(wwan)) // preferred
	h.give("", egress(wlan))
	if n := h.kinds(); n["link_handover_complete"] != 0 {
		t.Errorf("%v", n)
	}
	for range 2 {
		h.give(wlan, device{down: true}.facts())
		h.give("", egress(""))
		h.give("", six(""))
		h.advance(2 * time.Second)
		h.drop()
		h.give("", egress(wwan))
		h.give("", six(wwan))
		h.give("", six(wwan))
		h.want(
			`default_route_changed v6 false "" > "wwan-00000002"`,
			"wwan-00000002 link_handover_complete wifi-00000001 > wwan-00000002 gap 2s",
			`default_route_changed v6 true "" > "wwan-00000002"`,
		)
		h.give(wlan, dual.facts())
		h.give("", egress(wlan))
		h.give("", six(wlan))
		if n := h.kinds(); n["link_handover_complete"] != 0 {
			t.Errorf("coming back to a preferred link: %v", n)
		}
	}
}

// A network-ordered handover never counts as a loss.
func TestOrderedHandoverIsNoLoss(t *testing.T) {
	h := both(t)
	h.register(rebinds(quick))
	h.register(mihf.FlowSpec{ID: "tcp", Link: wlan, RTT: 500 * time.Millisecond})
	h.drop()
	*h.tell(wlan) = scripted{handover: 0.98, within: 200 * time.Millisecond, told: h.now}
	h.give(wlan, &mihf.Observation{Kind: mihf.ObsHandover, PoA: apB})
	h.advance(200 * time.Millisecond)
	h.foresee(wlan, 0, time.Second)
	h.give(wlan, association(mihf.AssociationAuthorised, apB, "home"))
	h.want("wifi-00000001 link_handover_imminent 02:00:00:00:00:0a > 02:00:00:00:00:0b ordered",
		"wifi-00000001 link_handover_complete 02:00:00:00:00:0a > 02:00:00:00:00:0b ordered gap 0s",
		"quic: characteristics wifi-00000001", "tcp: characteristics wifi-00000001")
}
