package rtnl

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// stateTest drives a state; want fails on every observation that is not asked for.
type stateTest struct {
	t   testing.TB
	st  *state
	now mihf.Time
	dev map[string]device // by name
}

func newStateTest(t testing.TB, settle time.Duration) *stateTest {
	t.Helper()
	s := &stateTest{t: t, now: mihf.Time(time.Hour), dev: map[string]device{}}
	s.st = newState("", settle, func(l *linkInfo) device { return s.dev[l.name] })
	s.st.started = true
	return s
}

// hw is a link that is hardware, and is up.
func hw(index int, name, perm string) linkInfo {
	return linkInfo{
		index: index, name: name, addr: perm, perm: perm, hwType: arphrdEther, oper: mihf.OperUp,
		flags: unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING,
	}
}

func virtual(index int, name, kind string) linkInfo {
	l := hw(index, name, "")
	l.kind = kind
	return l
}

func (s *stateTest) link(l linkInfo) bool { return s.st.setLink(s.now, l, false) }

func (s *stateTest) defaults(routes ...routeInfo) { s.st.setDefaults(s.now, routes, false) }

func via4(index int, gw string, metric uint32) routeInfo {
	return routeInfo{metric: metric, table: 254, hops: []hop{{index: index, gateway: netip.MustParseAddr(gw)}}}
}

// want flushes and compares "kind name-or-reason" of each observation.
func (s *stateTest) want(want ...string) []mihf.Observation {
	s.t.Helper()
	got := []string{}
	list := s.st.flush(s.now)
	for _, o := range list {
		switch o.Kind {
		case mihf.ObsLink:
			got = append(got, "link "+o.Facts.Name)
		case mihf.ObsLinkGone:
			got = append(got, "gone "+o.Gone.String())
		case mihf.ObsEgress:
			got = append(got, fmt.Sprintf("egress %v", o.Egress.Link != ""))
		case mihf.ObsPeer:
			got = append(got, fmt.Sprintf("peer %v %v", o.Peer.Peer, o.Peer.Link != ""))
		default:
			s.t.Errorf("observation of kind %v", o.Kind)
		}
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.t.Errorf("observations (-want +got):\n%s", diff)
	}
	if again := s.st.flush(s.now); len(again) != 0 {
		s.t.Errorf("published twice: %v", again)
	}
	return list
}

// One change, one observation; none, none.
func TestOneChangeOneObservation(t *testing.T) {
	s := newStateTest(t, 0)
	l := hw(2, "wlan0", "02:00:00:00:00:01")
	s.link(l)
	s.want("link wlan0")
	for range 10 {
		if s.link(l) {
			t.Error("a repeated message changes routes")
		}
		s.want()
	}
	l.mtu = 1400
	s.link(l)
	s.want("link wlan0")
	s.want()
}

func TestLinkIDs(t *testing.T) {
	const perm = "02:00:00:00:00:01"
	for _, tc := range []struct {
		name string
		link linkInfo
		dev  device
		want mihf.LinkID
	}{
		{"permanent address", hw(2, "eth0", perm), device{}, mihf.NewLinkID(mihf.LinkEthernet, perm)},
		{"wifi", hw(2, "wlan0", perm), device{wireless: true}, mihf.NewLinkID(mihf.LinkWiFi, perm)},
		{"wwan", hw(2, "wwan0", perm), device{wwan: true}, mihf.NewLinkID(mihf.LinkWWAN, perm)},
		{
			"current address",
			linkInfo{index: 2, name: "v", kind: "veth", addr: perm, hwType: arphrdEther},
			device{},
			mihf.NewLinkID(mihf.LinkEthernet, "veth/"+perm),
		},
		{
			"hardware of an old kernel",
			linkInfo{index: 2, name: "e", addr: perm, hwType: arphrdEther},
			device{},
			mihf.NewLinkID(mihf.LinkEthernet, perm),
		},
		{"device path", linkInfo{index: 2, name: "wwan0"}, device{wwan: true, path: "/sys/devices/usb1"}, mihf.NewLinkID(mihf.LinkWWAN, "/sys/devices/usb1")},
		{"tunnel", linkInfo{index: 2, name: "wg0", kind: "wireguard"}, device{}, mihf.NewLinkID(mihf.LinkTunnel, "wireguard/wg0")},
		{"other", linkInfo{index: 2, name: "can0"}, device{}, mihf.NewLinkID(mihf.LinkOther, "/can0")},
	} {
		s := newStateTest(t, 0)
		s.dev[tc.link.name] = tc.dev
		s.link(tc.link)
		if got := s.want("link " + tc.link.name)[0].Link; got != tc.want {
			t.Errorf("%s: id %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestTwoLinksNeverShareAnID(t *testing.T) {
	ids := func(names ...string) []mihf.LinkID {
		s := newStateTest(t, 0)
		var want []string
		for i, name := range names {
			s.link(linkInfo{index: 10 + i, name: name, kind: "vlan", addr: "02:00:00:00:00:01", hwType: arphrdEther})
			want = append(want, "link "+name)
		}
		var out []mihf.LinkID
		for _, o := range s.want(want...) {
			out = append(out, o.Link)
		}
		return out
	}
	a, b := ids("eth0.1", "eth0.2", "eth0.3"), ids("eth0.1", "eth0.2", "eth0.3")
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the same links get other ids:\n%s", diff)
	}
	if a[0] == a[1] || a[1] == a[2] || a[0] == a[2] {
		t.Errorf("ids are shared: %v", a)
	}
}

func TestNamespaceIsPartOfTheID(t *testing.T) {
	const perm = "02:00:00:00:00:01"
	st := newState("blue", 0, func(*linkInfo) device { return device{} })
	st.setLink(1, hw(2, "eth0", perm), false)
	o := st.flush(1)
	if want := mihf.NewLinkID(mihf.LinkEthernet, perm+"@blue"); o[0].Link != want || o[0].Facts.Namespace != "blue" {
		t.Errorf("%v in %q, want %v", o[0].Link, o[0].Facts.Namespace, want)
	}
}

func TestReplugAndReuse(t *testing.T) {
	s := newStateTest(t, 0)
	usb := hw(5, "wlan1", "02:00:00:00:00:05")
	s.link(usb)
	id := s.want("link wlan1")[0].Link
	t.Log("# out and in between two readings: gone first, then there under the same id")
	s.st.removeLink(s.now, 5, mihf.DownRemoved)
	usb.index = 6
	s.link(usb)
	list := s.want("gone removed", "link wlan1")
	if list[0].Link != id || list[1].Link != id {
		t.Errorf("ids %v, %v, want %v", list[0].Link, list[1].Link, id)
	}
	t.Log("# another device with the same ifindex")
	other := hw(6, "wlan2", "02:00:00:00:00:06")
	s.st.setLink(s.now, other, true)
	s.want("gone removed", "link wlan2")
	t.Log("# the same device, there again before we looked")
	s.st.setLink(s.now, other, true)
	s.want()
	t.Log("# another address on a virtual link is no other device")
	v := linkInfo{index: 9, name: "v0", kind: "veth", addr: "02:00:00:00:00:09", hwType: arphrdEther}
	s.link(v)
	id = s.want("link v0")[0].Link
	v.addr = "02:00:00:00:00:10"
	s.link(v)
	if got := s.want("link v0")[0].Link; got != id {
		t.Errorf("id %v, was %v", got, id)
	}
}

// A link that is set down loses its default routes, although no message says so.
func TestDownDropsDefaults(t *testing.T) {
	s := newStateTest(t, 0)
	l := hw(2, "eth0", "02:00:00:00:00:01")
	s.link(l)
	s.defaults(via4(2, "10.0.0.1", 100))
	s.want("link eth0")
	l.flags = 0
	if !s.link(l) {
		t.Error("a link that goes down does not change routes")
	}
	if o := s.want("link eth0"); len(o[0].Facts.Defaults) != 0 {
		t.Errorf("default routes %v", o[0].Facts.Defaults)
	}
}

// An incomplete dump removes nothing.
func TestPartialDefaults(t *testing.T) {
	s := newStateTest(t, 0)
	s.link(hw(2, "eth0", "02:00:00:00:00:01"))
	s.defaults(via4(2, "10.0.0.1", 100), via4(2, "10.0.0.2", 200))
	s.want("link eth0")
	s.st.setDefaults(s.now, []routeInfo{via4(2, "10.0.0.2", 200), via4(2, "10.0.0.3", 300)}, true)
	if o := s.want("link eth0"); len(o[0].Facts.Defaults) != 3 {
		t.Errorf("default routes %v, want three", o[0].Facts.Defaults)
	}
}

// A route that has ended counts as gone, and one that will end is looked at then.
func TestExpiringRoute(t *testing.T) {
	s := newStateTest(t, 0)
	s.link(hw(2, "eth0", "02:00:00:00:00:01"))
	r := via4(2, "10.0.0.1", 100)
	r.expiring, r.expires = true, 3*time.Second
	s.defaults(r)
	s.want("link eth0")
	if want := s.now.Add(3 * time.Second); s.st.next(s.now) != want {
		t.Errorf("next at %v, want %v", s.st.next(s.now), want)
	}
	t.Log("# refreshed: no change")
	r.expires = 30 * time.Second
	s.defaults(r)
	s.want()
	for _, ended := range []time.Duration{-time.Second, -6 * time.Second} {
		r.expires = ended
		s.defaults(r)
		if ended == -time.Second {
			s.want("link eth0")
		} else {
			s.want()
		}
	}
	if s.st.next(s.now) != 0 {
		t.Error("a route that has ended is waited for")
	}
}

func TestDeadWaysAreNoDefaults(t *testing.T) {
	s := newStateTest(t, 0)
	s.link(hw(2, "eth0", "02:00:00:00:00:01"))
	s.want("link eth0")
	r := via4(2, "10.0.0.1", 1)
	r.hops[0].dead = true
	s.defaults(r, via4(99, "10.0.0.1", 1))
	s.want()
}

func TestSettle(t *testing.T) {
	s := newStateTest(t, time.Second)
	t.Log("# hardware at once, a virtual link when it has settled")
	s.link(hw(2, "eth0", "02:00:00:00:00:01"))
	s.link(virtual(3, "tun0", "tun"))
	port := virtual(4, "veth1", "veth")
	port.master = 9
	s.link(port)
	s.want("link eth0")
	if want := s.now.Add(time.Second); s.st.next(s.now) != want {
		t.Errorf("next at %v, want %v", s.st.next(s.now), want)
	}
	s.now = s.now.Add(time.Second)
	s.want("link tun0")
	t.Log("# a port with an address of its own")
	s.st.setAddrs(4, []mihf.Address{{Prefix: netip.MustParsePrefix("fe80::1/64"), LinkLocal: true}})
	s.want()
	s.st.setAddrs(4, []mihf.Address{{Prefix: netip.MustParsePrefix("10.0.0.1/24")}})
	s.want("link veth1")
	t.Log("# published links stay so")
	s.st.setAddrs(4, nil)
	s.want("link veth1")
	t.Log("# at once where traffic goes there: the link comes first")
	s.link(virtual(5, "wg0", "wireguard"))
	s.st.setEgress(s.now, false, answer{reachable: true, index: 5})
	s.want("link wg0", "egress true")
	s.link(virtual(6, "wg1", "wireguard"))
	s.defaults(via4(6, "10.0.0.1", 1))
	s.want("link wg1")
	t.Log("# gone before it was published: nothing")
	s.link(virtual(7, "veth7", "veth"))
	s.st.removeLink(s.now, 7, mihf.DownRemoved)
	s.want()
}

func TestToRead(t *testing.T) {
	s := newStateTest(t, time.Second)
	alive, deleted := linkHint{link: true, alive: true}, linkHint{link: true, deleted: true}
	young := linkHint{link: true, alive: true, virtual: true}
	s.link(linkInfo{index: 1, flags: unix.IFF_LOOPBACK})
	s.link(hw(2, "eth0", "02:00:00:00:00:01"))
	s.want("link eth0")
	check := func(what string, index int, h linkHint, want bool) {
		t.Helper()
		if got := s.st.toRead(s.now, index, h); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("the loopback", 1, alive, false)
	check("a known link", 2, alive, true)
	check("a known link that is gone", 2, deleted, true)
	check("new hardware", 3, alive, true)
	check("a link that came and went", 4, deleted, false)
	check("a link that went and came", 4, linkHint{link: true, deleted: true, alive: true}, true)
	check("an address of an unknown link", 5, linkHint{addrs: true}, true)
	check("a new virtual link", 6, young, false)
	check("its address", 6, linkHint{addrs: true}, false)
	if want := s.now.Add(time.Second); s.st.next(s.now) != want {
		t.Errorf("next at %v, want %v", s.st.next(s.now), want)
	}
	s.now = s.now.Add(time.Second)
	check("a settled one", 6, young, true)
	check("one that went", 6, deleted, false)
	if s.st.next(s.now) != 0 {
		t.Error("a link that went is waited for")
	}
}

func TestEgressAndPeers(t *testing.T) {
	s := newStateTest(t, 0)
	peer, own := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("10.0.0.1")
	s.link(hw(2, "eth0", "02:00:00:00:00:01"))
	s.link(linkInfo{index: 1, flags: unix.IFF_LOOPBACK})
	s.st.setPeers([]netip.Addr{peer, own})
	way := answer{reachable: true, index: 2, gateway: netip.MustParseAddr("10.0.0.2"), source: own, table: 254, metric: 5}
	all := func() {
		s.st.setEgress(s.now, false, way)
		s.st.setEgress(s.now, true, answer{})
		s.st.setPeer(s.now, peer, way)
		s.st.setPeer(s.now, own, answer{reachable: true, index: 1, source: own}) // ourselves: no link
		s.st.setPeer(s.now, netip.MustParseAddr("203.0.113.2"), way)             // not watched
	}
	t.Log("# the first answer always, then changes")
	all()
	s.want("link eth0", "egress true", "egress false", "peer 203.0.113.1 true", "peer 10.0.0.1 false")
	all()
	s.want()
	way.gateway = netip.MustParseAddr("10.0.0.3")
	all()
	s.want("egress true", "peer 203.0.113.1 true")
	t.Log("# a set that is replaced keeps what it knows of those that stay")
	s.st.setPeers([]netip.Addr{peer})
	all()
	s.want()
	way.reachable = false
	all()
	s.want("egress false", "peer 203.0.113.1 false")
}

// The sum of what was published is the state, ids are unique, and nothing is published
// twice, whatever was read in whatever order.
func TestDifferencesAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStateTest(t, 0)
		world := map[mihf.LinkID]*mihf.LinkFacts{}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			index := rapid.IntRange(1, 6).Draw(rt, "index")
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0, 1:
				l := hw(index, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"), rapid.SampledFrom([]string{"", "02:00:00:00:00:01"}).Draw(rt, "perm"))
				l.kind = rapid.SampledFrom([]string{"", "veth"}).Draw(rt, "kind")
				l.flags = rapid.SampledFrom([]uint32{0, unix.IFF_UP, unix.IFF_UP | unix.IFF_LOWER_UP}).Draw(rt, "flags")
				s.st.setLink(s.now, l, rapid.Bool().Draw(rt, "recreated"))
			case 2:
				s.st.removeLink(s.now, index, mihf.DownRemoved)
			case 3:
				s.st.setAddrs(index, []mihf.Address{{Prefix: netip.MustParsePrefix("10.0.0.1/24"), Tentative: rapid.Bool().Draw(rt, "tentative")}})
			case 4:
				s.st.setDefaults(s.now, []routeInfo{via4(index, "10.0.0.2", 1)}, rapid.Bool().Draw(rt, "partial"))
			}
			if rapid.Bool().Draw(rt, "flush") {
				continue
			}
			for _, o := range s.st.flush(s.now) {
				if o.Kind == mihf.ObsLinkGone {
					if world[o.Link] == nil {
						rt.Fatalf("%v is gone but was never there", o.Link)
					}
					delete(world, o.Link)
					continue
				}
				if cmp.Equal(world[o.Link], o.Facts, cmpAll) {
					rt.Fatalf("%v published without a change", o.Link)
				}
				world[o.Link] = o.Facts
			}
			if len(world) != len(s.st.links) {
				rt.Fatalf("%d links published, %d there", len(world), len(s.st.links))
			}
			for _, l := range s.st.links {
				if diff := cmp.Diff(l.facts(""), world[l.id], cmpAll); diff != "" {
					rt.Fatalf("published state of %v (-state +published):\n%s", l.id, diff)
				}
			}
		}
	})
}

// A host with more virtual links than the core has room for: hardware, and what traffic
// goes through, is published all the same, and the others are when there is room.
func TestManyVirtualLinks(t *testing.T) {
	s := newStateTest(t, 0)
	for i := range maxLinks + 2 {
		s.link(virtual(10+i, fmt.Sprintf("v%d", i), "veth"))
	}
	if n := len(s.st.flush(s.now)); n != maxLinks || s.st.waiting != 2 {
		t.Fatalf("%d links published, %d wait", n, s.st.waiting)
	}
	s.link(hw(5, "wlan0", "02:00:00:00:00:05"))
	s.want("link wlan0")
	s.defaults(via4(10+maxLinks, "192.0.2.1", 1))
	s.want(fmt.Sprintf("link v%d", maxLinks))
	for i := range 3 {
		s.st.removeLink(s.now, 10+i, mihf.DownRemoved)
	}
	s.want("gone removed", "gone removed", "gone removed", fmt.Sprintf("link v%d", maxLinks+1))
	if s.st.waiting != 0 {
		t.Errorf("%d links wait", s.st.waiting)
	}
}
