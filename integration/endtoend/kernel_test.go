package endtoend

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
)

// online brings the pair up and gives the node an address and a default route.
func (b *bed) online() mihf.LinkID {
	b.t.Helper()
	b.peer.Up("p0")
	b.node.Up("v0")
	b.peer.AddAddr("p0", "192.0.2.1/24", 0, 0)
	b.node.AddAddr("v0", "192.0.2.2/24", 0, 0)
	b.node.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "192.0.2.1", Dev: "v0", Metric: 100})
	id := b.event(mihf.PathUsable, isIPv4).Link
	b.snapshot("the default route's egress, which is read apart", func(s *mihf.Snapshot) bool {
		return slices.ContainsFunc(s.Egress, func(e mihf.Egress) bool { return e.Link == id })
	})
	return id
}

func isIPv4(e *mihf.Event) bool { return e.Path != nil && !e.Path.IPv6 }

func TestLinkDownAndUp(t *testing.T) {
	b := newBed(t, "")
	id := b.online()
	b.node.Down("v0")
	if e := b.event(mihf.PathLost, isIPv4); e.Link != id {
		t.Errorf("path lost on %v, want %v", e.Link, id)
	}
	if e := b.event(mihf.LinkDown, nil); e.Link != id || e.Down.Reason != mihf.DownAdmin {
		t.Errorf("down: %v %v, want %v %v", e.Link, e.Down.Reason, id, mihf.DownAdmin)
	}
	b.node.Up("v0")
	if e := b.event(mihf.LinkUp, nil); e.Link != id {
		t.Errorf("up: %v, want %v", e.Link, id)
	}
	// The address stays, but IPv4 routes vanished without a message when the link went down.
	if s := b.link("v0"); s.UsableIPv4 {
		t.Error("usable without a default route")
	}
	b.node.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "192.0.2.1", Dev: "v0", Metric: 100})
	b.event(mihf.PathUsable, isIPv4)
}

func TestCarrierLossKeepsAddress(t *testing.T) {
	b := newBed(t, "")
	id := b.online()
	b.peer.Down("p0")
	if e := b.event(mihf.LinkDown, nil); e.Link != id || e.Down.Reason != mihf.DownCarrier {
		t.Errorf("down: %v %v, want %v %v", e.Link, e.Down.Reason, id, mihf.DownCarrier)
	}
	if s := b.link("v0"); s.Up || len(s.Facts.Addresses) == 0 {
		t.Errorf("up %v with %d addresses, want down with its address", s.Up, len(s.Facts.Addresses))
	}
	b.peer.Up("p0")
	b.event(mihf.LinkUp, nil)
	b.event(mihf.PathUsable, isIPv4)
}

func TestDefaultRouteReplaced(t *testing.T) {
	b := newBed(t, "")
	id := b.online()
	b.node.Pair("w0", b.peer, "q0")
	b.peer.Up("q0")
	b.node.Up("w0")
	b.node.AddAddr("w0", "198.51.100.2/24", 0, 0)
	b.node.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "198.51.100.1", Dev: "w0", Metric: 50})
	e := b.event(mihf.DefaultRouteChanged, func(e *mihf.Event) bool { return e.Egress.New.Metric == 50 })
	if other := b.link("w0").Link; e.Egress.Old.Link != id || e.Egress.New.Link != other {
		t.Errorf("egress %v -> %v, want %v -> %v", e.Egress.Old.Link, e.Egress.New.Link, id, other)
	}
	b.node.ReplaceRoute(netns.Route{Dst: "0.0.0.0/0", Via: "198.51.100.3", Dev: "w0", Metric: 50})
	b.event(mihf.DefaultRouteChanged, func(e *mihf.Event) bool { return e.Egress.New.Gateway.String() == "198.51.100.3" })
	b.node.DelRoute(netns.Route{Dst: "0.0.0.0/0", Via: "198.51.100.3", Dev: "w0", Metric: 50})
	b.event(mihf.DefaultRouteChanged, func(e *mihf.Event) bool { return e.Egress.New.Link == id })
	if n := b.count(mihf.LinkDown); n != 0 {
		t.Errorf("%d links went down, want none", n)
	}
}

func TestRenameAndNameSwap(t *testing.T) {
	b := newBed(t, "")
	b.node.Pair("w0", b.peer, "q0")
	v, w := b.link("v0").Link, b.link("w0").Link
	b.node.Rename("v0", "tmp")
	b.node.Rename("w0", "v0")
	b.node.Rename("tmp", "w0")
	b.snapshot("swapped names", func(s *mihf.Snapshot) bool {
		x, y := named(s, "v0"), named(s, "w0")
		return x != nil && y != nil && x.Link == w && y.Link == v
	})
	b.event(mihf.LinkRenamed, nil)
	if n := b.count(mihf.LinkRemoved); n != 0 {
		t.Errorf("%d links removed by renaming, want none", n)
	}
}

func TestRemovedAndBack(t *testing.T) {
	b := newBed(t, "")
	const mac = "02:00:5e:10:00:01"
	b.node.PairWith("w0", b.peer, "q0", mac)
	id := b.link("w0").Link
	b.node.Delete("w0")
	b.event(mihf.LinkRemoved, func(e *mihf.Event) bool { return e.Link == id })
	b.node.PairWith("w1", b.peer, "q1", mac)
	if s := b.link("w1"); s.Link != id {
		t.Errorf("came back as %v, want %v", s.Link, id)
	}
}

// TestOverflow floods a small receive buffer while its reader stands still: messages are
// lost, the daemon says so and has the whole truth afterwards.
func TestOverflow(t *testing.T) {
	b := newBed(t, "buffer_bytes = 4096\n")
	b.online()
	const addresses = 600
	b.signal(syscall.SIGSTOP)
	for i := range addresses {
		b.node.AddAddr("v0", fmt.Sprintf("10.%d.%d.1/32", i/200, i%200), 0, 0)
	}
	b.signal(syscall.SIGCONT)
	b.event(mihf.Resync, func(e *mihf.Event) bool { return e.Resync.Lost })
	b.snapshot("all addresses", func(s *mihf.Snapshot) bool {
		l := named(s, "v0")
		n := 0
		for _, a := range l.Facts.Addresses {
			if a.Prefix.Addr().Is4() {
				n++
			}
		}
		return n == addresses+1
	})
}

func TestAddressTentativeAndLate(t *testing.T) {
	b := newBed(t, "")
	b.peer.Up("p0")
	b.node.Up("v0")
	b.event(mihf.LinkUp, nil)
	b.node.AddRoute(netns.Route{Dst: "::/0", Via: "fe80::1", Dev: "v0", Metric: 100})
	b.node.AddAddr("v0", "2001:db8::2/64", 0, 0)
	tentative := b.event(mihf.AddressChanged, func(e *mihf.Event) bool { return e.Address.New.Prefix.String() == "2001:db8::2/64" })
	usable := b.event(mihf.PathUsable, func(e *mihf.Event) bool { return e.Path.IPv6 })
	if !tentative.Address.New.Tentative {
		t.Error("the new address was not tentative when it was first read: duplicate address detection takes a second")
	}
	if usable.Sequence < tentative.Sequence {
		t.Error("usable while the address was tentative")
	}
	// The late one: IPv4 comes when the link has long been up.
	if b.link("v0").UsableIPv4 {
		t.Error("IPv4 usable without an address")
	}
	b.node.AddAddr("v0", "192.0.2.2/24", 0, 0)
	b.node.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "192.0.2.1", Dev: "v0", Metric: 100})
	b.event(mihf.PathUsable, isIPv4)
}
