package rtnl

import (
	"maps"
	"net/netip"
	"testing"

	"mihf.dev/mihf"
)

// "a link has its id there when it has been emitted, and none any more before its end is"
func TestDirectory(t *testing.T) {
	s := New(Options{})
	const id = mihf.LinkID("wifi-00000001")
	during := func(want bool) func(*mihf.Observation) {
		return func(o *mihf.Observation) {
			if got, ok := s.Link(7); ok != want || (ok && got != id) {
				t.Errorf("while %v is emitted: %q %v, want %v", o.Kind, got, ok, want)
			}
		}
	}
	link := &mihf.Observation{Kind: mihf.ObsLink, Link: id, Facts: &mihf.LinkFacts{Index: 7}}
	if _, ok := s.Link(7); ok {
		t.Error("known before anything was read")
	}
	s.links.clear()
	s.links.around(during(false))(link)
	s.links.around(during(true))(link)
	s.links.around(during(false))(&mihf.Observation{Kind: mihf.ObsLinkGone, Link: id})
	if _, ok := s.Link(7); ok {
		t.Error("known after it is gone")
	}
}

// Addresses follow their links; one that several have is nobody's until it is one's again.
func TestAddresses(t *testing.T) {
	s := New(Options{})
	if len(s.Addresses()) != 0 {
		t.Error("addresses before anything was read")
	}
	s.links.clear()
	emit := s.links.around(func(*mihf.Observation) {})
	link := func(id mihf.LinkID, index int, addrs ...string) {
		f := &mihf.LinkFacts{Index: index}
		for _, a := range addrs {
			f.Addresses = append(f.Addresses, mihf.Address{Prefix: netip.MustParsePrefix(a)})
		}
		emit(&mihf.Observation{Kind: mihf.ObsLink, Link: id, Facts: f})
	}
	want := func(pairs ...string) {
		t.Helper()
		m := map[netip.Addr]mihf.LinkID{}
		for i := 0; i < len(pairs); i += 2 {
			m[netip.MustParseAddr(pairs[i])] = mihf.LinkID(pairs[i+1])
		}
		if got := s.Addresses(); !maps.Equal(got, m) {
			t.Errorf("%v, want %v", got, m)
		}
	}
	link("wifi-00000001", 3, "192.0.2.1/24", "fe80::1/64")
	want("192.0.2.1", "wifi-00000001", "fe80::1", "wifi-00000001")
	before := s.Addresses()
	link("wwan-00000002", 4, "fe80::1/64", "198.51.100.9/32")
	want("192.0.2.1", "wifi-00000001", "fe80::1", "", "198.51.100.9", "wwan-00000002")
	if len(before) != 2 {
		t.Error("what was given away has changed")
	}
	link("wifi-00000001", 3, "192.0.2.2/24")
	want("192.0.2.2", "wifi-00000001", "fe80::1", "wwan-00000002", "198.51.100.9", "wwan-00000002")
	emit(&mihf.Observation{Kind: mihf.ObsLinkGone, Link: "wwan-00000002"})
	want("192.0.2.2", "wifi-00000001")
}
