package rtnl_test

import (
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/sensors"
	"mihf.dev/sensors/rtnl"
	"mihf.dev/sensors/sensorstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a sensor in a namespace with a veth "v0", whose other end "p0" is in far. Both
// ends are up and have 10.0.0.1/24 and 10.0.0.2/24; there is a default route through p0.
type bed struct {
	t      *testing.T
	ns     *netns.NS
	far    *netns.NS
	sensor *rtnl.Sensor
	rec    *sensorstest.Recorder
	seen   []mihf.Observation // by the last want
	world  world              // what all of them add up to
	fences int
}

const (
	deflt   = "0.0.0.0/0"
	gateway = "10.0.0.2"
)

func newBed(t *testing.T, change func(*rtnl.Options), before func(*bed)) *bed {
	t.Helper()
	b := &bed{t: t, world: newWorld(), ns: netns.New(t), far: netns.New(t)}
	b.ns.Pair("v0", b.far, "p0")
	b.ns.Up("v0")
	b.far.Up("p0")
	b.ns.AddAddr("v0", "10.0.0.1/24", 0, 0)
	b.far.AddAddr("p0", "10.0.0.2/24", 0, 0)
	b.ns.AddRoute(netns.Route{Dst: deflt, Via: gateway, Dev: "v0", Metric: 100})
	// fence is a bridge that is renamed to see that all before it was worked off.
	b.ns.Bridge("fence0")
	if before != nil {
		before(b)
	}
	opt := rtnl.Options{Netns: b.ns.Handle, Settle: -1}
	if change != nil {
		change(&opt)
	}
	b.sensor = rtnl.New(opt)
	b.sensor.Watch([]netip.Addr{netip.MustParseAddr(fencePeer)})
	b.rec = sensorstest.Start(t, b.sensor)
	b.want("the sensor's condition", func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsCondition && o.Condition.Condition == mihf.ConditionOK
	})
	return b
}

// want waits for an observation; what came before it is in b.seen.
func (b *bed) want(what string, match func(*mihf.Observation) bool) mihf.Observation {
	b.t.Helper()
	b.seen = b.rec.Until(b.t, what, match)
	for i := range b.seen {
		b.world.add(&b.seen[i])
		if bad := sensorstest.Check(rtnl.Name, &b.seen[i]); bad != "" {
			b.t.Errorf("%s: %s", bad, sensorstest.Format(b.seen[i:i+1]))
		}
	}
	return b.seen[len(b.seen)-1]
}

// all waits for observations that may come in any order.
func (b *bed) all(what string, matches ...func(*mihf.Observation) bool) {
	b.t.Helper()
	b.want(what, func(o *mihf.Observation) bool {
		matches = slices.DeleteFunc(matches, func(match func(*mihf.Observation) bool) bool { return match(o) })
		return len(matches) == 0
	})
}

// isFacts and isEgress match for [bed.all].
func isFacts(index int, match func(*mihf.LinkFacts) bool) func(*mihf.Observation) bool {
	return func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsLink && o.Facts.Index == index && match(o.Facts)
	}
}

func isEgress(match func(*mihf.Egress) bool) func(*mihf.Observation) bool {
	return func(o *mihf.Observation) bool { return o.Kind == mihf.ObsEgress && match(o.Egress) }
}

// facts waits for facts of the link with that ifindex.
func (b *bed) facts(index int, what string, match func(*mihf.LinkFacts) bool) mihf.Observation {
	b.t.Helper()
	return b.want(what, isFacts(index, match))
}

// fencePeer is a watched peer whose route is toggled by fence.
const fencePeer = "192.0.2.99"

// fence makes the sensor work off what has happened so far, links and then routes, and
// returns what it emitted for it.
func (b *bed) fence() []mihf.Observation {
	b.t.Helper()
	from, to := "fence0", "fence1"
	route := netns.Route{Dst: fencePeer + "/32", Dev: "v0"}
	if b.fences%2 == 1 {
		from, to = to, from
	}
	index := b.ns.Index(from)
	b.fences++
	b.ns.Rename(from, to)
	b.facts(index, "the fence", func(f *mihf.LinkFacts) bool { return f.Name == to })
	seen := b.seen[:len(b.seen)-1]
	route.Dev = to
	if b.fences%2 == 1 {
		b.ns.AddRoute(route)
	} else {
		b.ns.DelRoute(route)
	}
	b.want("the second fence", func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsPeer && o.Peer.Peer == netip.MustParseAddr(fencePeer)
	})
	return append(seen, b.seen[:len(b.seen)-1]...)
}

// quiet fails the test if the sensor emitted anything.
func (b *bed) quiet(what string) {
	b.t.Helper()
	if seen := b.fence(); len(seen) > 0 {
		b.t.Errorf("%s gave observations:\n%s", what, sensorstest.Format(seen))
	}
}

// link returns the id and the newest facts that the sensor gave of the link.
func (b *bed) link(index int, list []mihf.Observation) (mihf.LinkID, *mihf.LinkFacts) {
	b.t.Helper()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind == mihf.ObsLink && list[i].Facts.Index == index {
			return list[i].Link, list[i].Facts
		}
	}
	b.t.Fatalf("no facts of link %d in:\n%s", index, sensorstest.Format(list))
	return "", nil
}

// noneGone fails the test if a link was reported as gone.
func (b *bed) noneGone(list []mihf.Observation) {
	b.t.Helper()
	if i := find(list, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsLinkGone }); i >= 0 {
		b.t.Errorf("a link is gone:\n%s", sensorstest.Format(list[i:i+1]))
	}
}

func (b *bed) egress(what string, match func(*mihf.Egress) bool) mihf.Egress {
	b.t.Helper()
	o := b.want(what, isEgress(match))
	return *o.Egress
}

// second adds a veth w0 with 10.1.0.1/24, up, in the bed.
func second(b *bed) {
	b.ns.Pair("w0", b.far, "q0")
	b.ns.Up("w0")
	b.far.Up("q0")
	b.ns.AddAddr("w0", "10.1.0.1/24", 0, 0)
}

func (b *bed) counter(name string) uint64 {
	b.t.Helper()
	for _, c := range b.sensor.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	b.t.Fatalf("no counter %s", name)
	return 0
}

func find(list []mihf.Observation, match func(*mihf.Observation) bool) int {
	return slices.IndexFunc(list, func(o mihf.Observation) bool { return match(&o) })
}

func TestKernelContract(t *testing.T) {
	ns := netns.New(t)
	sensorstest.Contract(t, func(testing.TB) sensors.Sensor {
		return rtnl.New(rtnl.Options{Netns: ns.Handle})
	}, func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsCondition && o.Condition.Condition == mihf.ConditionOK
	})
}

func TestKernelStart(t *testing.T) {
	b := newBed(t, nil, nil)
	v0 := b.ns.Index("v0")
	i := find(b.seen, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsLink && o.Facts.Index == v0 })
	if i < 0 {
		t.Fatalf("no v0 in:\n%s", sensorstest.Format(b.seen))
	}
	link, f := b.seen[i].Link, b.seen[i].Facts
	if f.Name != "v0" || f.Kind != "veth" || !f.AdminUp || !f.Carrier || f.Oper != mihf.OperUp || f.MTUBytes != 1500 ||
		link.Type() != mihf.LinkEthernet || !f.Running() || !f.HasAddress(netip.MustParseAddr("10.0.0.1")) {
		t.Errorf("facts of v0: %v %+v", link, *f)
	}
	if len(f.Defaults) != 1 || f.Defaults[0] != (mihf.Route{Gateway: netip.MustParseAddr(gateway), Table: 254, Metric: 100}) {
		t.Errorf("default routes: %+v", f.Defaults)
	}
	e4 := find(b.seen, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsEgress && !o.Egress.IPv6 })
	e6 := find(b.seen, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsEgress && o.Egress.IPv6 })
	if e4 < i || e6 < i {
		t.Fatalf("links come first, then both egresses:\n%s", sensorstest.Format(b.seen))
	}
	want := mihf.Egress{
		Link: link, Gateway: netip.MustParseAddr(gateway), Source: netip.MustParseAddr("10.0.0.1"), Table: 254, Metric: 100,
	}
	if got := *b.seen[e4].Egress; got != want {
		t.Errorf("egress %+v, want %+v", got, want)
	}
	if got := *b.seen[e6].Egress; got != (mihf.Egress{IPv6: true}) {
		t.Errorf("IPv6 egress %+v, want none", got)
	}
	if j := find(b.seen, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsLink && o.Facts.Name == "lo" }); j >= 0 {
		t.Error("the loopback is published")
	}
}

// BenchmarkCarrier is the time from the loss of carrier (the far end goes down) until the
// observation is there, and back.
func BenchmarkCarrier(b *testing.B) {
	ns, far := netns.New(b), netns.New(b)
	ns.Pair("v0", far, "p0")
	ns.Up("v0")
	far.Up("p0")
	r := sensorstest.Start(b, rtnl.New(rtnl.Options{Netns: ns.Handle, Settle: -1}))
	carrier := func(want bool) {
		r.Until(b, "carrier", func(o *mihf.Observation) bool {
			return o.Kind == mihf.ObsLink && o.Facts.Name == "v0" && o.Facts.Carrier == want && o.Facts.Running() == want
		})
	}
	carrier(true)
	for b.Loop() {
		far.Down("p0")
		carrier(false)
		far.Up("p0")
		carrier(true)
	}
}
