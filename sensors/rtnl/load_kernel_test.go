package rtnl_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/sensors/rtnl"
	"mihf.dev/sensors/sensorstest"
)

// world is what a reader of the observations knows.
type world struct {
	Links  map[mihf.LinkID]mihf.LinkFacts
	Egress [2]mihf.Egress
}

func newWorld() world { return world{Links: map[mihf.LinkID]mihf.LinkFacts{}} }

func (w *world) add(o *mihf.Observation) {
	switch {
	case o.Kind == mihf.ObsLink:
		w.Links[o.Link] = *o.Facts
	case o.Kind == mihf.ObsLinkGone:
		delete(w.Links, o.Link)
	case o.Kind == mihf.ObsEgress && o.Egress.IPv6:
		w.Egress[1] = *o.Egress
	case o.Kind == mihf.ObsEgress:
		w.Egress[0] = *o.Egress
	}
}

func isOK(o *mihf.Observation) bool {
	return o.Kind == mihf.ObsCondition && o.Condition.Condition == mihf.ConditionOK
}

// sameAsFresh compares what the sensor gave so far with what a new one reads.
func (b *bed) sameAsFresh() {
	b.t.Helper()
	b.fence()
	fresh := newWorld()
	r := sensorstest.Start(b.t, rtnl.New(rtnl.Options{Netns: b.ns.Handle, Settle: -1}))
	for _, o := range r.Until(b.t, "a fresh sensor", isOK) {
		fresh.add(&o)
	}
	r.Stop(b.t)
	opts := cmp.Options{cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(fresh, b.world, opts); diff != "" {
		b.t.Errorf("state differs from a fresh reading (-fresh +sensor):\n%s", diff)
	}
}

// An overflow leads to a new socket, a complete reading and a resync.
func TestKernelOverflow(t *testing.T) {
	var gate sync.Mutex
	b := newBed(t, func(o *rtnl.Options) {
		o.BufferBytes = 4096
		o.BeforeRead = func() { gate.Lock(); defer gate.Unlock() }
	}, second)
	waitLinkLocals(b)
	for round := range 2 {
		gate.Lock()
		for i := range 300 {
			b.ns.AddAddr("v0", fmt.Sprintf("10.%d.%d.1/24", 100+round, i%250), 0, 0)
			b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Metric: 1000, Table: 1000 + 300*round + i})
		}
		b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.9", Dev: "w0", Metric: 50 - round})
		gate.Unlock()
		b.want("the resync", func(o *mihf.Observation) bool { return o.Kind == mihf.ObsResync && o.Lost })
		b.sameAsFresh()
	}
	if n := b.counter("mihf_rtnl_overflows_total"); n < 2 {
		t.Errorf("%d overflows counted, want 2 at least", n)
	}
}

// 100,000 routes that lead nowhere interesting cost nothing.
func TestKernelForeignRoutes(t *testing.T) {
	const count = 100_000
	b := newBed(t, nil, second)
	waitLinkLocals(b)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	messages, dumps, before := b.counter("mihf_rtnl_messages_total"), b.counter("mihf_rtnl_route_dumps_total"), heap()
	b.ns.AddHostRoutes("v0", netip.MustParseAddr("11.0.0.0"), count)
	b.quiet("100,000 foreign routes")
	messages, dumps = b.counter("mihf_rtnl_messages_total")-messages, b.counter("mihf_rtnl_route_dumps_total")-dumps
	t.Logf("%d routes: %d messages heard, %d route dumps, heap %+d bytes", count, messages, dumps, int64(heap())-int64(before))
	if messages > 100 {
		t.Errorf("%d messages were heard; the filter lets foreign routes through", messages)
	}
	if dumps > 2 { // the fence's own links
		t.Errorf("%d route dumps", dumps)
	}
	if n := b.counter("mihf_rtnl_overflows_total"); n != 0 {
		t.Errorf("%d overflows", n)
	}
	t.Log("# and hide nothing")
	b.far.Down("p0")
	b.facts(b.ns.Index("v0"), "no carrier", func(f *mihf.LinkFacts) bool { return !f.Carrier })
	b.far.Up("p0")
	b.ns.AddRoute(netns.Route{Dst: deflt, Via: "10.1.0.2", Dev: "w0", Metric: 50})
	b.facts(b.ns.Index("w0"), "a default route", func(f *mihf.LinkFacts) bool { return len(f.Defaults) == 1 })
}

// With more peers than the kernel's filter takes the sensor sorts routes out by itself.
func TestKernelManyPeers(t *testing.T) {
	b := newBed(t, nil, second)
	idW, _ := b.link(b.ns.Index("w0"), b.seen)
	waitLinkLocals(b)
	peers := []netip.Addr{netip.MustParseAddr(fencePeer)}
	for i := range 1000 {
		peers = append(peers, netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}))
	}
	b.sensor.Watch(peers)
	answered := 0
	b.want("all peers", func(o *mihf.Observation) bool {
		if o.Kind == mihf.ObsPeer {
			answered++
		}
		return answered == len(peers)-1 // the fence's peer was there before
	})
	b.ns.AddHostRoutes("v0", netip.MustParseAddr("11.0.0.0"), 2000)
	b.quiet("foreign routes")
	b.ns.AddRoute(netns.Route{Dst: "203.0.2.7/32", Via: "10.1.0.2", Dev: "w0"})
	b.want("one peer", func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsPeer && o.Peer.Peer == netip.MustParseAddr("203.0.2.7") && o.Peer.Link == idW
	})
}

// What comes and goes, and messages without a change, give nothing.
func TestKernelChurn(t *testing.T) {
	b := newBed(t, func(o *rtnl.Options) { o.Settle = 0 }, second)
	waitLinkLocals(b)
	messages := b.counter("mihf_rtnl_messages_total")
	v0 := b.ns.Link("v0")
	for i := range 50 {
		b.ns.Pair("x0", b.far, "y0")
		b.ns.AddAddr("x0", "10.200.0.1/24", 0, 0)
		b.ns.Up("x0")
		b.ns.Delete("x0")
		for j := range 10 {
			if err := b.ns.NL.LinkSetAlias(v0, fmt.Sprint("alias", i, j)); err != nil {
				t.Fatal(err)
			}
			b.ns.AddAddr("v0", "10.0.0.1/24", 1000+10*i+j, 900)
		}
	}
	b.quiet("churn")
	t.Logf("%d messages", b.counter("mihf_rtnl_messages_total")-messages)
}

// The host's ends of containers' links are ports of a bridge: they are not published,
// other virtual links are when they have settled.
func TestKernelPortsOfContainers(t *testing.T) {
	b := newBed(t, func(o *rtnl.Options) { o.Settle = 0 }, nil)
	b.ns.Pair("x0", b.far, "c0")
	b.ns.Enslave("x0", "fence0")
	b.ns.Up("x0")
	x0 := b.ns.Index("x0")
	b.ns.Pair("y0", b.far, "c1")
	b.facts(b.ns.Index("y0"), "settled", func(*mihf.LinkFacts) bool { return true })
	for _, f := range b.world.Links {
		if f.Index == x0 {
			t.Errorf("a port is published: %+v", f)
		}
	}
	t.Log("# until it stops being one")
	b.ns.Enslave("x0", "")
	b.facts(x0, "no port any more", func(*mihf.LinkFacts) bool { return true })
}

// Sockets that are opened and closed at the same time do not get in each other's way.
func TestKernelParallelSubscriptions(t *testing.T) {
	b := newBed(t, nil, second)
	want := maps.Clone(b.world.Links)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 3 {
				ctx, cancel := context.WithCancel(context.Background())
				links := 0
				err := rtnl.New(rtnl.Options{Netns: b.ns.Handle, Settle: -1}).Run(ctx, func(o *mihf.Observation) {
					switch {
					case o.Kind == mihf.ObsLink:
						links++
					case isOK(o):
						cancel()
					}
				})
				if err != nil || links < len(want) {
					t.Errorf("Run = %v with %d links, want %d", err, links, len(want))
				}
				cancel()
			}
		})
	}
	wg.Wait()
	b.noneGone(b.fence())
}

// What an interrupted dump does not show is not gone.
func TestKernelInterruptedDumps(t *testing.T) {
	const static = 1000 // more than fits into one part of a dump
	b := newBed(t, func(o *rtnl.Options) { o.Reconcile = 1 }, func(b *bed) {
		second(b)
		for i := range static {
			b.ns.AddAddr("v0", fmt.Sprintf("10.%d.%d.1/24", 50+i/250, i%250), 0, 0)
		}
	})
	nl, err := netlink.NewHandleAt(b.ns.Handle, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	w0, v0 := b.ns.Link("w0"), b.ns.Index("v0")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1500 {
			a := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 60, 0, 1), Mask: net.CIDRMask(24, 32)}}
			if err := nl.AddrAdd(w0, a); err != nil {
				t.Error(err)
			}
			if err := nl.AddrDel(w0, a); err != nil {
				t.Error(err)
			}
		}
	}()
	<-done
	for _, o := range b.fence() {
		switch {
		case o.Kind == mihf.ObsLinkGone:
			t.Errorf("link %v is gone", o.Link)
		case o.Kind == mihf.ObsLink && o.Facts.Index == v0 && len(o.Facts.Addresses) < static:
			t.Errorf("v0 has %d addresses, want %d at least", len(o.Facts.Addresses), static)
		}
	}
	t.Logf("%d readings, %d dumps were interrupted", b.counter("mihf_rtnl_route_dumps_total")/2, b.counter("mihf_rtnl_interrupted_dumps_total"))
	b.sameAsFresh()
}
