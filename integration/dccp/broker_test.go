package dccp

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mihf.dev/clients/attach"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/engine"
	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
	"mihf.dev/transports/dccp/dccpnet/dccpnettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	wlan   = mihf.LinkID("wifi-00000001")
	home   = "192.0.2.2:7000"
	server = "203.0.113.1:6511"
)

// warned is a predictor that says what a test tells it.
type warned struct{ soon atomic.Bool }

func (w *warned) Observe(mihf.Time, *mihf.Observation) {}
func (w *warned) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now, Interval: 100 * time.Millisecond}
	if w.soon.Load() {
		f.Loss.Set(func(s float64) float64 { return min(s/0.3, 1) * 0.95 })
	}
	return true
}

// bed is a broker with a download that is joined to it, all in virtual time.
type bed struct {
	t       *testing.T
	broker  *broker.Broker
	kill    func() // ends the broker
	soon    *warned
	net     *dccpnettest.Network
	client  *dccpnet.Conn
	server  *dccpnet.Conn
	got     atomic.Int64
	freezes atomic.Int64
	thaws   []mihf.Unfreeze
}

// Attach is what a client of the broker does.
func (b *bed) Attach(ctx context.Context) (mihf.Attachment, error) {
	return b.broker.Attach(ctx, mihf.Caller{Front: "inproc", UID: mihf.Some[uint32](0)})
}

// noted is the connection as attach sees it; it counts what it is told.
type noted struct {
	*dccpnet.Conn
	b *bed
}

func (n noted) Freeze(f mihf.Freeze) {
	n.b.freezes.Add(1)
	n.Conn.Freeze(f)
}

func (n noted) Unfreeze(u mihf.Unfreeze) {
	n.b.thaws = append(n.b.thaws, u)
	n.Conn.Unfreeze(u)
}

// run builds a bed and runs a test in it.
func run(t *testing.T, ccid uint8, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, soon: &warned{}}
		cfg := broker.Config{Engine: engine.Defaults(), Clock: clock.Process()}
		cfg.Engine.Boot, cfg.Engine.Node = 1, "n"
		cfg.Engine.NewPredictor = func(mihf.LinkID) engine.Predictor { return b.soon }
		b.broker = broker.New(cfg)
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		brokerCtx, kill := context.WithCancel(ctx)
		wg.Go(func() { _ = b.broker.Run(brokerCtx) })
		b.kill = kill
		b.see(true)
		b.connect(ccid)
		flow := attach.New(noted{b.client, b}, b, attach.Options{Clock: clock.Process(), Spec: b.spec()})
		wg.Go(func() {
			if err := flow.Run(ctx); err != nil {
				t.Errorf("flow: %v", err)
			}
		})
		<-flow.Ready()
		wg.Go(func() { b.pump(b.server.Write) })
		wg.Go(func() {
			b.pump(func(buf []byte) (int, error) {
				n, err := b.client.Read(buf)
				b.got.Add(1)
				return n, err
			})
		})
		time.Sleep(2 * time.Second)
		f(b)
		cancel()
		kill()
		b.client.Abort()
		b.server.Abort()
		_ = b.client.Close()
		wg.Wait()
	})
}

func (b *bed) pump(f func([]byte) (int, error)) {
	for buf := make([]byte, 500); ; {
		if _, err := f(buf); err != nil {
			return
		}
	}
}

func (b *bed) connect(ccid uint8) {
	b.t.Helper()
	b.net = dccpnettest.New(10 * time.Millisecond)
	b.net.Spacing, b.net.Queue = time.Millisecond, 50
	o := dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}}}
	l, err := dccpnet.Listen(b.net.Open(server), o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close() })
	b.client, err = dccpnet.Dial(b.t.Context(), b.net.Open(home), netip.MustParseAddrPort(server), o)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.server, err = l.AcceptDCCP(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) spec() mihf.FlowSpec {
	s := b.client.FlowSpec()
	s.Link, s.Direction = wlan, mihf.DirectionReceive
	return s
}

// see tells the broker of the link, and takes the path away or gives it back.
func (b *bed) see(up bool) {
	facts := mihf.LinkFacts{Name: "wlan0", AdminUp: true, Oper: mihf.OperDown}
	if up {
		facts = mihf.LinkFacts{
			Name: "wlan0", AdminUp: true, Carrier: true, Oper: mihf.OperUp,
			Addresses: []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}},
			Defaults:  []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1")}},
		}
	}
	if b.net != nil {
		b.net.SetDown("192.0.2.2", !up)
	}
	b.broker.Observe(&mihf.Observation{At: b.broker.Now(), Link: wlan, Kind: mihf.ObsLink, Facts: &facts})
}

// warn has the predictor see a loss, and the broker look.
func (b *bed) warn(soon bool) {
	b.soon.soon.Store(soon)
	o := mihf.Observation{At: b.broker.Now(), Link: wlan, Kind: mihf.ObsRadio}
	o.Values.Set(mihf.ParamRSSI, -80)
	b.broker.Observe(&o)
}

func (b *bed) flows(d time.Duration) bool {
	before := b.got.Load()
	time.Sleep(d)
	return b.got.Load() > before
}

func (b *bed) wantThaw(cause mihf.UnfreezeCause, recovery bool) {
	b.t.Helper()
	synctest.Wait()
	if len(b.thaws) != 1 || b.thaws[0].Cause != cause || b.thaws[0].Recovery != recovery {
		b.t.Errorf("thawed by %+v, want %v, recovery %v", b.thaws, cause, recovery)
	}
	if n := b.freezes.Load(); n != 1 {
		b.t.Errorf("frozen %d times", n)
	}
	if b.client.Frozen() {
		b.t.Error("still frozen")
	}
}

var ccids = []uint8{2, 3}

// Announced in time, the loss of the link costs nothing: the broker freezes the flow, the
// peer's sender stops, and both go on when the path is usable again.
func TestPredictedLoss(t *testing.T) {
	for _, ccid := range ccids {
		run(t, ccid, func(b *bed) {
			b.warn(true)
			time.Sleep(100 * time.Millisecond)
			if !b.client.Frozen() || !b.server.Frozen() {
				t.Fatal("not frozen, or not at both ends")
			}
			b.see(false)
			time.Sleep(2 * time.Second)
			if !b.client.Frozen() || b.net.LostData() > 0 {
				t.Errorf("frozen %v, %d data packets lost", b.client.Frozen(), b.net.LostData())
			}
			b.warn(false)
			b.see(true)
			if !b.flows(100 * time.Millisecond) {
				t.Error("does not go on")
			}
			b.wantThaw(mihf.UnfreezePathUsable, false)
		})
	}
}

// The forecast was wrong: the flow is thawed by the rollback, at the rate before.
func TestWrongForecast(t *testing.T) {
	for _, ccid := range ccids {
		run(t, ccid, func(b *bed) {
			b.warn(true)
			time.Sleep(100 * time.Millisecond)
			if !b.client.Frozen() {
				t.Fatal("not frozen")
			}
			b.warn(false)
			for range 20 {
				time.Sleep(100 * time.Millisecond)
				b.warn(false)
			}
			if !b.flows(100 * time.Millisecond) {
				t.Error("does not go on")
			}
			b.wantThaw(mihf.UnfreezeRollback, false)
		})
	}
}

// No forecast: at the disconnect the flow is frozen late, which spares what the peer would
// send in vain once the link is back, and the link's return thaws it.
func TestLateFreeze(t *testing.T) {
	for _, ccid := range ccids {
		run(t, ccid, func(b *bed) {
			b.see(false)
			time.Sleep(3 * time.Second)
			if !b.client.Frozen() {
				t.Fatal("not frozen")
			}
			b.see(true)
			if !b.flows(500 * time.Millisecond) {
				t.Error("does not go on")
			}
			b.wantThaw(mihf.UnfreezePathUsable, false)
		})
	}
}

// The broker dies while the flow is frozen: the lease ends the freeze, to recovery.
func TestDeadBroker(t *testing.T) {
	for _, ccid := range ccids {
		run(t, ccid, func(b *bed) {
			b.warn(true)
			time.Sleep(100 * time.Millisecond)
			if !b.client.Frozen() {
				t.Fatal("not frozen")
			}
			b.kill()
			time.Sleep(4 * time.Second)
			if !b.flows(time.Second) {
				t.Error("does not go on")
			}
			synctest.Wait()
			if n := len(b.thaws); n != 1 || !b.thaws[0].Recovery {
				t.Errorf("thawed by %+v", b.thaws)
			}
		})
	}
}
