package wifi

import (
	"syscall"
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// The supplicant is restarted, or crashes: what was its attachment ends once, and begins once.
func TestSupplicantRestarted(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			d := start(t).daemon()
			d.Join(station, ap1, medium.Steady(-50))
			d.accessPoint(ap1, 1, network{})
			old := d.supplicant(network{})
			d.await(mihf.LinkUp)
			old.end(s)
			d.supplicant(network{})
			d.eventually("the station", func() bool { return d.associated() != nil })
			time.Sleep(5 * time.Second) // longer than Link_Down can be withheld
			for _, w := range d.fronts {
				ups, downs := len(w.of(d.link, mihf.LinkUp)), len(w.of(d.link, mihf.LinkDown))
				state, err := w.client.Parameters(t.Context(), d.link)
				if err != nil || !state.Up || ups != downs+1 || downs > 1 {
					t.Errorf("%s: up %v (%v) after %d times Link_Up and %d Link_Down", w.name, state.Up, err, ups, downs)
				}
			}
			d.never(mihf.LinkGoingDown)
		})
	}
}

// A scan of all channels while data flows at the edge, where the signal is read most often: the
// station is away from its channel again and again, and nothing is announced (report P04).
func TestFullScan(t *testing.T) {
	d := start(t).daemon()
	d.attach(-72, network{})
	flows := d.flows(mihf.FlowSpec{Link: d.link, RTT: 200 * time.Millisecond})
	d.listen(station)
	stop := d.send(station, 20*time.Millisecond)
	time.Sleep(3 * time.Second)
	begin := clock.Boot().Now()
	d.command("scan")
	d.eventually("the scan's end", func() bool { _, ok := d.kernel.first(begin, ifname(station), scanned); return ok })
	end, _ := d.kernel.first(begin, ifname(station), scanned)
	time.Sleep(2 * time.Second)
	stop()
	t.Logf("the scan took %v", end.at.Sub(begin))
	d.never(mihf.LinkGoingDown, mihf.LinkDown)
	for i, f := range flows {
		if len(f.freeze) > 0 {
			t.Errorf("%s: frozen", d.fronts[i].name)
		}
	}
}

// CQM thresholds belong to who set them: the supplicant (bgscan), or any other program. The
// daemon listens, and sets none: what the owner asked for still comes, at the owner's level,
// and the daemon reads the signal faster from then on.
func TestCQMOwnedByAnother(t *testing.T) {
	const level = -58 // above where the daemon by itself reads faster
	for name, own := range map[string]func(d *daemon) network{
		"supplicant": func(*daemon) network {
			return network{station: `bgscan="simple:600:-58:600"`}
		},
		"another program": func(*daemon) network { return network{} },
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t).daemon()
			d.attach(-50, own(d))
			if name != "supplicant" {
				d.setCQM(ifname(station), level)
			}
			time.Sleep(3 * time.Second) // the daemon would have set its own at the attachment
			begin := clock.Boot().Now()
			d.Join(station, ap1, medium.Steady(-62))
			d.eventually("the owner's warning", func() bool { _, ok := d.kernel.first(begin, ifname(station), crossed); return ok })
			warned, _ := d.kernel.first(begin, ifname(station), crossed)
			time.Sleep(2 * time.Second)
			readings := 0
			for _, e := range d.fronts[0].of(d.link, mihf.LinkParametersReport) {
				if e.Report.Parameter == mihf.ParamInactive && e.At > warned.at {
					readings++
				}
			}
			t.Logf("warned after %v, then %d readings in 2 s", warned.at.Sub(begin), readings)
			if readings < 10 {
				t.Errorf("%d readings within 2 s of the warning", readings)
			}
			d.never(mihf.LinkGoingDown, mihf.LinkDown)
		})
	}
}
