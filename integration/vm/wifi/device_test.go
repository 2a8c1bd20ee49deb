package wifi

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// An interface that is renamed keeps its link and says so (report R19); one that is removed is
// gone, and has the same link when it is plugged in again, under whatever name. Each time the
// station attaches again.
func TestDevice(t *testing.T) {
	d := start(t).daemon()
	const plugged medium.Radio = 32
	first := d.plug(plugged)
	link := d.linkOf(first)
	d.link = link
	d.Join(plugged, ap1, medium.Steady(-50))
	d.accessPoint(ap1, 1, network{})
	one := d.supplicantOn(first, network{})
	d.await(mihf.LinkUp)
	one.end(syscall.SIGTERM)
	d.await(mihf.LinkDown)

	d.home.Down(first)
	d.home.Rename(first, "radio")
	for _, e := range d.await(mihf.LinkRenamed) {
		if e.Rename.Old != first || e.Rename.New != "radio" {
			t.Errorf("%+v", e.Rename)
		}
	}
	if again := d.linkOf("radio"); again != link {
		t.Errorf("renamed, the link is %s; it was %s", again, link)
	}
	two := d.supplicantOn("radio", network{})
	d.awaitNth(mihf.LinkUp, 2)

	d.unplug(plugged)
	two.end(syscall.SIGTERM)
	d.awaitNth(mihf.LinkDown, 2)
	d.await(mihf.LinkRemoved)
	second := d.plug(plugged)
	if again := d.linkOf(second); again != link {
		t.Errorf("plugged in again, the link is %s; it was %s", again, link)
	}
	d.supplicantOn(second, network{})
	d.awaitNth(mihf.LinkUp, 3)
	d.never(mihf.LinkGoingDown)
}

// The driver's commands and attributes for radios (drivers/net/wireless/mac80211_hwsim.h).
const (
	hwsimNewRadio, hwsimDelRadio       = 4, 5
	hwsimRadioName, hwsimRadioPermAddr = 17, 22
)

// plug makes a radio whose interface has the address by which the medium knows the radio, and
// returns its name.
func (b *bed) plug(r medium.Radio) string {
	b.t.Helper()
	before, err := os.ReadDir("/sys/class/net")
	if err != nil {
		b.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range before {
		known[e.Name()] = true
	}
	b.hwsim(hwsimNewRadio, func(ae *netlink.AttributeEncoder) {
		ae.String(hwsimRadioName, "plugged")
		ae.Bytes(hwsimRadioPermAddr, []byte{0x42, 0, 0, byte(r >> 8), byte(r), 0})
	})
	name := ""
	b.eventually("the radio that was plugged in", func() bool {
		now, err := os.ReadDir("/sys/class/net")
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range now {
			if !known[e.Name()] {
				name = e.Name()
			}
		}
		return name != ""
	})
	return name
}

func (b *bed) unplug(medium.Radio) {
	b.t.Helper()
	b.hwsim(hwsimDelRadio, func(ae *netlink.AttributeEncoder) { ae.String(hwsimRadioName, "plugged") })
}

func (b *bed) hwsim(command uint8, attrs func(*netlink.AttributeEncoder)) {
	b.t.Helper()
	c, err := genetlink.Dial(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // only asked
	f, err := c.GetFamily("MAC80211_HWSIM")
	if err != nil {
		b.t.Fatal(err)
	}
	ae := netlink.NewAttributeEncoder()
	attrs(ae)
	data, err := ae.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	// The answer to a new radio is its number where an error would be, so none is asked for.
	if _, err := c.Send(genetlink.Message{Header: genetlink.Header{Command: command, Version: 1}, Data: data}, f.ID, netlink.Request); err != nil {
		b.t.Fatal(err)
	}
}

// A gap as of a suspend: the daemon stands still while the station roams and comes to stand at
// the edge. When it goes on, it reads all, tells what is another, and announces nothing from
// readings that are a gap apart (report P05).
func TestGap(t *testing.T) {
	d := start(t).daemon()
	d.attach(-50, network{})
	flows := d.flows(mihf.FlowSpec{Link: d.link, RTT: 50 * time.Millisecond})
	d.Join(station, ap2, medium.Steady(-50))
	d.accessPoint(ap2, 6, network{})
	d.find(ap2)
	time.Sleep(2 * time.Second)
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d.command("roam", string(d.address(ap2)))
	d.Join(station, ap2, medium.Steady(-78))
	time.Sleep(10 * time.Second)
	if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, w := range d.fronts {
		d.eventually(w.name+": the station at the second access point", func() bool {
			s, err := w.client.Parameters(t.Context(), d.link)
			rssi, _ := s.Values.Get(mihf.ParamRSSI)
			return err == nil && s.Up && s.PoA == d.address(ap2) && rssi == -78
		})
	}
	time.Sleep(3 * time.Second)
	d.never(mihf.LinkGoingDown)
	for i, f := range flows {
		if len(f.freeze) > 0 {
			t.Errorf("%s: frozen", d.fronts[i].name)
		}
	}
}
