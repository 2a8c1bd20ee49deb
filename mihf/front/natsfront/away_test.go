package natsfront

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// place returns an address that nobody listens on.
func place(t *testing.T) (host string, port int) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no TCP address")
	}
	return "127.0.0.1", a.Port
}

// outside starts a server as it might be outside.
func outside(t *testing.T, host string, port int) (stop func()) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: host, Port: port, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patient) {
		t.Fatal("the server is not ready")
	}
	stop = func() { s.Shutdown(); s.WaitForShutdown() }
	t.Cleanup(stop)
	return stop
}

// "The daemon is ready, and everything else goes on, whatever NATS does"; nothing waits in a
// buffer for a server that is away, and when it is back all are told to read the state again.
func TestServerAway(t *testing.T) {
	host, port := place(t)
	url := "nats://" + net.JoinHostPort(host, strconv.Itoa(port))
	w := newBed(t, Options{External: &External{Servers: []string{url}}, Identity: "alice"}) // ready: nobody is there
	w.until("it says why", func() bool { return w.said(mihf.ConditionStarting, "connection refused") })
	w.see(facts(true))
	w.until("what was not published is counted", func() bool { return w.front.Counts().Dropped > 0 })

	stop := outside(t, host, port)
	w.until("connected", func() bool { return w.front.Counts().Connected })
	c, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	w.must(err)
	t.Cleanup(c.Close)
	in := w.subscribe(c, "mih.v1.>")
	w.see(facts(false))
	down := natsproto.Event(node, wlan, mihf.LinkDown)
	w.heard(in, down)

	stop()
	w.until("the loss is seen", func() bool { return !w.front.Counts().Connected })
	w.until("it says why", func() bool { return w.said(mihf.ConditionDegraded, "connection refused") })
	dropped := w.front.Counts().Dropped
	w.see(facts(true)) // while it is away
	w.until("it is dropped", func() bool { return w.front.Counts().Dropped > dropped })

	outside(t, host, port)
	up := natsproto.Event(node, wlan, mihf.LinkUp)
	for _, subject := range w.heard(in, natsproto.Sync(node)) {
		if subject == up {
			t.Error("what happened while the server was away is replayed")
		}
	}
	w.until("connected again", func() bool { return w.front.Counts().Connected && c.IsConnected() })
	w.must(c.FlushWithContext(w.ctx))
	w.see(facts(false))
	w.heard(in, down)
	w.until("its condition says so", func() bool { return w.front.Condition().Condition == mihf.ConditionOK })
}

// A server that does not let the daemon in is no server that is not there: the condition says
// which.
func TestServerRefuses(t *testing.T) {
	host, port := place(t)
	w := newBed(t, Options{External: &External{Servers: []string{"nats://" + net.JoinHostPort(host, strconv.Itoa(port))}}, Identity: "alice"})
	w.until("it says why", func() bool { return w.said(mihf.ConditionStarting, "connection refused") })
	s, err := server.NewServer(&server.Options{Host: host, Port: port, NoSigs: true, NoLog: true, Username: "somebody", Password: "else"})
	w.must(err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	w.until("it says why", func() bool { return w.said(mihf.ConditionStarting, "Authorization Violation") })
}

// What was on its way when a connection ended is lost without a trace: all are told to read
// the state again each time that the server is back, also where nothing was dropped.
func TestBackWithoutDrops(t *testing.T) {
	host, port := place(t)
	outside(t, host, port)
	url := "nats://" + net.JoinHostPort(host, strconv.Itoa(port))
	w := newBed(t, Options{External: &External{Servers: []string{url}}, Identity: "alice"})
	w.until("connected", func() bool { return w.front.Counts().Connected })
	c, err := nats.Connect(url)
	w.must(err)
	t.Cleanup(c.Close)
	in := w.subscribe(c, natsproto.Sync(node))
	for range 3 { // the first may be the broker's first snapshot
		w.must(w.front.pub().ForceReconnect())
		for heard := false; !heard; {
			e, err := natsproto.ParseEnvelope(natsproto.Header(w.next(in).Header))
			w.must(err)
			heard = e.Type == natsproto.TypeHole
		}
	}
}

// What was published while the link of a leaf node was cut is missing in the cluster: when it
// is back, who listens there is told to read the state again.
func TestLeafIsBack(t *testing.T) {
	host, port := place(t)
	hub, err := server.NewServer(&server.Options{Host: host, Port: -1, NoSigs: true, NoLog: true, LeafNode: server.LeafNodeOpts{Host: host, Port: port}})
	if err != nil {
		t.Fatal(err)
	}
	hub.Start()
	t.Cleanup(func() { hub.Shutdown(); hub.WaitForShutdown() })
	if !hub.ReadyForConnections(patient) {
		t.Fatal("the hub is not ready")
	}
	o := embeddedOptions()
	o.Embedded.Leaf = &Leaf{URLs: []*url.URL{{Scheme: "nats-leaf", Host: net.JoinHostPort(host, strconv.Itoa(port))}}}
	w := newBed(t, o)
	c, err := nats.Connect(hub.ClientURL())
	w.must(err)
	t.Cleanup(c.Close)
	in := w.subscribe(c, natsproto.Sync(node))
	w.until("the cluster is reached", func() bool { return w.front.Condition().Condition == mihf.ConditionOK })
	for range 3 { // each is told once
		for heard := false; !heard; {
			e, err := natsproto.ParseEnvelope(natsproto.Header(w.next(in).Header))
			w.must(err)
			heard = e.Type == natsproto.TypeHole
		}
		links, err := hub.Leafz(nil)
		w.must(err)
		for _, l := range links.Leafs {
			w.must(hub.DisconnectClientByID(l.ID))
		}
	}
	hub.Shutdown()
	w.until("the condition says that no cluster is reached", func() bool {
		return w.front.Condition() == mihf.SensorCondition{Sensor: "nats", Condition: mihf.ConditionDegraded, Text: leafAway}
	})
	w.good(w.ask(w.dial("alice"), natsproto.OpSnapshot, nil, nil)) // everything here goes on
}

// heard reads up to a message on the subject, and returns those before it.
func (w *bed) heard(in *nats.Subscription, subject string) (before []string) {
	w.Helper()
	for {
		m, err := in.NextMsgWithContext(w.ctx)
		if err != nil {
			w.Fatalf("%s was not heard: %v; %v", subject, err, before)
		}
		if m.Subject == subject {
			return before
		}
		before = append(before, m.Subject)
	}
}

// A connection that the library has given up is made anew.
func TestGivenUp(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c := w.dial("alice")
	w.good(w.ask(c, natsproto.OpSnapshot, nil, nil))
	for _, of := range []func(*link) *nats.Conn{func(l *link) *nats.Conn { return l.svc }, func(l *link) *nats.Conn { return l.pub }} {
		was := w.front.link.Load()
		of(was).Close()
		w.until("another one is there", func() bool { return w.front.link.Load() != was && w.front.Counts().Connected })
		w.until("it answers", func() bool {
			m, err := c.RequestWithContext(w.ctx, natsproto.Service(node, natsproto.OpSnapshot), nil)
			return err == nil && natsproto.Refused(natsproto.Header(m.Header), m.Data) == nil
		})
	}
}

// The end does not wait for a server that is away.
func TestEndWhileAway(t *testing.T) {
	host, port := place(t)
	w := newBed(t, Options{External: &External{Servers: []string{"nats://" + net.JoinHostPort(host, strconv.Itoa(port))}}})
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	w.stop()
	select {
	case <-w.ended:
	case <-ctx.Done():
		t.Error("it waits")
	}
}
