package dbusfront_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/dbusfront"
	"mihf.dev/proto/dbusapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	wlan    = mihf.LinkID("wifi-00000001")
	patient = 20 * time.Second // only a failure takes so long
	name    = "wl\xff"         // octets that are not UTF-8
)

// bed is a broker on a private bus, with a hand on its sensors.
type bed struct {
	*testing.T
	bus    *daemons.MessageBus
	broker *broker.Broker
	server *dbusfront.Server
}

func newBed(t *testing.T, adjust func(*dbusfront.Options)) *bed {
	t.Helper()
	w := &bed{T: t, bus: daemons.Bus(t, daemons.BusConfig{})}
	cfg := broker.Config{Engine: engine.Defaults(), Version: "test"}
	cfg.Engine.Boot, cfg.Engine.Node, cfg.Engine.NewPredictor = 0xb007, "node", nil
	w.broker = broker.New(cfg)
	w.run(func(ctx context.Context) error { return w.broker.Run(ctx) })
	o := dbusfront.Options{Broker: w.broker, Address: func() (string, error) { return w.bus.Address, nil }, Grace: 100 * time.Millisecond}
	if adjust != nil {
		adjust(&o)
	}
	w.server = w.serve(o)
	return w
}

// run runs f until the test ends.
func (w *bed) run(f func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := f(ctx); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(func() { cancel(); running.Wait() })
}

func (w *bed) serve(o dbusfront.Options) *dbusfront.Server {
	w.Helper()
	s, err := dbusfront.New(o)
	if err != nil {
		w.Fatal(err)
	}
	w.run(s.Run)
	select {
	case <-s.Ready():
	case <-time.After(patient):
		w.Fatal("not ready")
	}
	return s
}

// peer is a connection of somebody else, and what it hears.
type peer struct {
	*bed
	*busconn.Conn
	heard chan *dbus.Signal
}

func (w *bed) dial(rules ...string) *peer {
	w.Helper()
	p := &peer{bed: w, heard: make(chan *dbus.Signal, 1<<14)}
	var err error
	p.Conn, err = busconn.Open(w.Context(), w.bus.Address, busconn.Options{MaxMessage: 1 << 20, Signal: func(s *dbus.Signal) {
		if s.Sender != "org.freedesktop.DBus" {
			p.heard <- s
		}
	}})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Close)
	for _, rule := range rules {
		if _, err := p.Bus(w.Context(), "AddMatch", rule); err != nil {
			w.Fatal(err)
		}
	}
	return p
}

// everything matches what the broker sends to all.
const everything = "type='signal',sender='" + dbusapi.Name + "',path_namespace='/dev/mihf/MIHF1'"

// at calls a method of an object of the broker.
func (p *peer) at(path dbus.ObjectPath, method string, args ...any) ([]any, error) {
	body, err := p.Call(p.Context(), dbusapi.Name, path, method, args...)
	return body, dbusapi.FromReply(err)
}

// call calls a method of the broker itself.
func (p *peer) call(method string, args ...any) ([]any, error) {
	return p.at(dbusapi.Root, dbusapi.BrokerInterface+"."+method, args...)
}

func (p *peer) must(method string, args ...any) []any {
	p.Helper()
	body, err := p.call(method, args...)
	if err != nil {
		p.Fatalf("%s: %v", method, err)
	}
	return body
}

// next returns the next signal with a name; what comes before it is passed over.
func (p *peer) next(name string) *dbus.Signal {
	p.Helper()
	timeout := time.After(patient)
	for {
		select {
		case s := <-p.heard:
			if s.Name == name {
				return s
			}
		case <-timeout:
			p.Fatalf("no signal %s", name)
		}
	}
}

// until asks again and again until it is so.
func (w *bed) until(what string, so func() bool) {
	w.Helper()
	for end := time.Now().Add(patient); !so(); {
		if time.Now().After(end) {
			w.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// see gives the broker an observation of a link, made now.
func (w *bed) see(link mihf.LinkID, o mihf.Observation) {
	o.At, o.Link, o.Sensor = w.broker.Now(), link, "test"
	w.broker.Observe(&o)
}

// facts is a link as the kernel has it, up or down.
func facts(up bool) mihf.Observation {
	f := &mihf.LinkFacts{Name: name, Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown}
	if up {
		f.Oper = mihf.OperUp
		f.Addresses = []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}}
		f.Defaults = []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600}}
	}
	return mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}

// mark makes a never-drop event that tests recognise: the machine slept for n nanoseconds.
func (w *bed) mark(n int) { w.see("", mihf.Observation{Kind: mihf.ObsResume, Gap: time.Duration(n)}) }

// wraps lets a test stand between the front and the broker.
type wraps struct {
	front.Broker
	status func(context.Context, mihf.Caller) (mihf.Status, error)
}

func (b wraps) Status(ctx context.Context, who mihf.Caller) (mihf.Status, error) {
	return b.status(ctx, who)
}
