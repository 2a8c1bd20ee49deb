package wifi

import (
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// Walk-away: parameters are reported, Link_Going_Down and each flow's Freeze come at least one
// RTT before the last data frame, and Link_Down behind it.
func TestWalkAway(t *testing.T) {
	d := start(t).daemon()
	d.attach(-50, network{})
	const rtt = 100 * time.Millisecond
	flows := d.flows(mihf.FlowSpec{Link: d.link, RTT: rtt})
	d.listen(station)
	stop := d.send(station, 20*time.Millisecond)
	d.eventually("data", func() bool { return d.Truth(ap1, station).Data > 20 })
	d.SetLoss(medium.SNR{})
	d.Join(station, ap1, medium.Fade(-50, -100, 4, true))

	down := d.await(mihf.LinkDown)
	stop()
	last := d.Truth(ap1, station).LastData
	for i, going := range d.await(mihf.LinkGoingDown) {
		frozen := taken(t, "Freeze", flows[i].freeze)
		t.Logf("%s: before the last data frame: Link_Going_Down %v, Freeze %v; behind it: Link_Down %v",
			d.fronts[i].name, last.Sub(going.had), last.Sub(frozen), down[i].had.Sub(last))
		if last.Sub(going.had) < rtt || last.Sub(frozen) < rtt {
			t.Errorf("%s: announced or frozen less than %v before the last data frame", d.fronts[i].name, rtt)
		}
		if down[i].had <= last || down[i].Down.PoA != d.address(ap1) || down[i].Down.Reason != mihf.DownBeaconLoss {
			t.Errorf("%s: %v %+v", d.fronts[i].name, down[i].had, down[i].Down)
		}
		if len(d.fronts[i].of(d.link, mihf.LinkParametersReport)) == 0 {
			t.Errorf("%s: no parameters report", d.fronts[i].name)
		}
	}
	d.promptly(down)
}

// Walk-back: what was announced is taken back, flows go on, and there is no Link_Down.
func TestWalkBack(t *testing.T) {
	d := start(t).daemon()
	d.attach(-50, network{})
	flows := d.flows(mihf.FlowSpec{Link: d.link, RTT: 2 * time.Second})
	time.Sleep(3 * time.Second)
	d.Join(station, ap1, medium.Script{{At: 0, DBm: -50}, {At: 8 * time.Second, DBm: -86}, {At: 11 * time.Second, DBm: -50}})
	d.await(mihf.LinkGoingDown)
	d.await(mihf.LinkEventRollback)
	for i, flow := range flows {
		taken(t, d.fronts[i].name+": Freeze", flow.freeze)
		if u := taken(t, d.fronts[i].name+": Unfreeze", flow.unfreeze); u.Recovery {
			t.Errorf("%s: %+v", d.fronts[i].name, u)
		}
	}
	d.never(mihf.LinkDown)
}

// An access point dies without a word. Flows that take a late Freeze are frozen at once,
// the others are not, and Link_Down comes within 50 ms of the kernel's word.
func TestAccessPointKilled(t *testing.T) {
	d := start(t).daemon()
	d.attach(-50, network{})
	late := d.flows(mihf.FlowSpec{Link: d.link, RTT: 50 * time.Millisecond, LateFreeze: true})
	plain := d.flows(mihf.FlowSpec{Link: d.link, RTT: 50 * time.Millisecond})
	d.Join(station, ap1, medium.Silence{})
	down := d.await(mihf.LinkDown)
	d.promptly(down)
	lost, _ := d.kernel.first(0, ifname(station), disconnected)
	for i, w := range d.fronts {
		if down[i].Down.Reason != mihf.DownBeaconLoss {
			t.Errorf("%s: reason %v", w.name, down[i].Down.Reason)
		}
		if took := taken(t, w.name+": Freeze", late[i].freeze).Sub(lost.at); took > prompt {
			t.Errorf("%s: frozen %v after the kernel's word", w.name, took)
		}
		select {
		case <-plain[i].freeze:
			t.Errorf("%s: a flow that takes no late Freeze was frozen", w.name)
		default:
		}
	}
	d.never(mihf.LinkGoingDown)
}

// prompt is how long what is certain may take from the kernel's word to a client.
const prompt = 50 * time.Millisecond

// promptly fails unless each client had Link_Down soon after the kernel's word.
func (d *daemon) promptly(down []moment) {
	d.t.Helper()
	w, ok := d.kernel.first(0, ifname(station), disconnected)
	if !ok {
		d.t.Fatal("the kernel said nothing of a disconnection")
	}
	for i, e := range down {
		took := e.had.Sub(w.at)
		d.t.Logf("%s: Link_Down %v after the kernel's word", d.fronts[i].name, took)
		if took > prompt {
			d.t.Errorf("%s: Link_Down %v after the kernel's word", d.fronts[i].name, took)
		}
	}
}
