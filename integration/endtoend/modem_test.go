package endtoend

import (
	"fmt"
	"math"
	"testing"
	"time"

	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/integration/modem/mock"
	"mihf.dev/mihf"
)

// M04: "LINK_DOWN within 1 s of the D-Bus signal even if the netdev still has carrier and
// address; reason copied." The kernel's and ModemManager's views are one link of the daemon, and a
// reading's sentinels (M06) reach no client. ModemManager is a mock: the real one has no network
// interface here.
func TestM04BearerLost(t *testing.T) {
	bus := daemons.Bus(t, daemons.BusConfig{})
	mm, err := mock.Start(daemons.DialBus(t, bus))
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	modem, bearer := mock.Root+"/Modem/2", mock.Root+"/Bearer/5"
	must(mm.Bearer(bearer, true, "v0"))
	phone := mock.Phone("490154203237518").Interface("v0", bearer)
	phone[mock.Signal]["Lte"] = mock.Numbers("rsrp", -90, "rsrq", 255, "snr", -math.MaxFloat64)
	must(mm.Add(modem, phone))
	b := newBedWith(t, bedConfig{bus: bus.Address, rest: fmt.Sprintf("[sensors.modem]\nbus = %q\npoll = \"1s\"\n", bus.Address)})
	b.node.Up("v0")
	b.peer.Up("p0")
	b.node.AddAddr("v0", "192.0.2.2/24", 0, 0)
	up := b.event(mihf.LinkUp, nil)
	known := func(s *mihf.Snapshot) bool {
		l := named(s, "v0")
		rsrp, _ := l.Values.Get(mihf.ParamRSRP)
		return len(s.Links) == 1 && l.Up && l.PoA == "26201-1c3d4e5" && l.Technology == "lte" && rsrp == -90 && !l.Values.Has(mihf.ParamSINR) && !l.Values.Has(mihf.ParamRSRQ)
	}
	b.snapshot("the cell and the signal of the one link", known)
	overDBus, err := mihdbus.Dial(bus.Address, mihdbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { overDBus.Close() })
	if s, err := overDBus.Snapshot(t.Context()); err != nil || !known(s) {
		t.Errorf("over D-Bus: %+v, %v", s, err)
	}
	began := time.Now()
	must(mm.State(modem, 8, 3))
	down := b.event(mihf.LinkDown, nil)
	took := time.Since(began)
	if down.Link != up.Link || down.Down.Code != 3 || down.Down.PoA != "26201-1c3d4e5" {
		t.Errorf("%+v of %s, want reason 3 of %s", down.Down, down.Link, up.Link)
	}
	if f := b.link("v0").Facts; !f.Running() || len(f.Addresses) == 0 {
		t.Errorf("the interface itself is not as it was: %+v", f)
	}
	t.Logf("Link_Down came %v after the signal", took)
	must(mm.State(modem, 11, 1))
	b.event(mihf.LinkUp, nil)
	must(mm.Bearer(bearer, false, "v0"))
	b.event(mihf.LinkDown, nil)
	must(mm.Bearer(bearer, true, "v0"))
	b.event(mihf.LinkUp, nil)
	must(mm.Remove(modem)) // the interface is the kernel's: it goes on by its word
	b.snapshot("the link by the kernel's word", func(s *mihf.Snapshot) bool {
		l := named(s, "v0")
		return len(s.Links) == 1 && l.Up && l.Association == mihf.AssociationNone
	})
}
