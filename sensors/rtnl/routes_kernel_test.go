package rtnl_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/sensors/rtnl"
)

func gateways(f *mihf.LinkFacts) []string {
	var out []string
	for _, r := range f.Defaults {
		out = append(out, r.Gateway.String())
	}
	return out
}

// NetworkManager appends routes of equal metric; "replace" gives RTM_NEWROUTE with
// NLM_F_REPLACE, and none for the route that it removed.
func TestKernelMetricGames(t *testing.T) {
	b := newBed(t, nil, second)
	v0 := b.ns.Index("v0")
	b.ns.AppendRoute(netns.Route{Dst: deflt, Via: "10.0.0.3", Dev: "v0", Metric: 100})
	b.facts(v0, "second gateway", func(f *mihf.LinkFacts) bool {
		return cmp.Equal(gateways(f), []string{"10.0.0.2", "10.0.0.3"})
	})
	b.ns.ReplaceRoute(netns.Route{Dst: deflt, Via: "10.0.0.4", Dev: "v0", Metric: 100})
	b.all("the first is replaced, and decides",
		isFacts(v0, func(f *mihf.LinkFacts) bool { return cmp.Equal(gateways(f), []string{"10.0.0.4", "10.0.0.3"}) }),
		isEgress(func(e *mihf.Egress) bool { return e.Gateway == netip.MustParseAddr("10.0.0.4") }))
	t.Log("# an equal route over another link, and a worse one, change nothing outside")
	b.ns.AppendRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Metric: 100})
	b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.3", Dev: "w0", Metric: 200})
	seen := b.fence()
	if i := find(seen, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsEgress }); i >= 0 {
		t.Errorf("egress changed to %+v", *seen[i].Egress)
	}
	t.Log("# a better one does")
	b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Metric: 50})
	e := b.egress("the better metric decides", func(e *mihf.Egress) bool { return e.Gateway == netip.MustParseAddr("10.1.0.2") })
	if e.Metric != 50 || e.Source != netip.MustParseAddr("10.1.0.1") {
		t.Errorf("egress %+v", e)
	}
}

// The default that decides can be in any table.
func TestKernelPolicyRule(t *testing.T) {
	b := newBed(t, nil, func(b *bed) {
		second(b)
		b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Metric: 7, Table: 77})
	})
	w0 := b.ns.Index("w0")
	id, f := b.link(w0, b.seen)
	if len(f.Defaults) != 1 || f.Defaults[0].Table != 77 {
		t.Errorf("default routes of w0 %+v, want one in table 77", f.Defaults)
	}
	b.ns.AddRule(false, 1000, 77, 0)
	want := mihf.Egress{
		Link: id, Gateway: netip.MustParseAddr("10.1.0.2"), Source: netip.MustParseAddr("10.1.0.1"), Table: 77, Metric: 7,
	}
	if got := b.egress("the rule decides", func(e *mihf.Egress) bool { return e.Link == id }); got != want {
		t.Errorf("egress %+v, want %+v", got, want)
	}
}

func TestKernelMark(t *testing.T) {
	for _, mark := range []uint32{0, 7} {
		b := newBed(t, func(o *rtnl.Options) { o.Mark = mark }, func(b *bed) {
			second(b)
			b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Table: 77})
			b.ns.AddRule(false, 1000, 77, 7)
		})
		i := find(b.seen, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsEgress && !o.Egress.IPv6 })
		want := map[uint32]string{0: "10.0.0.2", 7: "10.1.0.2"}[mark]
		if got := b.seen[i].Egress.Gateway.String(); got != want {
			t.Errorf("mark %d goes out by %s, want %s", mark, got, want)
		}
	}
}

func TestKernelUser(t *testing.T) {
	for uid, want := range map[uint32]string{500: "10.1.0.2", 501: "10.0.0.2"} {
		b := newBed(t, func(o *rtnl.Options) { o.UID = mihf.Some(uid) }, func(b *bed) {
			second(b)
			b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Table: 77})
			r := netlink.NewRule()
			r.Family, r.Priority, r.Table, r.UIDRange = unix.AF_INET, 1000, 77, netlink.NewRuleUIDRange(500, 500)
			if err := b.ns.NL.RuleAdd(r); err != nil {
				t.Fatal(err)
			}
		})
		i := find(b.seen, isEgress(func(e *mihf.Egress) bool { return !e.IPv6 }))
		if got := b.seen[i].Egress.Gateway.String(); got != want {
			t.Errorf("user %d goes out by %s, want %s", uid, got, want)
		}
	}
}

// VPNs lead traffic away with two halves and keep the default route.
func TestKernelHalfDefaults(t *testing.T) {
	b := newBed(t, nil, second)
	id, _ := b.link(b.ns.Index("w0"), b.seen)
	half := netns.Route{Dst: "128.0.0.0/1", Via: "10.1.0.2", Dev: "w0"}
	b.ns.AddRoute(half)
	b.egress("the half decides", func(e *mihf.Egress) bool { return e.Link == id })
	b.ns.DelRoute(half)
	b.egress("the default decides again", func(e *mihf.Egress) bool { return e.Link != id && e.Link != "" })
}

func TestKernelIPv6Egress(t *testing.T) {
	b := newBed(t, nil, nil)
	id, _ := b.link(b.ns.Index("v0"), b.seen)
	b.ns.AddAddr("v0", "2001:db8::1/64", 0, 0)
	def := netns.Route{Dst: "::/0", Via: "2001:db8::2", Dev: "v0", Metric: 300}
	b.ns.AddRoute(def)
	e := b.egress("an IPv6 way out", func(e *mihf.Egress) bool { return e.IPv6 && e.Link == id && e.Source.IsValid() })
	if e.Gateway != netip.MustParseAddr("2001:db8::2") || e.Metric != 300 || e.Table != 254 {
		t.Errorf("egress %+v", e)
	}
	b.ns.DelRoute(def)
	b.egress("none", func(e *mihf.Egress) bool { return e.IPv6 && e.Link == "" })
}

// A nexthop object that goes takes its IPv4 routes along in silence.
func TestKernelNexthop(t *testing.T) {
	b := newBed(t, nil, func(b *bed) {
		second(b)
		b.ns.AddNexthop(5, "w0", "10.1.0.2")
		b.ns.AddRoute(netns.Route{Dst: deflt, Metric: 10, NhID: 5})
	})
	w0 := b.ns.Index("w0")
	id, f := b.link(w0, b.seen)
	if len(f.Defaults) != 1 || f.Defaults[0].Gateway != netip.MustParseAddr("10.1.0.2") {
		t.Fatalf("default routes of w0: %+v", f.Defaults)
	}
	b.ns.DelNexthop(5)
	b.all("the route is gone and v0 leads out",
		isFacts(w0, func(f *mihf.LinkFacts) bool { return len(f.Defaults) == 0 }),
		isEgress(func(e *mihf.Egress) bool { return !e.IPv6 && e.Link != id }))
	if n := b.counter("mihf_rtnl_drift_observations_total"); n != 0 {
		t.Errorf("drift %d: the reconciliation found what the messages should have told", n)
	}
}

func TestKernelPeers(t *testing.T) {
	b := newBed(t, nil, second)
	idV, _ := b.link(b.ns.Index("v0"), b.seen)
	idW, _ := b.link(b.ns.Index("w0"), b.seen)
	peer, local := netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("10.1.0.1")
	wantPeer := func(what string, want mihf.PeerRoute) {
		t.Helper()
		b.want(what, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsPeer && *o.Peer == want })
	}
	gone := netip.MustParseAddr("2001:db8:9::1")
	b.sensor.Watch([]netip.Addr{peer, local, gone, netip.MustParseAddr(fencePeer)})
	byV := mihf.PeerRoute{Peer: peer, Link: idV, Source: netip.MustParseAddr("10.0.0.1"), Gateway: netip.MustParseAddr(gateway)}
	byW := mihf.PeerRoute{Peer: peer, Link: idW, Source: local, Gateway: netip.MustParseAddr("10.1.0.2")}
	wantPeer("by the default route", byV)
	wantPeer("no way", mihf.PeerRoute{Peer: gone})
	t.Log("# a route that covers it")
	cover := netns.Route{Dst: "203.0.113.0/24", Via: "10.1.0.2", Dev: "w0"}
	b.ns.AddRoute(cover)
	wantPeer("by the covering route", byW)
	t.Log("# one that does not")
	b.ns.AddRoute(netns.Route{Dst: "203.0.112.0/24", Via: "10.1.0.2", Dev: "w0"})
	b.quiet("a route that does not cover the peer")
	b.ns.DelRoute(cover)
	wantPeer("by the default route again", byV)
	t.Log("# not watched any more")
	b.sensor.Watch([]netip.Addr{netip.MustParseAddr(fencePeer)})
	b.ns.AddRoute(cover)
	b.quiet("a peer that is not watched any more")
}
