package linkstate_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// "Events are differences of states: the same observation again gives no event."
func TestSameObservationGivesNoEvent(t *testing.T) {
	h := onWiFi(t)
	for range 30 {
		h.give(device{v4: true}.facts())
		h.give(association(mihf.AssociationAuthorised, apA, "home"))
		h.advance(time.Second)
	}
	h.want()
	h.give(device{v4: true, v6: true, tentative: true}.facts())
	h.want("address_changed invalid Prefix>2001:db8::7/64")
	for range 10 {
		h.give(device{v4: true, v6: true, tentative: true}.facts())
	}
	h.want()
	h.give(left(mihf.DownExplicitDisconnect, false))
	h.advance(time.Second)
	h.drop()
	for range 3 {
		h.give(left(mihf.DownExplicitDisconnect, false))
		h.advance(time.Second)
	}
	h.give(&mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
	h.drop()
	h.give(&mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
}

// Two entries with one prefix are two addresses, not one that keeps changing.
func TestTwinAddresses(t *testing.T) {
	h := onCable(t)
	twin := []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.7/24"), Deprecated: true}}
	h.give(device{v4: true, extra: twin}.facts())
	h.want("address_changed 192.0.2.7/24>192.0.2.7/24 minor")
	h.give(device{v4: true, extra: twin}.facts())
	h.want()
}

// "Link_Down comes at once where it is certain."
func TestCertainLinkDownAtOnce(t *testing.T) {
	h := onCable(t)
	h.give(device{v4: true, down: true}.facts())
	h.want("path_lost v4 link_down", "link_down carrier withheld 0s")
	h = onCable(t)
	h.give(device{v4: true, admin: true, down: true}.facts())
	h.want("path_lost v4 link_down", "link_down admin withheld 0s")
	h = onWiFi(t)
	h.give(device{v4: true, admin: true, down: true}.facts())
	h.want("path_lost v4 link_down", "link_down admin withheld 0s")
}

// Carrier loss is a down signal independent of addresses.
func TestCarrierLossKeepsAddress(t *testing.T) {
	h := onCable(t)
	h.give(device{v4: true, down: true}.facts())
	h.drop()
	var s mihf.LinkStatus
	h.m.Status(h.now, &s)
	if s.Up || s.UsableIPv4 || len(s.Facts.Addresses) != 1 {
		t.Errorf("%+v", s)
	}
}

// "within Settle where evidence of a roam may still arrive": without evidence Link_Down
// follows within 50 ms, with the radio's reason whichever view came first.
func TestLinkDownWithoutEvidence(t *testing.T) {
	carrier := device{v4: true, down: true}.facts
	for _, c := range []struct {
		name string
		give []*mihf.Observation
	}{
		{"disconnected by the AP", []*mihf.Observation{left(mihf.DownAuthenticationFailure, false)}},
		{"carrier first", []*mihf.Observation{carrier(), left(mihf.DownAuthenticationFailure, false)}},
		{"radio first", []*mihf.Observation{left(mihf.DownAuthenticationFailure, false), carrier()}},
		{"carrier twice", []*mihf.Observation{carrier(), left(mihf.DownAuthenticationFailure, false), carrier()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := onWiFi(t)
			for _, o := range c.give {
				h.give(o)
			}
			h.want("path_lost v4 link_down")
			h.advance(50 * time.Millisecond)
			h.want("link_down authentication_failure withheld 30ms")
		})
	}
	t.Run("the radio says why later than the carrier went", func(t *testing.T) {
		h := onWiFi(t)
		h.give(carrier())
		h.advance(60 * time.Millisecond)
		h.give(left(mihf.DownAuthenticationFailure, false))
		h.want("path_lost v4 link_down")
		h.advance(50 * time.Millisecond)
		h.want("link_down authentication_failure withheld 90ms")
	})
	t.Run("and it was a roam", func(t *testing.T) {
		h := onWiFi(t)
		h.give(carrier())
		h.advance(200 * time.Millisecond)
		h.give(left(mihf.DownExplicitDisconnect, true))
		h.advance(2 * time.Second)
		h.want("path_lost v4 link_down")
	})
	t.Run("the radio says nothing", func(t *testing.T) {
		h := onWiFi(t)
		h.give(carrier())
		h.advance(240 * time.Millisecond)
		h.want("path_lost v4 link_down")
		h.advance(20 * time.Millisecond)
		h.want("link_down carrier withheld 250ms")
	})
	t.Run("beacon loss is no evidence, even our own", func(t *testing.T) {
		h := onWiFi(t)
		h.give(left(mihf.DownBeaconLoss, true))
		h.advance(50 * time.Millisecond)
		h.want("path_lost v4 link_down", "link_down beacon_loss withheld 30ms")
	})
}

// "withheld (at most RoamWithhold) only on such evidence: our own side left, or
// authentication to the same ESS has begun."
func TestLinkDownWithheldOnEvidence(t *testing.T) {
	for _, c := range []struct {
		name     string
		give     []*mihf.Observation
		withheld time.Duration
	}{
		{"our side left", []*mihf.Observation{left(mihf.DownExplicitDisconnect, true)}, 3 * time.Second},
		{"carrier, then our side left", []*mihf.Observation{device{v4: true, down: true}.facts(), left(mihf.DownExplicitDisconnect, true)}, 3 * time.Second},
		{"authenticating to the same ESS", []*mihf.Observation{left(mihf.DownUnknown, false), association(mihf.AssociationAuthenticating, apB, "home")}, 3 * time.Second},
		{"associated to the same ESS", []*mihf.Observation{association(mihf.AssociationAssociated, apB, "home")}, 3 * time.Second},
		{"authenticating to another ESS", []*mihf.Observation{left(mihf.DownExplicitDisconnect, true), association(mihf.AssociationAuthenticating, apB, "cafe")}, 0},
		{"authenticating to who knows what", []*mihf.Observation{left(mihf.DownUnknown, false), association(mihf.AssociationAuthenticating, apB, "")}, 30 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := onWiFi(t)
			for _, o := range c.give {
				h.give(o)
			}
			before := h.now
			h.advance(10 * time.Second)
			var down *mihf.Event
			for i := range h.got {
				if h.got[i].Kind == mihf.LinkDown {
					down = &h.got[i]
				}
			}
			if down == nil || down.Down.Withheld != c.withheld || down.At != before.Add(c.withheld) {
				t.Fatalf("%+v, want it withheld %v", down, c.withheld)
			}
			h.drop()
		})
	}
}

// The operator's word ends what was withheld.
func TestAdminDownEndsWithholding(t *testing.T) {
	h := onWiFi(t)
	h.give(left(mihf.DownExplicitDisconnect, true))
	h.advance(time.Second)
	h.give(device{v4: true, admin: true, down: true}.facts())
	h.want("path_lost v4 link_down", "link_down admin withheld 1s")
}

// "A roam that succeeds is one Link_Handover_Complete and never a Link_Down", in whatever
// order the radio's and the kernel's views come.
func TestRoam(t *testing.T) {
	up, down := device{v4: true}.facts, device{v4: true, down: true}.facts
	leaves, auth := left(mihf.DownExplicitDisconnect, true), association(mihf.AssociationAuthenticating, apB, "home")
	assoc, open := association(mihf.AssociationAssociated, apB, "home"), association(mihf.AssociationAuthorised, apB, "home")
	for i, steps := range [][]*mihf.Observation{
		{leaves, auth, assoc, open},
		{leaves, down(), auth, assoc, open, up()},
		{down(), leaves, auth, assoc, up(), open},
		{leaves, down(), open, up()},
		{assoc, open},
		{down(), auth, open, up()},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			h := onWiFi(t)
			for _, o := range steps {
				copied := *o
				h.give(&copied)
				h.advance(25 * time.Millisecond)
			}
			gap := time.Duration(len(steps)-1) * 25 * time.Millisecond
			h.want("path_lost v4 link_down", fmt.Sprintf("link_handover_complete a>b gap %v", gap), "path_usable v4")
			h.advance(10 * time.Second)
			if h.m.PoA() != apB || !h.m.Announced() {
				t.Errorf("at %v, up %v", h.m.PoA(), h.m.Announced())
			}
		})
	}
}

// A reassociation seen only by the new access point in the radio's readings.
func TestRoamWithoutDetachment(t *testing.T) {
	h := onWiFi(t)
	h.give(radio(apB, -60))
	h.want("link_handover_complete a>b gap 0s", "link_parameters_report rssi_dbm -60")
	// A reading of the old one, taken before and delivered late, is no roam back.
	old := radio(apA, -80)
	old.Age = 10 * time.Millisecond
	h.give(old)
	h.want()
}

// Back at the same access point while Link_Down was withheld: nothing but time was lost.
func TestReattachToTheSame(t *testing.T) {
	h := onWiFi(t)
	h.give(left(mihf.DownExplicitDisconnect, true))
	h.advance(time.Second)
	h.give(association(mihf.AssociationAuthorised, apA, "home"))
	h.want("path_lost v4 link_down", "path_usable v4")
	h.advance(5 * time.Second)
}

// Another network is no roam, withheld or not.
func TestOtherNetwork(t *testing.T) {
	h := onWiFi(t)
	h.give(association(mihf.AssociationAuthorised, apB, "cafe"))
	h.want("path_lost v4 link_down", "link_down explicit_disconnect withheld 0s", "link_up", "path_usable v4")
	h.give(left(mihf.DownExplicitDisconnect, true))
	h.advance(time.Second)
	h.give(association(mihf.AssociationAuthorised, apA, "home"))
	h.want("path_lost v4 link_down", "link_down explicit_disconnect withheld 1s", "link_up", "path_usable v4")
	if h.m.PoA() != apA {
		t.Error(h.m.PoA())
	}
}

// Authentication to another access point leaves the old attachment as it is, also for
// facts that come meanwhile.
func TestAuthenticatingWhileAttached(t *testing.T) {
	h := onWiFi(t)
	h.give(association(mihf.AssociationAuthenticating, apB, "home"))
	h.give(device{v4: true, v6: true}.facts())
	h.want("address_changed invalid Prefix>2001:db8::7/64", "path_usable v6")
}

// A link that has been down does not hand over from the access point that it had then.
func TestNoHandoverAcrossLinkDown(t *testing.T) {
	h := newMachine(t)
	h.give(device{v4: true}.facts()) // no sensor tells of associations, only of readings
	h.give(radio(apA, -60))
	h.give(device{v4: true, down: true}.facts())
	h.advance(time.Minute)
	h.give(device{v4: true}.facts())
	h.drop()
	h.give(radio(apB, -60))
	h.want("link_parameters_report rssi_dbm -60")
}

func TestHoldDown(t *testing.T) {
	h := onCable(t)
	if h.m.HeldDown(h.now) {
		t.Error("a link that came up first is held down")
	}
	h.give(device{down: true}.facts())
	h.advance(time.Second)
	h.give(device{}.facts())
	h.advance(4 * time.Second)
	if !h.m.HeldDown(h.now) {
		t.Error("not held down after it came back")
	}
	h.give(device{v4: true}.facts()) // its address is late: only now it can prove itself
	h.advance(4999 * time.Millisecond)
	if !h.m.HeldDown(h.now) || h.m.HeldUntil() != h.now.Add(time.Millisecond) {
		t.Error("the hold-down does not count from the usable path")
	}
	h.advance(time.Millisecond)
	if h.m.HeldDown(h.now) {
		t.Error("held down for ever")
	}
	h.drop()
	// A route that was away shortly holds nothing down; one that was away long does.
	for away, want := range map[time.Duration]bool{3 * time.Second: false, 8 * time.Second: true} {
		h.give(device{v4: true, noRoute: true}.facts())
		h.advance(away)
		h.give(device{v4: true}.facts())
		if h.m.HeldDown(h.now) != want {
			t.Errorf("route away for %v: held down %v", away, !want)
		}
		h.advance(time.Minute)
		h.drop()
	}
}

func TestGone(t *testing.T) {
	h := onWiFi(t)
	h.give(left(mihf.DownExplicitDisconnect, true))
	h.advance(time.Second)
	h.give(&mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownMoved})
	h.want("path_lost v4 link_down", "link_down moved_netns withheld 1s", "link_removed moved_netns")
	h.advance(10 * time.Second)
	var s mihf.LinkStatus
	h.m.Status(h.now, &s)
	if s.Facts != nil || s.PoA != "" || s.SSID != nil || s.Up || s.LCI != nil {
		t.Errorf("what is gone is still known: %+v", s)
	}
	h.give(device{v4: true}.facts())
	h.want("address_changed invalid Prefix>192.0.2.7/24", "link_up", "path_usable v4")
	if !h.m.HeldDown(h.now) {
		t.Error("a link that was plugged in again has nothing to prove")
	}
	// A link of which only the radio was heard is removed too: no stale entries.
	h = newMachine(t)
	h.give(radio(apA, -70))
	h.drop()
	h.give(&mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
	h.want("link_removed removed")
}

func TestRename(t *testing.T) {
	h := onCable(t)
	h.give(device{v4: true, name: "lan\x1b"}.facts())
	h.want("link_renamed wlan0>lan\x1b")
}

// A network-ordered handover is announced once, and is no loss.
func TestOrderedHandover(t *testing.T) {
	h := onWiFi(t)
	order := func(to mihf.PoA) *mihf.Observation { return &mihf.Observation{Kind: mihf.ObsHandover, PoA: to} }
	h.give(order(apA)) // it is there
	h.give(order(apB))
	h.give(order(apB))
	h.want("link_handover_imminent a>b ordered")
	h.judge(0.01, 1, 0.98)
	h.want()
	h.give(association(mihf.AssociationAuthorised, apB, "home"))
	h.want("link_handover_complete a>b ordered gap 0s")
	h.advance(time.Second)
	h.give(order(apA))
	h.want("link_handover_imminent b>a ordered")
	h.advance(11 * time.Second) // it was not carried out
	h.give(order(apA))
	h.want("link_handover_imminent b>a ordered")
}

func TestDetected(t *testing.T) {
	h := newMachine(t)
	h.advance(time.Second)
	h.m.Observe(h.now, &mihf.Observation{At: h.now.Add(time.Second), Age: 200 * time.Millisecond, Kind: mihf.ObsDetected, Detected: &mihf.Detected{PoA: apB}}, &h.ev)
	h.take()
	if e := h.got[0]; e.At > h.now {
		t.Errorf("heard in the future, at %v", e.At)
	}
	h.want("link_detected")
}

// Observations without their payload are not errors of the machine.
func TestEmptyObservations(t *testing.T) {
	h := newMachine(t)
	for k := range mihf.ObservationKind(20) {
		if k != mihf.ObsHandover {
			h.give(&mihf.Observation{Kind: k})
		}
	}
	h.want("link_removed explicit_disconnect") // by ObsLinkGone
}

// The technology is that of the attachment, and ends with it.
func TestTechnology(t *testing.T) {
	h := newMachine(t)
	want := func(want string) {
		t.Helper()
		var s mihf.LinkStatus
		if h.m.Status(h.now, &s); s.Technology != want {
			t.Errorf("technology %q, want %q", s.Technology, want)
		}
	}
	o := association(mihf.AssociationAssociated, apA, "")
	o.Association.Technology = "lte"
	h.give(o)
	want("lte")
	h.give(association(mihf.AssociationDisconnected, apA, ""))
	want("")
}
