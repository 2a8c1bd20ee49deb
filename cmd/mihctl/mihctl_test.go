package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/cmd/mihctl/internal/privatebus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/recording/walk"
	"mihf.dev/sensors"
	"mihf.dev/sensors/replay"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mihctl": main})
}

// speeds are those of the fixture's clock that are tried: at the first the walk takes 6 s. A
// machine so busy that its samples come late makes another history than the manual's.
var speeds = []float64{10, 5, 2.5}

// hostile is a link whose names would steer a terminal.
const hostile = mihf.LinkID("wifi-0bad0bad")

// fixture is a daemon in this process that has seen the recorded walk, and after it sees a
// signal that changes all the time.
type fixture struct {
	socket     string
	prediction mihf.PredictionID // the one that came true
	flow       mihf.FlowID

	nats          string // URL
	bus, emptyBus string // addresses: that of the daemon, and one without; "": there is none
}

// Secrets of the users of the NATS server: one who sees, and one who may do all.
const (
	readerSecret = "open sesame"
	adminSecret  = "abracadabra"
)

// startDaemon returns a daemon that has seen the walk as the manual tells it.
func startDaemon(t *testing.T, noBus error) *fixture {
	t.Helper()
	for _, speed := range speeds {
		f, seen := walked(t, speed, noBus)
		if seen == asInManual {
			return f
		}
		t.Logf("at %v times the walk's speed: %+v, want %+v", speed, seen, asInManual)
	}
	t.Fatal("this machine is too busy to play the walk in time")
	return nil
}

// history is what the examples of the manual stand on.
type history struct {
	first, second mihf.Outcome // of the predictions
	freezes       int          // before the first Unfreeze
}

var asInManual = history{mihf.OutcomeRollback, mihf.OutcomeLinkDown, 2}

// walked returns a daemon that has seen the walk at a speed, and what it made of it.
func walked(t *testing.T, speed float64, noBus error) (*fixture, history) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mihctl-test-") //nolint:usetesting // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{socket: filepath.Join(dir, "s")}
	c := config.Defaults()
	if c.DBus.Bus = config.NoBus; noBus == nil {
		f.bus, f.emptyBus = startBus(t, filepath.Join(dir, "1")), startBus(t, filepath.Join(dir, "2"))
		c.DBus.Bus = f.bus
	}
	c.Node.Name = "laptop"
	if err := os.WriteFile(filepath.Join(dir, "users"), []byte("reader:"+readerSecret+"\nadmin:"+adminSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.NATS.Server, c.NATS.Listen, c.NATS.Users = config.NATSEmbedded, "127.0.0.1:0", filepath.Join(dir, "users")
	c.NATS.History, c.NATS.HistoryDir = true, filepath.Join(dir, "history")
	c.Access.Grants = []config.Grant{{NATSUsers: []string{"admin"}, Roles: []string{"see", "register-any", "command", "administer"}}}
	clk := clock.Scaled(speed)
	s := &sensor{clock: clk, walked: make(chan struct{}), begin: make(chan struct{})}
	a, err := wiring.Assemble(&c, wiring.Options{Socket: f.socket, Clock: clk, Version: "1.2.3", Sensors: []sensors.Sensor{s}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Serve(ctx, nil, nil, a.Tasks...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	<-a.NATS.Ready()
	f.nats = "nats://" + a.NATS.Addr().String()
	at := attachFlow(t, a.Broker.Broker, f)
	t.Cleanup(at.Close)
	close(s.begin)
	<-s.walked
	f.prediction = mihf.PredictionID{Boot: a.Broker.Boot(), N: 2}
	return f, historyOf(t, a.Broker.Broker)
}

func historyOf(t *testing.T, b *broker.Broker) history {
	t.Helper()
	who := mihf.Caller{Front: "inproc", UID: mihf.Some(uint32(0))}
	outcome := func(n uint64) mihf.Outcome {
		x, err := b.Explain(t.Context(), who, mihf.PredictionID{Boot: b.Boot(), N: n})
		if err != nil {
			return mihf.OutcomeOpen // it was not made
		}
		return x.Prediction.Outcome
	}
	h := history{first: outcome(1), second: outcome(2)}
	feed, err := b.Subscribe(t.Context(), who, mihf.SubscribeRequest{After: 1, Boot: b.Boot(), HintsOnly: true, Present: true})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for buf := make([]mihf.Delivery, 1); ; {
		if _, err := feed.Next(buf); err != nil {
			return h
		}
		switch buf[0].Hint.Kind {
		case mihf.HintFreeze:
			h.freezes++
		case mihf.HintUnfreeze:
			return h
		default:
		}
	}
}

func startBus(t *testing.T, dir string) (address string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bus, err := privatebus.Start(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	return bus.Address
}

func attachFlow(t *testing.T, b interface {
	Attach(context.Context, mihf.Caller) (mihf.Attachment, error)
}, f *fixture,
) mihf.Attachment {
	t.Helper()
	at, err := b.Attach(context.Background(), mihf.Caller{Front: "inproc", UID: mihf.Some(uint32(os.Getuid()))})
	if err != nil {
		t.Fatal(err)
	}
	r, err := at.Register(mihf.FlowSpec{Link: walk.Link, RTT: 100 * time.Millisecond, Direction: mihf.DirectionReceive})
	if err != nil {
		t.Fatal(err)
	}
	f.flow = r.Flow
	return at
}

// sensor plays the walk, shows a hostile link, and then a signal without end.
type sensor struct {
	clock         clock.Clock
	begin, walked chan struct{}
}

func (s *sensor) Name() string { return replay.Name }

func (s *sensor) Run(ctx context.Context, emit sensors.Emit) error {
	select {
	case <-s.begin:
	case <-ctx.Done():
		return nil
	}
	r := replay.New(walk.Open(), s.clock, 0)
	walking, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(walking, emit) }()
	select {
	case <-r.Ended():
	case <-ctx.Done():
	}
	cancel()
	if err := errors.Join(<-ended, r.Err()); err != nil {
		return err
	}
	emit(&mihf.Observation{At: s.clock.Now(), Sensor: "test", Link: hostile, Kind: mihf.ObsLink, Facts: &mihf.LinkFacts{
		Name: "w\x1b[2J\n\"\x9b1m", AdminUp: true, Carrier: true, Oper: mihf.OperUp, MTUBytes: 1500,
	}})
	emit(&mihf.Observation{At: s.clock.Now(), Sensor: "test", Link: hostile, Kind: mihf.ObsAssociation, Association: &mihf.Association{
		State: mihf.AssociationAuthorised, PoA: "02:00:00:00:00:99", SSID: []byte("\x1b]0;pwn\x07"),
	}})
	close(s.walked)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for v := -60.0; ; v = -121 - v {
		o := mihf.Observation{At: s.clock.Now(), Sensor: "test", Link: hostile, Kind: mihf.ObsRadio, PoA: "02:00:00:00:00:99"}
		o.Values.Set(mihf.ParamRSSI, v)
		emit(&o)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func TestProgram(t *testing.T) {
	noBus := daemons.InPath(t, "dbus-daemon")
	f := startDaemon(t, noBus)
	t.Run("scripts", func(t *testing.T) { scripts(t, f, "testdata", "") })
	t.Run("commands over NATS", func(t *testing.T) { scripts(t, f, "testdata/fronts", "nats") })
	t.Run("NATS", func(t *testing.T) { scripts(t, f, "testdata/nats", "nats") })
	t.Run("commands over gRPC", func(t *testing.T) { scripts(t, f, "testdata/fronts", "grpc") })
	for name, dir := range map[string]string{"commands over D-Bus": "testdata/fronts", "D-Bus": "testdata/dbus"} {
		t.Run(name, func(t *testing.T) {
			if noBus != nil {
				t.Skip(noBus)
			}
			scripts(t, f, dir, "dbus")
		})
	}
	t.Run("manual", func(t *testing.T) { manual(t, f) })
}

func scripts(t *testing.T, f *fixture, dir, via string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MIHF_ADDRESS", "unix://"+f.socket)
			e.Setenv("MIHF_DBUS_ADDRESS", f.bus)
			e.Setenv("MIHF_NATS_ADDRESS", f.nats)
			e.Setenv("NATS", f.nats)
			e.Setenv("PASSWORD", "reader.pass")
			if via == "nats" {
				e.Setenv("MIHF_USER", "admin")
				e.Setenv("MIHF_PASSWORD_FILE", "admin.pass")
			}
			for name, secret := range map[string]string{"reader.pass": readerSecret, "admin.pass": adminSecret + "\n"} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), []byte(secret), 0o600); err != nil {
					return err
				}
			}
			e.Setenv("MIHF_VIA", via)
			e.Setenv("BUS", f.bus)
			e.Setenv("EMPTY", f.emptyBus)
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("PREDICTION", f.prediction.String())
			e.Setenv("FLOW", string(f.flow))
			e.Setenv("LINK", string(walk.Link))
			e.Setenv("HOSTILE", string(hostile))
			return os.WriteFile(filepath.Join(e.WorkDir, "walk.jsonl"), walkFile(t), 0o644)
		},
	})
}

func walkFile(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../../mihf/recording/walk/walk.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return b
}
