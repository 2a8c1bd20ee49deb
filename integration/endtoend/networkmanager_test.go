package endtoend

import (
	"slices"
	"testing"

	"github.com/godbus/dbus/v5"

	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
)

// profile is a NetworkManager connection with an address of its own, a gateway and a metric.
func profile(name, address, gateway, metric string) string {
	return "[connection]\nid=" + name + "\ntype=ethernet\ninterface-name=" + name +
		"\n[ipv4]\nmethod=manual\naddress1=" + address + "," + gateway + "\nroute-metric=" + metric + "\n[ipv6]\nmethod=disabled\n"
}

// NetworkManager's activations and its changes of metrics are seen as what they are: a path that
// begins or ends, and another way out; never as a link that is lost.
func TestNetworkManager(t *testing.T) {
	bus := daemons.Bus(t, daemons.BusConfig{})
	b := newBed(t, "")
	b.node.Pair("v1", b.peer, "p1")
	b.peer.Up("p0")
	b.peer.Up("p1")
	nm := daemons.NetworkManager(t, bus, b.node, map[string]string{
		"v0": profile("v0", "192.0.2.2/24", "192.0.2.1", "100"), "v1": profile("v1", "198.51.100.2/24", "198.51.100.1", "200"),
	})
	out := func(s *mihf.Snapshot) (name string, metric uint32) {
		for _, e := range s.Egress {
			for _, l := range s.Links {
				if l.Link == e.Link && !e.IPv6 && l.Facts != nil {
					return l.Facts.Name, e.Metric
				}
			}
		}
		return "", 0
	}
	b.snapshot("both interfaces activated, v0 the way out", func(s *mihf.Snapshot) bool {
		v0, v1 := named(s, "v0"), named(s, "v1")
		name, metric := out(s)
		return v0 != nil && v1 != nil && v0.UsableIPv4 && v1.UsableIPv4 && name == "v0" && metric == 100
	})
	v0, v1 := b.link("v0").Link, b.link("v1").Link
	calm := func(what string) {
		t.Helper()
		if n := b.count(mihf.LinkDown) + b.count(mihf.PathLost); n != 0 {
			t.Errorf("%s: %d links or paths were lost", what, n)
		}
	}
	metric := func(m int64) {
		t.Helper()
		nm.Reapply("v0", func(settings map[string]map[string]dbus.Variant) {
			settings["ipv4"]["route-metric"] = dbus.MakeVariant(m)
		})
	}

	t.Log("# another metric, and still the best")
	metric(150)
	b.snapshot("the new metric of v0, and no other way out", func(s *mihf.Snapshot) bool {
		l := named(s, "v0")
		name, m := out(s)
		return name == "v0" && m == 150 && !slices.ContainsFunc(l.Facts.Defaults, func(r mihf.Route) bool { return r.Metric == 100 })
	})
	calm("a metric of 150")

	t.Log("# a metric that makes v1 the better one")
	metric(600)
	b.event(mihf.DefaultRouteChanged, func(e *mihf.Event) bool { return e.Egress.New.Link == v1 && !e.Egress.New.IPv6 })
	b.snapshot("v0 usable with its metric", func(s *mihf.Snapshot) bool {
		l := named(s, "v0")
		return l.UsableIPv4 && l.Up && len(l.Facts.Defaults) == 1 && l.Facts.Defaults[0].Metric == 600
	})
	calm("a metric of 600")
	metric(100)
	b.event(mihf.DefaultRouteChanged, func(e *mihf.Event) bool { return e.Egress.New.Link == v0 && !e.Egress.New.IPv6 })
	calm("a metric of 100")

	t.Log("# deactivated: the path is lost, the link is not")
	nm.Disconnect("v0")
	if e := b.event(mihf.PathLost, isIPv4); e.Link != v0 {
		t.Errorf("the path of %s was lost, want %s", e.Link, v0)
	}
	b.snapshot("v1 the way out, v0 up without an address", func(s *mihf.Snapshot) bool {
		l := named(s, "v0")
		name, _ := out(s)
		return name == "v1" && l.Up && !l.UsableIPv4 && len(l.Facts.Addresses) == 0
	})
	nm.Activate("v0")
	if e := b.event(mihf.PathUsable, isIPv4); e.Link != v0 {
		t.Errorf("the path of %s is usable, want %s", e.Link, v0)
	}
	b.event(mihf.DefaultRouteChanged, func(e *mihf.Event) bool { return e.Egress.New.Link == v0 })
	if n := b.count(mihf.LinkDown); n != 0 {
		t.Errorf("%d links were lost", n)
	}

	t.Log("# NetworkManager ends and comes back: nothing changes")
	lost := b.count(mihf.PathLost)
	nm.Terminate()
	nm.Restart()
	metric(101) // it is active again
	b.snapshot("the newest metric", func(s *mihf.Snapshot) bool {
		_, m := out(s)
		return m == 101
	})
	if n := b.count(mihf.LinkDown) + b.count(mihf.PathLost) - lost; n != 0 {
		t.Errorf("%d links or paths were lost with NetworkManager", n)
	}
}
