package linkstate_test

import (
	"net/netip"
	"testing"
	"time"

	"mihf.dev/mihf"
)

func TestPathUsable(t *testing.T) {
	linkLocal := []mihf.Address{{Prefix: netip.MustParsePrefix("fe80::7/64"), LinkLocal: true}}
	old := []mihf.Address{{Prefix: netip.MustParsePrefix("2001:db8::8/64"), Deprecated: true}}
	for _, c := range []struct {
		name   string
		d      device
		v4, v6 bool
	}{
		{"both", device{v4: true, v6: true}, true, true},
		{"no address", device{}, false, false},
		{"tentative", device{v6: true, tentative: true}, false, false},
		{"no route", device{v4: true, v6: true, noRoute: true}, false, false},
		{"link-local only", device{extra: linkLocal}, false, false},
		{"deprecated, but no other", device{v6: true, tentative: true, extra: old}, false, true},
		{"carrier without address", device{v4: false, v6: true}, false, true},
		{"down", device{v4: true, v6: true, down: true}, false, false},
		{"admin down", device{v4: true, admin: true}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newMachine(t)
			h.give(c.d.facts())
			if h.m.Usable(false) != c.v4 || h.m.Usable(true) != c.v6 || h.m.AnyUsable() != (c.v4 || c.v6) {
				t.Errorf("v4 %v, v6 %v", h.m.Usable(false), h.m.Usable(true))
			}
			h.drop()
		})
	}
}

// "A path is usable only while the link is attached, has a usable source address and a
// default route of that family": each that goes is said, with why.
func TestPathLostReasons(t *testing.T) {
	h := onWiFi(t)
	h.give(device{v4: true, noRoute: true}.facts())
	h.want("path_lost v4 no_route")
	h.give(device{v4: true}.facts())
	h.want("path_usable v4")
	h.give(device{}.facts())
	h.want("address_changed 192.0.2.7/24>invalid Prefix", "path_lost v4 no_address")
	h.give(device{v6: true, tentative: true}.facts())
	h.want("address_changed invalid Prefix>2001:db8::7/64")
	h.give(device{v6: true}.facts())
	h.want("address_changed 2001:db8::7/64>2001:db8::7/64", "path_usable v6")
	h.give(left(mihf.DownBeaconLoss, false))
	h.want("path_lost v6 link_down")
	h.advance(time.Second)
	h.drop()
}

func TestPathSource(t *testing.T) {
	h := newMachine(t)
	d := device{v6: true, extra: []mihf.Address{{Prefix: netip.MustParsePrefix("2001:db8::9/64")}}}
	o := d.facts()
	o.Facts.Addresses[0].Deprecated = true
	h.give(o)
	p := h.got[len(h.got)-1].Path
	if p == nil || p.Source != netip.MustParseAddr("2001:db8::9") || p.Gateway != netip.MustParseAddr("fe80::1") || p.LCI == nil || p.LCI.MTUBytes.Value != 1500 {
		t.Errorf("%+v", p)
	}
	h.drop()
}

// A default route that goes and comes is told apart from an address that does.
func TestRouteLost(t *testing.T) {
	h := onWiFi(t)
	if h.m.RouteLost(false) != 0 || h.m.PathlessSince() != 0 {
		t.Error("lost what is there")
	}
	h.advance(time.Second)
	lost := h.now
	h.give(device{v4: true, noRoute: true}.facts())
	h.advance(time.Second)
	h.give(device{v4: true, noRoute: true, name: "wlan1"}.facts())
	if h.m.RouteLost(false) != lost || h.m.RouteLost(true) != 0 || h.m.PathlessSince() != lost {
		t.Errorf("lost since %v, want %v", h.m.RouteLost(false), lost)
	}
	h.give(device{name: "wlan1"}.facts())
	if h.m.RouteLost(false) != 0 {
		t.Error("the address is lost too")
	}
	h.give(device{v4: true, noRoute: true, name: "wlan1"}.facts())
	if h.m.RouteLost(false) != 0 {
		t.Error("the route did not go from under a usable path")
	}
	h.drop()
}

func TestMinorAddressChanges(t *testing.T) {
	h := onWiFi(t)
	privacy := []mihf.Address{{Prefix: netip.MustParsePrefix("2001:db8::aaaa/64"), Temporary: true}}
	h.give(device{v4: true, extra: privacy}.facts())
	h.want("address_changed invalid Prefix>2001:db8::aaaa/64 minor")
	deprecated := []mihf.Address{privacy[0]}
	deprecated[0].Deprecated = true
	h.give(device{v4: true, extra: deprecated}.facts())
	h.want("address_changed 2001:db8::aaaa/64>2001:db8::aaaa/64 minor")
	h.give(device{v4: true}.facts())
	h.want("address_changed 2001:db8::aaaa/64>invalid Prefix minor")
}

func TestLCIFollowsPoAAndMTU(t *testing.T) {
	h := onWiFi(t)
	lci := h.m.LCI()
	if lci == nil || lci.PoA != apA || lci.Link != wlan || lci.CapacityDownBPS.Known() {
		t.Fatalf("%+v", lci)
	}
	h.give(device{v4: true}.facts())
	if h.m.LCI() != lci {
		t.Error("made anew for nothing")
	}
	o := device{v4: true}.facts()
	o.Facts.MTUBytes = 1400
	h.give(o)
	h.give(radio(apB, -50))
	if got := h.m.LCI(); got.PoA != apB || got.MTUBytes.Value != 1400 || lci.MTUBytes.Value != 1500 {
		t.Errorf("%+v, and before %+v", got, lci)
	}
	h.drop()
}
