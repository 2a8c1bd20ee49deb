package wifi

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mihf.dev/clients"
	"mihf.dev/clients/attach"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/clients/mihnats"
	"mihf.dev/integration/daemons"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A daemon is a real mihfd, seen by a client over each of its fronts.
type daemon struct {
	*bed
	*program
	fronts []*witness
	link   mihf.LinkID // of the station
	kernel *mlme
}

// A setup is how a daemon is started.
type setup struct {
	fronts int    // how many clients follow it: gRPC, NATS, D-Bus; 0: all
	config string // more of its configuration
}

// daemon starts mihfd with the sensors' defaults and a client over each front.
func (b *bed) daemon() *daemon {
	b.t.Helper()
	return b.daemonWith(setup{})
}

func (b *bed) daemonWith(s setup) *daemon {
	b.t.Helper()
	dir := b.t.TempDir()
	socket := filepath.Join(dir, "mihfd.sock")
	config := fmt.Sprintf("[grpc]\nsocket = %q\n", socket)
	var bus *daemons.MessageBus
	if s.fronts == 0 {
		s.fronts = 3
		bus = daemons.Bus(b.t, daemons.BusConfig{})
		config += fmt.Sprintf("[dbus]\nbus = %q\n[nats]\nserver = \"embedded\"\nlisten = %q\nusers = %q\n",
			bus.Address, natsAddress, b.file("users", "guest:secret\n"))
		config += s.config + "[[access.grants]]\nnats_users = [\"guest\"]\nroles = [\"register-any\"]\nas_uid = 0\n"
	} else {
		config += "[dbus]\nbus = \"none\"\n" + s.config
	}
	b.t.Setenv("STATE_DIRECTORY", filepath.Join(dir, "state"))
	d := &daemon{bed: b, kernel: listenToKernel(b.t), program: b.program("mihfd", "-config", b.file("mihfd.toml", config))}
	d.front("grpc", func() (clients.Client, error) { return mihgrpc.Dial("unix://"+socket, mihgrpc.Options{}) })
	if s.fronts > 1 {
		d.front("nats", func() (clients.Client, error) {
			return mihnats.Dial("nats://"+natsAddress, mihnats.Options{User: "guest", Password: "secret"})
		})
		d.front("dbus", func() (clients.Client, error) { return mihdbus.Dial(bus.Address, mihdbus.Options{}) })
	}
	d.link = d.linkOf(ifname(station))
	for _, w := range d.fronts {
		w.follow()
	}
	b.t.Cleanup(d.agree)
	return d
}

const natsAddress = "127.0.0.1:4222"

// front adds a client.
func (d *daemon) front(name string, dial func() (clients.Client, error)) {
	d.t.Helper()
	c, err := dial()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			d.t.Error(err)
		}
	})
	d.fronts = append(d.fronts, &witness{t: d.t, name: name, client: c})
}

// client is that over gRPC.
func (d *daemon) client() clients.Client { return d.fronts[0].client }

// linkOf waits until the daemon knows an interface, and returns its link.
func (d *daemon) linkOf(name string) (id mihf.LinkID) {
	d.t.Helper()
	d.eventually(name+" in the daemon's snapshot", func() bool {
		s, err := d.client().Snapshot(d.t.Context())
		if err != nil {
			return false
		}
		for _, l := range s.Links {
			if l.Facts != nil && l.Facts.Name == name {
				id = l.Link
			}
		}
		return id != ""
	})
	return id
}

// address is the BSSID of an access point's radio.
func (b *bed) address(r medium.Radio) mihf.PoA {
	return mihf.PoA(fmt.Sprintf("02:00:00:00:%02x:00", int(r)))
}

// command gives the station's supplicant a command.
func (d *daemon) command(args ...string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "wpa_cli", append([]string{"-p", control, "-i", ifname(station)}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "OK") {
		d.t.Fatalf("wpa_cli %v: %v, %s", args, err, out)
	}
}

// attach brings the station to the first access point.
func (d *daemon) attach(dBm float64, n network) {
	d.t.Helper()
	d.Join(station, ap1, medium.Steady(dBm))
	d.accessPoint(ap1, 1, n)
	d.supplicant(n)
	for _, up := range d.await(mihf.LinkUp) {
		if up.Up.PoA != d.address(ap1) || string(up.Up.SSID) != n.name() {
			d.t.Errorf("Link_Up at %q in %q", up.Up.PoA, up.Up.SSID)
		}
	}
}

// A told is a transport that notes what it is told and when.
type told struct {
	rtt      time.Duration
	freeze   chan mihf.Time
	unfreeze chan thaw
}

// A thaw is an Unfreeze and when it came.
type thaw struct {
	mihf.Unfreeze
	at mihf.Time
}

func (x *told) RTT() time.Duration { return x.rtt }
func (x *told) Freeze(mihf.Freeze) {
	select {
	case x.freeze <- clock.Boot().Now():
	default: // renewed
	}
}

func (x *told) Unfreeze(u mihf.Unfreeze) {
	select {
	case x.unfreeze <- thaw{u, clock.Boot().Now()}:
	default: // a test that does not look
	}
}
func (x *told) Characteristics(mihf.LCI) {}

// flow registers a flow over a client until the test ends.
func (w *witness) flow(spec mihf.FlowSpec) *told {
	w.t.Helper()
	x := &told{rtt: spec.RTT, freeze: make(chan mihf.Time, 1), unfreeze: make(chan thaw, 1)}
	w.join(x, spec)
	return x
}

// join attaches a transport over a client until the test ends.
func (w *witness) join(x attach.Transport, spec mihf.FlowSpec) {
	w.t.Helper()
	flow := attach.New(x, w.client, attach.Options{Spec: spec})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- flow.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("%s: %v", w.name, err)
		}
	})
	select {
	case <-flow.Ready():
	case <-time.After(patience):
		w.t.Fatalf("%s: the flow is not registered", w.name)
	}
}

// flows registers a flow over each front.
func (d *daemon) flows(spec mihf.FlowSpec) (list []*told) {
	d.t.Helper()
	for _, w := range d.fronts {
		list = append(list, w.flow(spec))
	}
	return list
}

// taken returns what came, or fails the test.
func taken[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}
