package netns_test

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"

	"mihf.dev/integration/netns"
)

func TestPairIndexesDiffer(t *testing.T) {
	a, b := netns.New(t), netns.New(t)
	for _, name := range []string{"v0", "v1", "v2"} {
		a.Pair(name, b, "p"+name)
		if a.Index(name) == b.Index("p"+name) {
			t.Errorf("%s: both ends have ifindex %d", name, a.Index(name))
		}
	}
}

func TestDoStaysInside(t *testing.T) {
	a := netns.New(t)
	home, err := vnetns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	err = a.Do(func() error {
		inside, err := vnetns.Get()
		if err != nil {
			return err
		}
		defer inside.Close()
		if !inside.Equal(a.Handle) {
			t.Error("Do ran in another namespace")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := vnetns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if !after.Equal(home) {
		t.Error("the test's goroutine has moved")
	}
}

func TestRoutesAndNexthops(t *testing.T) {
	a, b := netns.New(t), netns.New(t)
	a.Pair("v0", b, "p0")
	a.Up("v0")
	b.Up("p0")
	a.AddAddr("v0", "10.0.0.1/24", 0, 0)
	a.AddRule(false, 100, 77, 0)
	a.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "10.0.0.2", Dev: "v0", Metric: 10, Table: 77})
	a.AddNexthop(5, "v0", "10.0.0.3")
	a.AddRoute(netns.Route{Dst: "0.0.0.0/0", Metric: 20, NhID: 5})
	a.AddHostRoutes("v0", netip.MustParseAddr("10.9.0.0"), 2500)
	count := func() int {
		list, err := a.NL.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if got := count(); got != 2502 {
		t.Errorf("%d routes in main, want 2500 host routes, the subnet and one default", got)
	}
	a.DelNexthop(5)
	if got := count(); got != 2501 {
		t.Errorf("%d routes in main after the nexthop is gone", got)
	}
}
