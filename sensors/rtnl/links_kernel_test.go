package rtnl_test

import (
	"net/netip"
	"testing"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/sensors/rtnl"
	"mihf.dev/sensors/sensorstest"
)

// The kernel drops IPv4 routes of a link that is set down without a message.
func TestKernelLinkDownAndUp(t *testing.T) {
	b := newBed(t, nil, nil)
	v0 := b.ns.Index("v0")
	b.ns.Down("v0")
	o := b.facts(v0, "v0 down", func(f *mihf.LinkFacts) bool { return !f.AdminUp })
	if len(o.Facts.Defaults) != 0 {
		t.Errorf("default routes of a link that is down: %+v", o.Facts.Defaults)
	}
	if !o.Facts.HasAddress(netip.MustParseAddr("10.0.0.1")) {
		t.Error("its IPv4 address is gone; the kernel keeps it")
	}
	b.egress("no way out", func(e *mihf.Egress) bool { return !e.IPv6 && e.Link == "" })
	b.ns.Up("v0")
	b.facts(v0, "v0 up", func(f *mihf.LinkFacts) bool { return f.Running() })
	b.ns.AddRoute(netns.Route{Dst: deflt, Via: gateway, Dev: "v0", Metric: 100})
	b.egress("v0 leads out again", func(e *mihf.Egress) bool { return !e.IPv6 && e.Link == o.Link })
}

// Carrier loss is a sign of its own, with the address still there.
func TestKernelCarrierLoss(t *testing.T) {
	b := newBed(t, nil, nil)
	v0 := b.ns.Index("v0")
	for range 3 {
		b.far.Down("p0")
		o := b.facts(v0, "no carrier", func(f *mihf.LinkFacts) bool { return !f.Carrier && !f.Running() })
		if !o.Facts.AdminUp || !o.Facts.HasAddress(netip.MustParseAddr("10.0.0.1")) {
			t.Errorf("facts after carrier loss: %+v", *o.Facts)
		}
		b.far.Up("p0")
		b.facts(v0, "carrier", func(f *mihf.LinkFacts) bool { return f.Running() })
	}
}

// A name is an attribute.
func TestKernelRenameAndSwap(t *testing.T) {
	b := newBed(t, nil, second)
	v0, w0 := b.ns.Index("v0"), b.ns.Index("w0")
	idV, _ := b.link(v0, b.seen)
	idW, _ := b.link(w0, b.seen)
	b.ns.Rename("w0", "tmp0")
	b.ns.Rename("v0", "w0")
	b.ns.Rename("tmp0", "v0")
	seen := b.fence()
	b.noneGone(seen)
	gotV, factsV := b.link(v0, seen)
	gotW, factsW := b.link(w0, seen)
	if gotV != idV || gotW != idW {
		t.Errorf("ids changed: %v to %v, %v to %v", idV, gotV, idW, gotW)
	}
	if factsV.Name != "w0" || factsW.Name != "v0" {
		t.Errorf("names after the swap: %q, %q", factsV.Name, factsW.Name)
	}
}

func TestKernelReplugKeepsTheID(t *testing.T) {
	const mac = "02:00:5e:00:00:07"
	b := newBed(t, nil, func(b *bed) { b.ns.PairWith("usb0", b.far, "q0", mac) })
	old := b.ns.Index("usb0")
	id, _ := b.link(old, b.seen)
	b.ns.Delete("usb0")
	b.want("gone", func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsLinkGone && o.Link == id && o.Gone == mihf.DownRemoved
	})
	b.ns.PairWith("usb1", b.far, "q1", mac)
	o := b.facts(b.ns.Index("usb1"), "back", func(*mihf.LinkFacts) bool { return true })
	if o.Link != id || o.Facts.Index == old {
		t.Errorf("back as %v with ifindex %d, was %v with %d", o.Link, o.Facts.Index, id, old)
	}
}

// A port that leaves its bridge gives RTM_DELLINK of family AF_BRIDGE and lives on.
func TestKernelBridgePort(t *testing.T) {
	b := newBed(t, nil, second)
	for range 3 {
		b.ns.Enslave("w0", "fence"+string(rune('0'+b.fences%2)))
		b.noneGone(b.fence())
		b.ns.Enslave("w0", "")
		b.noneGone(b.fence())
	}
}

// S07: a link that moves to another namespace is not removed.
func TestKernelMoved(t *testing.T) {
	b := newBed(t, nil, second)
	id, _ := b.link(b.ns.Index("w0"), b.seen)
	b.ns.Move("w0", netns.New(t))
	b.want("moved", func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsLinkGone && o.Link == id && o.Gone == mihf.DownMoved
	})
}

// Addresses by their meaning, not their lifetimes.
func TestKernelAddresses(t *testing.T) {
	const v6 = "2001:db8::1"
	b := newBed(t, nil, nil)
	v0 := b.ns.Index("v0")
	has := func(addr string, match func(mihf.Address) bool) func(*mihf.LinkFacts) bool {
		return func(f *mihf.LinkFacts) bool {
			for _, a := range f.Addresses {
				if a.Prefix.Addr() == netip.MustParseAddr(addr) {
					return match(a)
				}
			}
			return false
		}
	}
	t.Log("# tentative until duplicate address detection is over")
	b.ns.AddAddr("v0", v6+"/64", 0, 0)
	b.facts(v0, "tentative", has(v6, func(a mihf.Address) bool { return a.Tentative && !a.Usable() }))
	b.facts(v0, "valid", has(v6, mihf.Address.Usable))
	t.Log("# late, then announced again and again")
	b.ns.AddAddr("v0", "10.7.0.1/24", 1000, 900)
	b.facts(v0, "late address", has("10.7.0.1", mihf.Address.Usable))
	waitLinkLocals(b)
	for i := range 30 {
		b.ns.AddAddr("v0", "10.7.0.1/24", 2000+i, 1000+i)
		b.ns.AddAddr("v0", v6+"/64", 2000+i, 1000+i)
	}
	b.quiet("30 announcements with other lifetimes")
	t.Log("# deprecated, then gone at the end of its life")
	b.ns.AddAddr("v0", "10.7.0.1/24", 3, 1)
	b.facts(v0, "deprecated", has("10.7.0.1", func(a mihf.Address) bool { return a.Deprecated }))
	b.facts(v0, "gone", func(f *mihf.LinkFacts) bool { return !f.HasAddress(netip.MustParseAddr("10.7.0.1")) })
	b.ns.DelAddr("v0", "10.0.0.1/24")
	b.facts(v0, "address removed", func(f *mihf.LinkFacts) bool { return !f.HasAddress(netip.MustParseAddr("10.0.0.1")) })
}

// waitLinkLocals lets the kernel finish with the link-local addresses of the bed's links.
func waitLinkLocals(b *bed) {
	b.t.Helper()
	r := sensorstest.Start(b.t, rtnl.New(rtnl.Options{Netns: b.ns.Handle, Settle: -1}))
	tentative := map[mihf.LinkID]bool{}
	started := false
	r.Until(b.t, "valid link-local addresses", func(o *mihf.Observation) bool {
		if o.Kind == mihf.ObsLink {
			tentative[o.Link] = len(o.Facts.Addresses) == 0
			for _, a := range o.Facts.Addresses {
				tentative[o.Link] = tentative[o.Link] || a.Tentative
			}
		}
		started = started || o.Kind == mihf.ObsCondition && o.Condition.Condition == mihf.ConditionOK
		for _, yes := range tentative {
			if yes {
				return false
			}
		}
		return started
	})
	r.Stop(b.t)
	b.fence()
}
