package modem

import (
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/integration/modem/atmodem"
	"mihf.dev/mihf"
)

// Registration, access technology, cell, and the signal by polling, after thresholds were refused.
func TestRegistered(t *testing.T) {
	b := newBed(t)
	m := b.plug(2, atmodem.Config{})
	b.enable()
	b.waitFor("associated")
	b.wait("associated 26201-1c3d4e5")
	b.sample(map[mihf.Parameter]float64{mihf.ParamRSRP: -90, mihf.ParamRSRQ: -9})
	if n := b.counter("mihf_modem_refused_calls_total"); n != 1 {
		t.Errorf("%d calls were refused, want the one for thresholds", n)
	}
	m.Radio(func(r *atmodem.Radio) { r.RSRP, r.RSRQ, r.Bars = -110, -15, 1 })
	b.sample(map[mihf.Parameter]float64{mihf.ParamRSRP: -110, mihf.ParamRSRQ: -15})
	m.Network(func(n *atmodem.Network) { n.Access = atmodem.UMTS })
	b.Wait(t, "UMTS", func(o *mihf.Observation) bool { return o.Association != nil && o.Association.Technology == "umts" })
	b.sample(map[mihf.Parameter]float64{mihf.ParamRSCP: -95, mihf.ParamEcIo: -6})
}

// Coverage lost and found, and another cell.
func TestCoverage(t *testing.T) {
	b := newBed(t)
	m := b.plug(2, atmodem.Config{})
	b.enable()
	b.wait("associated 26201-1c3d4e5")
	m.Network(func(n *atmodem.Network) { n.Registration = atmodem.Searching })
	b.wait("disconnected 26201-1c3d4e5 beacon_loss")
	m.Network(func(n *atmodem.Network) { n.Registration, n.Cell = atmodem.Roaming, 0x1c3d4e6 })
	b.waitFor("associated")
	b.wait("associated 26201-1c3d4e6")
	m.Network(func(n *atmodem.Network) { n.Cell = 0x1c3d4e7 })
	b.wait("associated 26201-1c3d4e7")
	m.Network(func(n *atmodem.Network) { n.Registration = atmodem.Denied })
	b.waitFor("disconnected 26201-1c3d4e7")
}

// A bearer is connected, is without a network for a while, and is disconnected. (That the network
// hangs up, ModemManager hears with PPP from pppd only; see TestM04NetworkDisconnects in sensors/modem.)
func TestBearer(t *testing.T) {
	b := newBed(t)
	m := b.plug(2, atmodem.Config{})
	b.enable()
	b.wait("associated 26201-1c3d4e5")
	if _, err := b.call("Modem.Simple.Connect", map[string]dbus.Variant{"apn": dbus.MakeVariant("internet")}); err != nil {
		t.Fatal(err)
	}
	b.waitFor("authorised")
	if !m.Session() {
		t.Error("the modem has no session")
	}
	m.Radio(func(r *atmodem.Radio) { r.RSRP = -101 }) // the second port still answers
	b.sample(map[mihf.Parameter]float64{mihf.ParamRSRP: -101})
	m.Network(func(n *atmodem.Network) { n.Registration = atmodem.Searching })
	b.wait("disconnected 26201-1c3d4e5 beacon_loss")
	m.Network(func(n *atmodem.Network) { n.Registration = atmodem.Home })
	b.wait("authorised 26201-1c3d4e5")
	if _, err := b.call("Modem.Simple.Disconnect", dbus.ObjectPath("/")); err != nil {
		t.Fatal(err)
	}
	b.wait("disconnected 26201-1c3d4e5 explicit_disconnect")
}

// M03: a SIM that is missing.
func TestM03NoSIM(t *testing.T) {
	b := newBed(t)
	m := b.plug(1, atmodem.Config{NoSIM: true})
	b.waitFor("degraded modem 0 (LTE-1) cannot be used: the SIM is missing")
	for _, c := range m.Commands() {
		if strings.HasPrefix(c, "AT+CESQ") {
			t.Errorf("it was asked for its signal: %s", c)
		}
	}
}

// D04 and M02: ModemManager is killed, and comes back with the modem as another object.
func TestD04ServiceKilled(t *testing.T) {
	b := newBed(t)
	b.plug(2, atmodem.Config{})
	b.enable()
	link := b.wait("associated 26201-1c3d4e5").Link
	b.service.Kill()
	if o := b.wait("none unknown"); o.Link != link {
		t.Errorf("link %s is unknown, not %s", o.Link, link)
	}
	b.wait("unavailable ModemManager does not run; it is noticed when it starts")
	began := time.Now()
	b.service.Restart()
	up := time.Now()
	b.service.Profile(b.profiles[0][0], b.profiles[0][1:]...)
	b.enable()
	if o := b.wait("associated 26201-1c3d4e5"); o.Link != link {
		t.Errorf("the modem is link %s now, was %s", o.Link, link)
	}
	t.Logf("ModemManager was back after %v, the modem after %v more", up.Sub(began), time.Since(up))
}

// Two modems at once: each has its link and its signal; one that is lost leaves the other alone.
func TestTwoModems(t *testing.T) {
	b := newBed(t)
	first := b.plug(2, atmodem.Config{})
	second := b.plug(2, atmodem.Config{IMEI: "490154203237526", Model: "LTE-2"})
	first.Radio(func(r *atmodem.Radio) { r.RSRP = -80 })
	second.Radio(func(r *atmodem.Radio) { r.RSRP = -120 })
	for len(b.modems()) < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	for path := range b.modems() {
		if _, err := b.service.Call(path, "Modem.Enable", true); err != nil {
			t.Fatal(err)
		}
	}
	links := map[mihf.LinkID]float64{}
	b.Wait(t, "a reading of each", func(o *mihf.Observation) bool {
		if v, ok := o.Values.Get(mihf.ParamRSRP); ok {
			links[o.Link] = v
		}
		return len(links) == 2
	})
	one := mihf.NewLinkID(mihf.LinkWWAN, "modem/490154203237518")
	two := mihf.NewLinkID(mihf.LinkWWAN, "modem/490154203237526")
	if links[one] != -80 || links[two] != -120 {
		t.Errorf("readings %v", links)
	}
	second.Network(func(n *atmodem.Network) { n.Registration = atmodem.Searching })
	if o := b.waitFor("disconnected"); o.Link != two {
		t.Errorf("link %s was lost, want %s", o.Link, two)
	}
	b.Wait(t, "a reading of the first", func(o *mihf.Observation) bool { return o.Link == one && o.Kind == mihf.ObsRadio })
}
