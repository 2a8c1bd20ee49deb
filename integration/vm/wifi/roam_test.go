package wifi

import (
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// A roam by the supplicant between two access points of one network, open and with WPA2: one
// handover of the point of attachment, never a Link_Down, and nobody is frozen.
func TestRoam(t *testing.T) {
	for name, n := range map[string]network{"open": {}, "WPA2": {passphrase: "correct horse"}} {
		t.Run(name, func(t *testing.T) {
			d := start(t).daemon()
			d.attach(-60, n)
			flows := d.flows(mihf.FlowSpec{Link: d.link, RTT: 50 * time.Millisecond})
			d.Join(station, ap2, medium.Steady(-50))
			d.accessPoint(ap2, 6, n)
			d.find(ap2)
			d.command("roam", string(d.address(ap2)))
			for _, e := range d.await(mihf.LinkHandoverComplete) {
				if e.Handover.OldPoA != d.address(ap1) || e.Handover.NewPoA != d.address(ap2) {
					t.Errorf("%+v", e.Handover)
				}
			}
			d.never(mihf.LinkDown, mihf.LinkGoingDown)
			for i, f := range flows {
				if len(f.freeze) > 0 {
					t.Errorf("%s: frozen", d.fronts[i].name)
				}
			}
		})
	}
}

// find scans until the station has heard an access point.
func (d *daemon) find(r medium.Radio) {
	d.t.Helper()
	d.eventually("the access point "+ifname(r), func() bool {
		for _, e := range d.fronts[0].of(d.link, mihf.LinkDetected) {
			if e.Detected.PoA == d.address(r) {
				return true
			}
		}
		d.command("scan", "freq=2412,2437")
		time.Sleep(time.Second)
		return false
	})
}
