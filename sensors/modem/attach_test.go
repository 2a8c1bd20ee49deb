package modem

import (
	"slices"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// connected returns a modem with a session over its network interface.
func connected(path dbus.ObjectPath, mm *manager) *fakeModem {
	m := registered(path, imei).set(modemInterface, "State", int32(stateConnected)).
		set(modemInterface, "Bearers", []dbus.ObjectPath{bearer0}).
		set(modemInterface, "Ports", []struct {
			A string
			B uint32
		}{{"cdc-wdm0", 6}, {"wwan0", portNet}})
	mm.plug(m)
	mm.bearers[bearer0] = dict{"Connected": dbus.MakeVariant(true), "Interface": dbus.MakeVariant("wwan0")}
	mm.links[7] = wwan0
	return m
}

const (
	authorised = "wwan0 authorised " + string(cellA)
	atCell     = string(cellA) + " "
	noModem    = "ModemManager has no modem; it is noticed when it has one"
)

// inConnected runs f with a modem that is connected.
func inConnected(t *testing.T, set func(mm *manager), f func(b *bed)) {
	t.Helper()
	mm := newManager()
	connected(modem0, mm)
	if set != nil {
		set(mm)
	}
	inBubble(t, mm, nil, f)
}

// "Where a modem has a network interface, its link is that interface's, with the id that the
// sensor of links gives it; before that sensor said that it is there nothing is said of it,
// for 3 s at most."
func TestJoins(t *testing.T) {
	inConnected(t, func(mm *manager) { clear(mm.links) }, func(b *bed) {
		b.want("starting", "ok")
		b.change(func() { b.links[7] = wwan0 })
		time.Sleep(identifyMax)
		b.want("wwan0 authorised", authorised)
		b.Log("# its interface is there again under another id")
		b.change(func() { b.links[7] = "wwan-0000000a" })
		time.Sleep(reconcile)
		b.want("wwan0 none unknown/0", "wwan-0000000a authorised "+string(cellA))
	})
	inConnected(t, func(mm *manager) { clear(mm.links) }, func(b *bed) {
		b.want("starting", "ok")
		time.Sleep(linkWait)
		b.want("own authorised", "own authorised "+string(cellA))
		b.change(func() { b.links[7] = wwan0 })
		time.Sleep(reconcile)
		b.want("own gone unknown", authorised)
	})
}

// A modem without a bearer is joined by its own interface, and so is one whose bearer has
// another one of them.
func TestJoinsTheBearersInterface(t *testing.T) {
	mm := newManager()
	connected(modem0, mm).set(modemInterface, "Ports", []struct {
		A string
		B uint32
	}{{"wwan1", portNet}, {"wwan0", portNet}})
	mm.links[8] = "wwan-00000008"
	mm.bearers[bearer0]["Interface"] = dbus.MakeVariant("wwan1")
	inBubble(t, mm, nil, func(b *bed) {
		b.want("starting", "ok", "wwan-00000008 authorised", "wwan-00000008 authorised "+string(cellA))
	})
}

// M01: "Enumeration only via ObjectManager.GetManagedObjects; test with paths 2, 7, 31."
func TestM01AnyPaths(t *testing.T) {
	mm := newManager()
	for _, n := range []string{"2", "7", "31"} {
		mm.plug(registered("/org/freedesktop/ModemManager1/Modem/"+dbus.ObjectPath(n), imei+n))
	}
	inBubble(t, mm, func(o *Options) { o.NoCells = true }, func(b *bed) {
		for _, n := range []string{"2", "7", "31"} {
			b.names[mihf.NewLinkID(mihf.LinkWWAN, "modem/"+imei+n)] = n
		}
		b.want("starting", "2 associated", "31 associated", "7 associated", "ok")
	})
}

// M02: "one link_id across reset; calls to a removed path are cancelled; MODEM_RESET then
// LINK_UP, no duplicate link."
func TestM02Reset(t *testing.T) {
	inBubble(t, newManager(registered(modem0, imei)), nil, func(b *bed) {
		b.want("starting", "own associated", "ok", "own associated "+string(cellA))
		b.change(func() { b.hang["GetLocation"] = true })
		time.Sleep(cellEvery)
		before := b.count("GetLocation")
		b.remove(modem0)
		b.want("own gone removed", "unavailable "+noModem)
		b.change(func() { clear(b.hang) })
		time.Sleep(callTimeout)
		if n := b.counter("mihf_modem_unanswered_calls_total"); n != 0 {
			b.Errorf("%d calls went to their end, not given up", n)
		}
		if n := b.count("GetLocation"); n != before {
			b.Errorf("the modem that is gone was asked %d times more", n-before)
		}
		b.add(registered(modem1, imei))
		b.settle()
		b.want("own associated", "ok", "own associated "+string(cellA))
	})
}

// With a network interface the kernel says that it is gone.
func TestM02ResetOfAnInterface(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.want("starting", "ok", "wwan0 authorised", authorised)
		b.remove(modem0)
		b.want("wwan0 none removed/0", "unavailable "+noModem)
		connected(modem1, b.manager)
		b.emit(rootPath, objectManager+".InterfacesAdded", modem1, map[string]dict{modemInterface: {}})
		b.settle()
		b.want("ok", "wwan0 authorised", authorised)
	})
}

// M03: "State is int32; -1 gives one modem_unusable{reason}; no polling or Signal.Setup in that
// state; leaves it on StateChanged/InterfacesAdded."
func TestM03Failed(t *testing.T) {
	m := registered(modem0, imei).set(modemInterface, "State", int32(-1)).set(modemInterface, "StateFailedReason", uint32(2))
	inBubble(t, newManager(m), nil, func(b *bed) {
		b.want("starting", "own disconnected unknown/0", "degraded modem 0 (LTE-1) cannot be used: the SIM is missing")
		time.Sleep(10 * time.Minute)
		b.want()
		for _, member := range []string{"Setup", "SetupThresholds", "GetLocation"} {
			if n := b.count(member); n != 0 {
				b.Errorf("%s was called %d times", member, n)
			}
		}
		b.state(modem0, 3, 0)
		b.settle()
		b.want("ok")
		b.state(modem0, stateRegistered, 0)
		b.settle()
		b.want("own associated", "own associated "+string(cellA))
	})
}

// M04: "LINK_DOWN within 1 s of the D-Bus signal even if the netdev still has carrier and
// address; reason copied." Here: at once, before ModemManager has been asked anything.
func TestM04NetworkDisconnects(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		b.change(func() { b.hang["GetManagedObjects"], b.hang["GetAll"] = true, true })
		b.state(modem0, stateRegistered, 3)
		b.want("wwan0 disconnected "+atCell+"unknown/3", "wwan0 associated "+string(cellA))
	})
	inConnected(t, nil, func(b *bed) { // the bearer's word alone
		b.all(false)
		b.bearer(false, "wwan0")
		b.settle()
		b.want("wwan0 disconnected "+atCell+"unknown/0", "wwan0 associated "+string(cellA))
	})
}

// An answer that is older than a signal undoes nothing that the signal told.
func TestOldAnswer(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		late := func() { // an answer of now is under way for a second
			b.change(func() { b.slow["GetManagedObjects"] = time.Second })
			b.set(modem0, modemInterface, "Model", "M")
			time.Sleep(200 * time.Millisecond)
			b.change(func() { clear(b.slow) })
		}
		late()
		b.state(modem0, stateRegistered, 3)
		time.Sleep(2 * time.Second)
		b.want("wwan0 disconnected "+atCell+"unknown/3", "wwan0 associated "+string(cellA))
		late()
		b.remove(modem0)
		time.Sleep(2 * time.Second)
		b.want("wwan0 none removed/0", "unavailable "+noModem)
	})
}

// Coverage lost and found, with the session standing or not.
func TestCoverage(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.state(modem0, stateConnected, reasonUser)
		b.settle()
		b.all(false)
		b.set(modem0, gppInterface, "RegistrationState", uint32(registrationSearching))
		b.settle()
		b.want("wwan0 disconnected " + atCell + "beacon_loss/0")
		b.set(modem0, gppInterface, "RegistrationState", uint32(5))
		b.change(func() { b.cells[modem0] = "262,01,1A2B,1C3D4E6,0" })
		b.settle()
		b.want("wwan0 authorised", "wwan0 authorised "+string(cellB))
		b.state(modem0, 7, 0)
		b.want("wwan0 disconnected " + string(cellB) + " beacon_loss/0")
		b.set(modem0, gppInterface, "RegistrationState", uint32(registrationDenied))
		b.settle()
		b.state(modem0, stateRegistered, 0)
		b.settle()
		b.want()
	})
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		b.set(modem0, gppInterface, "RegistrationState", uint32(registrationDenied))
		b.settle()
		b.want("wwan0 disconnected " + atCell + "authentication_failure/0")
	})
}

// Two modems at once, and two that claim to be the same.
func TestTwoModems(t *testing.T) {
	mm := newManager(registered(modem0, imei), registered(modem1, imei))
	mm.objects[modem1][modemInterface]["Device"] = dbus.MakeVariant("/sys/2")
	inBubble(t, mm, func(o *Options) { o.NoCells = true }, func(b *bed) {
		b.names[mihf.NewLinkID(mihf.LinkWWAN, "modem/"+imei+"//sys/2")] = "second"
		b.want("starting", "own associated", "second associated", "ok")
		b.change(func() { b.hang["Setup"] = true })
		b.set(modem0, signalInterface, "Rate", uint32(0)) // it is asked to poll again, and hangs
		time.Sleep(setupEvery)
		b.state(modem1, 7, 0)
		b.want("second disconnected beacon_loss/0")
		b.remove(modem0)
		b.remove(modem1)
		b.want("own gone removed", "second gone removed", "unavailable "+noModem)
	})
}

// The access technology is told with the attachment, and anew when it changes.
func TestTechnology(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		told := func() (list []string) {
			b.settle()
			for _, o := range b.rec.Drain() {
				if o.Association != nil {
					list = append(list, o.Association.State.String()+" "+o.Association.Technology)
				}
			}
			return list
		}
		want := func(want ...string) {
			t.Helper()
			if d := cmp.Diff(want, told()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		}
		want("authorised lte", "authorised lte")
		b.set(modem0, modemInterface, "AccessTechnologies", uint32(accessNR|1<<14))
		want("authorised lte+5gnr")
		b.set(modem0, modemInterface, "AccessTechnologies", uint32(accessAny)) // not known
		want()
		b.state(modem0, stateRegistered, 0)
		want("disconnected ", "associated ")
	})
	for access, want := range map[uint32]string{0: "", 1: "", 1 << 1: "gsm", 1 << 9: "umts", 1 << 12: "cdma", 1 << 14: "lte", 1 << 15: "5gnr", 1 << 16: "lte"} {
		if got := technologyOf(access); got != want {
			t.Errorf("%#x: %q, want %q", access, got, want)
		}
	}
}

// A modem that names no equipment is known by ModemManager's id for it, and without that by
// its device.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		i    modemInfo
		want string
	}{
		{modemInfo{equipment: "49015", identifier: "d", device: "/sys/x"}, "modem/49015"},
		{modemInfo{equipment: "000000000000000", identifier: "d", device: "/sys/x"}, "modem/d"},
		{modemInfo{device: "/sys/x"}, "modem//sys/x"},
	} {
		if got := keyOf(&c.i); got != c.want {
			t.Errorf("%+v: %s, want %s", c.i, got, c.want)
		}
	}
}

// "At most 16 modems are followed, with 16 bearers each."
func TestTooMany(t *testing.T) {
	mm := newManager()
	for n := range maxModems + 3 {
		mm.plug(registered("/org/freedesktop/ModemManager1/Modem/"+dbus.ObjectPath(rune('a'+n)), imei+string(rune('a'+n))))
	}
	inBubble(t, mm, nil, func(b *bed) {
		if got := b.all(false); !slices.Contains(got, "degraded more than 16 modems: 3 are not looked at") {
			b.Error(got)
		}
	})
	var bearers []dbus.ObjectPath
	for n := range maxBearers + 3 {
		bearers = append(bearers, "/org/freedesktop/ModemManager1/Bearer/"+dbus.ObjectPath(rune('a'+n)))
	}
	inBubble(t, newManager(registered(modem0, imei).set(modemInterface, "Bearers", bearers)), nil, func(b *bed) {
		b.settle()
		if n := b.count("GetAll"); n != maxBearers { // each is unknown to the fake, so each is asked for once
			b.Errorf("%d bearers were read", n)
		}
	})
}
