package endtoend

import (
	"testing"

	"mihf.dev/clients"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
)

// outage is a way by which a front's other side, a bus or a server, goes away and comes back.
type outage struct {
	away, back func()
	// late says that what was under way is not lost, and comes when it is over.
	late bool
	// over is called when the remote client has the state again, before anything else
	// happens; nil: not.
	over func()
}

// survives checks the contract of an outage of what stands between the daemon and a remote
// client. While it lasts everything local goes on. When it is over the remote client is told
// the state, and what was hinted in between is not done belatedly. Then all is as before.
func (b *bed) survives(remote clients.Client, o outage) {
	b.t.Helper()
	link := b.second()
	r := watch(b.t, remote)
	near, far := newTransport(), newTransport()
	b.join(near, b.client, link)
	b.join(far, remote, link)

	b.peer.Down("q0")
	far.want(b.t, "freeze before the outage", func() bool { return far.frozen })
	b.peer.Up("q0")
	far.want(b.t, "thaw before the outage", func() bool { return !far.frozen })
	near.want(b.t, "thaw", func() bool { return !near.frozen })
	r.event(mihf.PathUsable, on(link))
	b.event(mihf.PathUsable, on(link))

	o.away()
	b.peer.Down("q0")
	b.event(mihf.LinkDown, on(link))
	near.want(b.t, "local freeze", func() bool { return near.frozen })
	b.peer.Up("q0")
	missed := b.event(mihf.PathUsable, on(link))
	near.want(b.t, "local thaw", func() bool { return !near.frozen })
	freezes := far.count()
	o.back()

	r.want("the state of after the outage", func(d *mihf.Delivery) bool {
		return d.Sequence() >= missed.Sequence && (d.Kind == mihf.DeliverSnapshot || d.Kind == mihf.DeliverEvent)
	})
	b.snapshot("both flows again", func(s *mihf.Snapshot) bool { return len(s.Flows) == 2 })
	far.want(b.t, "no freeze that stays", func() bool { return !far.frozen })
	if got := far.count(); got != freezes && !o.late {
		b.t.Errorf("%d freezes after the outage, %d before: an old hint was done belatedly", got, freezes)
	}
	if o.over != nil {
		o.over()
	}
	b.peer.Down("q0")
	r.event(mihf.LinkDown, on(link))
	far.want(b.t, "freeze after the outage", func() bool { return far.frozen })
	b.peer.Up("q0")
	far.want(b.t, "thaw after the outage", func() bool { return !far.frozen })
}

// second gives the node another link, with a default route of less worth.
func (b *bed) second() mihf.LinkID {
	b.t.Helper()
	b.node.Pair("w0", b.peer, "q0")
	b.peer.Up("q0")
	b.node.Up("w0")
	b.node.AddAddr("w0", "198.51.100.2/24", 0, 0)
	b.node.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "198.51.100.1", Dev: "w0", Metric: 200})
	id := b.link("w0").Link
	b.event(mihf.PathUsable, on(id))
	return id
}

func on(link mihf.LinkID) func(*mihf.Event) bool {
	return func(e *mihf.Event) bool { return e.Link == link }
}

// dbusClient returns a client of the bed's daemon on a bus.
func dbusClient(t *testing.T, bus *daemons.MessageBus) *mihdbus.Client {
	t.Helper()
	c, err := mihdbus.Dial(bus.Address, mihdbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newDBusBed(t *testing.T) (*bed, *daemons.MessageBus) {
	t.Helper()
	bus := daemons.Bus(t, daemons.BusConfig{})
	b := newBedWith(t, bedConfig{bus: bus.Address})
	b.online()
	return b, bus
}

// TestBusKilled: the message bus ends and another one starts on its address (report D04).
func TestBusKilled(t *testing.T) {
	b, bus := newDBusBed(t)
	b.survives(dbusClient(t, bus), outage{away: bus.Kill, back: bus.Restart})
}

// TestBusStopped: the message bus stands still for a while, with its connections open
// (report D10).
func TestBusStopped(t *testing.T) {
	b, bus := newDBusBed(t)
	b.survives(dbusClient(t, bus), outage{away: bus.Stop, back: bus.Cont, late: true})
}

// TestBusComesLate: a daemon that starts before its bus is ready without it, and on it when
// it is there.
func TestBusComesLate(t *testing.T) {
	bus := daemons.Bus(t, daemons.BusConfig{})
	bus.Kill()
	b := newBedWith(t, bedConfig{bus: bus.Address})
	b.online()
	bus.Restart()
	client := dbusClient(t, bus)
	await(t, "the daemon on the bus", func() error {
		_, err := client.Snapshot(t.Context())
		return err
	})
	w := watch(t, client)
	b.node.Down("v0")
	w.event(mihf.LinkDown, nil)
}
