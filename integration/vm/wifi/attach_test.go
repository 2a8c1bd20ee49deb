package wifi

import (
	"syscall"
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// Association: Link_Detected with the signal that is set, then Link_Up with what is known of
// the link. SSIDs are octets (reports W14, D05, G03), and a hidden network has one for who is
// in it.
func TestAssociation(t *testing.T) {
	for name, n := range map[string]network{
		"open":      {},
		"WPA2":      {passphrase: "correct horse"},
		"hidden":    {hidden: true},
		"not UTF-8": {ssid: "caf\xe9 \xc4\xe3\xba\xc3\x1b[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.fresh()
			d := b.daemon()
			d.attach(-50, n)
			for _, e := range d.await(mihf.LinkDetected) {
				rssi, _ := e.Detected.Values.Get(mihf.ParamRSSI)
				if e.Detected.PoA != d.address(ap1) || rssi != -50 {
					t.Errorf("detected %+v", e.Detected)
				}
				if ssid := string(e.Detected.SSID); ssid != n.name() && (!n.hidden || ssid != "") {
					t.Errorf("detected %q", ssid)
				}
			}
			for _, up := range d.await(mihf.LinkUp) {
				if up.Up.LCI == nil || up.Up.Facts == nil || up.Up.Facts.Name != ifname(station) {
					t.Errorf("Link_Up %+v", up.Up)
				}
			}
			d.never(mihf.LinkDown)
		})
	}
}

// W19: an access point that takes another name, which the kernel then lists twice: Link_Up has
// the new one.
func TestNetworkRenamed(t *testing.T) {
	d := start(t).daemon()
	d.Join(station, ap1, medium.Steady(-50))
	before := d.accessPoint(ap1, 1, network{ssid: "before"})
	waiting := d.supplicant(network{ssid: "before"})
	d.await(mihf.LinkUp)
	waiting.end(syscall.SIGTERM)
	before.end(syscall.SIGTERM)
	d.accessPoint(ap1, 1, network{ssid: "after"})
	d.supplicant(network{ssid: "after"})
	for _, up := range d.awaitNth(mihf.LinkUp, 2) {
		if string(up.Up.SSID) != "after" {
			t.Errorf("Link_Up in %q", up.Up.SSID)
		}
	}
}

// A station that is associated and whose port stays shut, for its passphrase is wrong, is not
// attached: "NEW_STATION comes before AUTHENTICATE".
func TestAssociationWrongPassphrase(t *testing.T) {
	d := start(t).daemon()
	d.Join(station, ap1, medium.Steady(-50))
	d.accessPoint(ap1, 1, network{passphrase: "correct horse"})
	d.supplicant(network{passphrase: "wrong battery"})
	d.associate()
	time.Sleep(5 * time.Second)
	d.never(mihf.LinkUp, mihf.PathUsable)
}
