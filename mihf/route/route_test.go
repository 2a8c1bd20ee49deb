package route_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/route"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	wwan = mihf.LinkID("wwan-00000002")
	eth  = mihf.LinkID("ethernet-00000003")
)

func tuple(local, remote string) mihf.Endpoints {
	e := mihf.Endpoints{Protocol: 6}
	if local != "" {
		e.Local = netip.AddrPortFrom(netip.MustParseAddr(local), 40000)
	}
	if remote != "" {
		e.Remote = netip.AddrPortFrom(netip.MustParseAddr(remote), 443)
	}
	return e
}

func facts(addrs ...string) *mihf.LinkFacts {
	f := &mihf.LinkFacts{}
	for _, a := range addrs {
		tentative := a[0] == '?'
		if tentative {
			a = a[1:]
		}
		p := netip.MustParseAddr(a)
		f.Addresses = append(f.Addresses, mihf.Address{Prefix: netip.PrefixFrom(p, p.BitLen()), Tentative: tentative, LinkLocal: p.IsLinkLocalUnicast()})
	}
	return f
}

func add(t *testing.T, table *route.Table, spec mihf.FlowSpec) *route.Flow {
	t.Helper()
	if spec.ID == "" {
		spec.ID = mihf.FlowID(fmt.Sprint(len(table.All())))
	}
	f, err := table.Add(&spec, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// "A flow belongs to the link that it names, else to the link that has its local address
// (of several its own), else to the link over which the kernel reaches its peer."
func TestPlace(t *testing.T) {
	table := route.NewTable()
	table.SetAddresses(wlan, facts("192.0.2.7", "2001:db8::7", "10.0.0.5", "fe80::1"))
	table.SetAddresses(wwan, facts("198.51.100.9", "10.0.0.5", "?2001:db8::9"))
	table.SetEgress(&mihf.Egress{Link: wwan})
	table.SetEgress(&mihf.Egress{IPv6: true, Link: wlan})
	table.SetPeer(&mihf.PeerRoute{Peer: netip.MustParseAddr("203.0.113.1"), Link: eth})
	table.SetPeer(&mihf.PeerRoute{Peer: netip.MustParseAddr("203.0.113.2")}) // unreachable
	for _, c := range []struct {
		name string
		spec mihf.FlowSpec
		want mihf.LinkID
	}{
		{"named", mihf.FlowSpec{Link: eth, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "")}}, eth},
		{"by address", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}}, wlan},
		{"by its second address", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("192.0.2.99", ""), tuple("198.51.100.9", "")}}, wwan},
		{"by mapped address", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("::ffff:192.0.2.7", "")}}, wlan},
		{"by address with zone", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("fe80::1%wlan0", "fe80::2%wlan0")}}, wlan},
		{"two links have it", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("10.0.0.5", "")}}, wlan},
		{"tentative: by egress", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("2001:db8::9", "2001:db8:1::1")}}, wlan},
		{"by peer", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("", "203.0.113.1")}}, eth},
		{"unreachable peer", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("", "203.0.113.2")}}, ""},
		{"one of two peers unreachable", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("", "203.0.113.2"), tuple("", "203.0.113.1")}}, eth},
		{"by egress v4", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("", "203.0.113.9")}}, wwan},
		{"by egress v6", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("", "2001:db8:1::1")}}, wlan},
		{"by egress of both", mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("", "203.0.113.9"), tuple("", "2001:db8:1::1")}}, wwan},
		{"by nothing known", mihf.FlowSpec{Tuples: []mihf.Endpoints{{}}}, wwan},
	} {
		c.spec.ID = mihf.FlowID(c.name)
		if f := add(t, table, c.spec); f.Link != c.want || f.Owner != 1000 {
			t.Errorf("%s: on %q, want %q", c.name, f.Link, c.want)
		}
	}
	if f := add(t, route.NewTable(), mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}}); f.Link != "" {
		t.Errorf("on %q where no link is known", f.Link)
	}
}

// One link's loss of an address does not take it from another that has it too.
func TestSharedAddress(t *testing.T) {
	table := route.NewTable()
	table.SetAddresses(wlan, facts("10.0.0.5"))
	f := add(t, table, mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("10.0.0.5", "")}})
	table.SetAddresses(eth, facts("10.0.0.5"))
	table.SetAddresses(eth, nil)
	if table.Address(f, wlan) != route.AddressUsable || table.Address(f, eth) != route.AddressAbsent || table.Place(f) != wlan {
		t.Error("the address is lost with the other link's")
	}
	table.SetAddresses(eth, facts("10.0.0.5"))
	f.Link = eth
	if table.Place(f) != eth {
		t.Error("a flow left the link that has its address")
	}
	table.SetAddresses(wlan, facts("?10.0.0.5"))
	if table.Address(f, wlan) != route.AddressTentative || table.Place(f) != eth {
		t.Error("tentative")
	}
	if table.Address(add(t, table, mihf.FlowSpec{Tuples: []mihf.Endpoints{tuple("0.0.0.0", "203.0.113.1")}}), wlan) != route.AddressUnnamed {
		t.Error("0.0.0.0 is taken for an address")
	}
}

func TestPeers(t *testing.T) {
	table := route.NewTable()
	a := add(t, table, mihf.FlowSpec{ID: "a", Tuples: []mihf.Endpoints{tuple("", "203.0.113.1"), tuple("", "203.0.113.1"), tuple("", "fe80::2%wlan0")}})
	b := add(t, table, mihf.FlowSpec{ID: "b", Tuples: []mihf.Endpoints{tuple("", "::ffff:203.0.113.1"), tuple("", "203.0.113.2"), tuple("", "0.0.0.0"), tuple("", "ff02::1")}})
	one, two := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	if got := fmt.Sprint(table.Peers()); got != "[203.0.113.1 203.0.113.2]" {
		t.Error(got)
	}
	if got := table.To(one); len(got) != 2 || got[0] != a || got[1] != b {
		t.Errorf("%v", got)
	}
	table.SetPeer(&mihf.PeerRoute{Peer: one, Link: wlan})
	table.SetPeer(&mihf.PeerRoute{Peer: two, Link: wwan})
	if over, known := table.PeerOver(b, wwan); !over || !known {
		t.Error("one peer over the link is enough")
	}
	if over, known := table.PeerOver(a, wwan); over || !known {
		t.Error("over a link that none of its peers is reached by")
	}
	table.Readdress(b, []mihf.Endpoints{tuple("", "203.0.113.3")}, wwan)
	if got := fmt.Sprint(table.Peers()); got != "[203.0.113.1 203.0.113.3]" || len(table.To(two)) != 0 || len(table.To(one)) != 1 || b.Named != wwan {
		t.Error(got)
	}
	if _, known := table.PeerOver(b, wwan); known {
		t.Error("a route that is not watched any more is still believed")
	}
	if !a.Local() || b.Local() {
		t.Error("link-local peers")
	}
	table.Remove("a")
	table.Remove("a")
	if got := table.All(); len(got) != 1 || table.Get("a") != nil || table.Get("b") != b {
		t.Errorf("%v", got)
	}
}

// "The number of flows, 5-tuples and watched peers is bounded."
func TestBounds(t *testing.T) {
	table := route.NewTable()
	for i := range route.MaxFlows {
		spec := mihf.FlowSpec{ID: mihf.FlowID(fmt.Sprint(i)), Tuples: []mihf.Endpoints{
			{Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, byte(i >> 16), byte(i >> 8), byte(i)}), 1)},
		}}
		if _, err := table.Add(&spec, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Add(&mihf.FlowSpec{ID: "more", Link: wlan}, 0); !errors.Is(err, mihf.ErrLimit) {
		t.Error(err)
	}
	if _, err := table.Add(&mihf.FlowSpec{ID: "0", Link: wlan}, 0); !errors.Is(err, mihf.ErrExists) {
		t.Error(err)
	}
	if n := len(table.Peers()); n != route.MaxPeers {
		t.Errorf("%d peers", n)
	}
	for i := range 2 * route.MaxPeers {
		table.SetPeer(&mihf.PeerRoute{Peer: netip.AddrFrom4([4]byte{9, 9, byte(i >> 8), byte(i)}), Link: wlan})
	}
	table.Peers()
}

// "A request is refused, with a reason, before anything is changed."
func TestCheck(t *testing.T) {
	good := mihf.FlowSpec{Link: wlan}
	if err := route.Check(&good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*mihf.FlowSpec){
		"too many tuples":     func(s *mihf.FlowSpec) { s.Tuples = make([]mihf.Endpoints, mihf.MaxTuples+1) },
		"nowhere":             func(s *mihf.FlowSpec) { s.Link = "" },
		"bad link":            func(s *mihf.FlowSpec) { s.Link = "wlan0" },
		"long group":          func(s *mihf.FlowSpec) { s.Group = string(make([]byte, 129)) },
		"continuity":          func(s *mihf.FlowSpec) { s.Continuity = 3 },
		"direction":           func(s *mihf.FlowSpec) { s.Direction = 3 },
		"unknown hints":       func(s *mihf.FlowSpec) { s.Hints = mihf.AllHints | 1<<7 },
		"freeze without end":  func(s *mihf.FlowSpec) { s.Hints = mihf.Hints(mihf.HintFreeze) },
		"negative rtt":        func(s *mihf.FlowSpec) { s.RTT = -1 },
		"long rtt":            func(s *mihf.FlowSpec) { s.RTT = route.MaxRTT + 1 },
		"negative drain":      func(s *mihf.FlowSpec) { s.LocalDrain = -1 },
		"long lead":           func(s *mihf.FlowSpec) { s.Lead = route.MaxRTT + 1 },
		"long recovery":       func(s *mihf.FlowSpec) { s.Recovery = route.MaxRTT + 1 },
		"negative cost":       func(s *mihf.FlowSpec) { s.CostMiss = -1 },
		"great cost":          func(s *mihf.FlowSpec) { s.CostNeedless = route.MaxCost + 1 },
		"negative max_freeze": func(s *mihf.FlowSpec) { s.MaxFreeze = -1 },
	} {
		bad := good
		change(&bad)
		if err := route.Check(&bad); !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := mihf.FlowSpec{Link: wlan, RTT: -1, Lead: -1, CostMiss: -1}
	first := route.Check(&bad).Error()
	for range 50 {
		if got := route.Check(&bad).Error(); got != first {
			t.Fatalf("once %q, then %q", first, got)
		}
	}
}

func TestFollows(t *testing.T) {
	table := route.NewTable()
	free := add(t, table, mihf.FlowSpec{Tuples: []mihf.Endpoints{{}}})
	named := add(t, table, mihf.FlowSpec{Link: wlan})
	subflow := add(t, table, mihf.FlowSpec{Group: "mptcp-1", Tuples: []mihf.Endpoints{{}}})
	if !free.Follows() || named.Follows() || subflow.Follows() {
		t.Error("who chose its link does not follow the kernel's preference")
	}
	named.SwitchedAt = mihf.Time(time.Second)
	if !named.Follows() {
		t.Error("a flow that was switched does not come back")
	}
}

// The indexes agree with the flows, whatever is added, removed and readdressed.
func TestIndexes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := route.NewTable()
		model := map[mihf.FlowID][]mihf.Endpoints{}
		tuples := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(i int) mihf.Endpoints {
			return tuple(fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("203.0.113.%d", i))
		}), 1, 3)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := rapid.SampledFrom([]mihf.FlowID{"a", "b", "c", "d", "e"}).Draw(t, "id")
			switch rapid.IntRange(0, 2).Draw(t, "act") {
			case 0:
				x := tuples.Draw(t, "tuples")
				if _, err := table.Add(&mihf.FlowSpec{ID: id, Tuples: x}, 0); err == nil {
					model[id] = x
				}
			case 1:
				table.Remove(id)
				delete(model, id)
			case 2:
				if f := table.Get(id); f != nil {
					model[id] = tuples.Draw(t, "tuples")
					table.Readdress(f, model[id], "")
				}
			}
			if len(table.All()) != len(model) {
				t.Fatalf("%d flows, want %d", len(table.All()), len(model))
			}
			for i := range 6 {
				remote, local := netip.MustParseAddr(fmt.Sprintf("203.0.113.%d", i)), netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i))
				want := 0
				for _, x := range model {
					for _, e := range x {
						if e.Remote.Addr() == remote {
							want++
							break
						}
					}
				}
				if got := len(table.To(remote)); got != want || table.Uses(local) != (want > 0) {
					t.Fatalf("%d flows to %v, want %d", got, remote, want)
				}
			}
		}
	})
}

// What a tuple leaves open matches any flow, but for its peer's address; forms of one address
// are one.
func TestMatching(t *testing.T) {
	table := route.NewTable()
	add(t, table, mihf.FlowSpec{ID: "whole", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}})
	add(t, table, mihf.FlowSpec{ID: "peer", Tuples: []mihf.Endpoints{{Remote: netip.MustParseAddrPort("203.0.113.1:0")}}})
	any4 := tuple("0.0.0.0", "203.0.113.1")
	any4.Local = netip.AddrPortFrom(any4.Local.Addr(), 0)
	add(t, table, mihf.FlowSpec{ID: "unbound", Tuples: []mihf.Endpoints{any4, any4}})
	add(t, table, mihf.FlowSpec{ID: "udp", Tuples: []mihf.Endpoints{{Protocol: 17, Remote: netip.MustParseAddrPort("203.0.113.1:443")}}})
	add(t, table, mihf.FlowSpec{ID: "local", Link: wlan, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "")}})
	for _, tc := range []struct {
		local, remote string
		want          string
	}{
		{"192.0.2.7:40000", "203.0.113.1:443", "whole peer unbound "},
		{"[::ffff:192.0.2.7]:40000", "[::ffff:203.0.113.1]:443", "whole peer unbound "},
		{"192.0.2.7:40001", "203.0.113.1:443", "peer unbound "},
		{"192.0.2.8:40000", "203.0.113.1:443", "peer unbound "},
		{"192.0.2.7:40000", "203.0.113.1:80", "peer "},
		{"192.0.2.7:40000", "203.0.113.2:443", ""},
	} {
		var got strings.Builder
		for f := range table.Matching(&mihf.Endpoints{Protocol: 6, Local: netip.MustParseAddrPort(tc.local), Remote: netip.MustParseAddrPort(tc.remote)}) {
			got.WriteString(string(f.ID) + " ")
		}
		if got.String() != tc.want {
			t.Errorf("%s to %s is %q, want %q", tc.local, tc.remote, got.String(), tc.want)
		}
	}
}
