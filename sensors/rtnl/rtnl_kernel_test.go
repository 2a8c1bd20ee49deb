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
	seen   []mihf.Observation // before the last want matched
	fences int
}

const (
	deflt   = "0.0.0.0/0"
	gateway = "10.0.0.2"
)

func newBed(t *testing.T, change func(*rtnl.Options), before func(*bed)) *bed {
	t.Helper()
	b := &bed{t: t, ns: netns.New(t), far: netns.New(t)}
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
		if bad := sensorstest.Check(rtnl.Name, &b.seen[i]); bad != "" {
			b.t.Errorf("%s: %s", bad, sensorstest.Format(b.seen[i:i+1]))
		}
	}
	return b.seen[len(b.seen)-1]
}

// facts waits for facts of the link with that ifindex.
func (b *bed) facts(index int, what string, match func(*mihf.LinkFacts) bool) mihf.Observation {
	b.t.Helper()
	return b.want(what, func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsLink && o.Facts.Index == index && match(o.Facts)
	})
}

// fence makes the sensor work off what has happened so far, and returns what it emitted
// for it.
func (b *bed) fence() []mihf.Observation {
	b.t.Helper()
	index := b.ns.Index("fence" + string(rune('0'+b.fences%10)))
	from, to := "fence"+string(rune('0'+b.fences%10)), "fence"+string(rune('0'+(b.fences+1)%10))
	b.fences++
	b.ns.Rename(from, to)
	b.facts(index, "the fence", func(f *mihf.LinkFacts) bool { return f.Name == to })
	return b.seen[:len(b.seen)-1]
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
