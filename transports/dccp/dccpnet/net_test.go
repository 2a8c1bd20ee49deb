package dccpnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
	"mihf.dev/transports/dccp/dccpnet/dccpnettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	wifi   = "192.0.2.1:7000"
	cell   = "198.51.100.1:7001"
	server = "203.0.113.1:6511"
)

// world is a download over a network: data from the server to the client.
type world struct {
	t      *testing.T
	n      *dccpnettest.Network
	l      *dccpnet.Listener
	client *dccpnet.Conn
	server *dccpnet.Conn
	got    atomic.Int64
	wg     sync.WaitGroup
}

// start opens the connection; under synctest.
func start(t *testing.T, o dccpnet.Options) *world {
	t.Helper()
	w := &world{t: t, n: dccpnettest.New(10 * time.Millisecond)}
	w.n.Spacing, w.n.Queue = time.Millisecond, 50
	w.connect(w.n.Open(server), o)
	return w
}

// connect opens the connection to a listener on the carrier.
func (w *world) connect(carrier dccpnet.Carrier, o dccpnet.Options) {
	w.t.Helper()
	l, err := dccpnet.Listen(carrier, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.l = l
	o.Conn.DstPort = 5001
	w.client, err = dccpnet.Dial(w.t.Context(), w.n.Open(wifi), netip.MustParseAddrPort(server), o)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.server, err = l.AcceptDCCP(); err != nil {
		w.t.Fatal(err)
	}
}

// download lets data flow until the world ends.
func (w *world) download() {
	w.wg.Go(func() {
		for b := make([]byte, 500); ; {
			if _, err := w.server.Write(b); err != nil {
				return
			}
		}
	})
	w.wg.Go(func() {
		for b := make([]byte, 1500); ; {
			if _, err := w.client.Read(b); err != nil {
				return
			}
			w.got.Add(1)
		}
	})
	time.Sleep(2 * time.Second)
}

// flows reports whether data comes within d.
func (w *world) flows(d time.Duration) bool {
	before := w.got.Load()
	time.Sleep(d)
	return w.got.Load() > before
}

func (w *world) end() {
	w.client.Abort()
	w.server.Abort()
	_ = w.client.Close()
	_ = w.server.Close()
	_ = w.l.Close()
	w.wg.Wait()
}

func each(t *testing.T, f func(t *testing.T, ccid uint8)) {
	t.Helper()
	for _, ccid := range []uint8{2, 3} {
		t.Run(map[uint8]string{2: "CCID 2", 3: "CCID 3"}[ccid], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, ccid) })
		})
	}
}

// Frozen a round-trip ahead, nothing is lost while the address is away, and data comes
// within a round-trip of the thaw.
func TestFreezeOverOutage(t *testing.T) {
	each(t, func(t *testing.T, ccid uint8) {
		t.Helper()
		w := start(t, dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}}})
		defer w.end()
		w.download()
		w.client.Freeze(mihf.Freeze{})
		time.Sleep(80 * time.Millisecond)
		w.n.SetDown("192.0.2.1", true)
		time.Sleep(2 * time.Second)
		w.n.SetDown("192.0.2.1", false)
		if n := w.n.LostData(); n != 0 {
			t.Errorf("%d data packets lost", n)
		}
		w.client.Unfreeze(mihf.Unfreeze{})
		if !w.flows(25 * time.Millisecond) {
			t.Error("nothing comes within a round-trip")
		}
	})
}

// A vertical handover takes the old address away: the connection goes on from another one,
// and nothing was lost.
func TestRebindToOtherAddress(t *testing.T) {
	each(t, func(t *testing.T, ccid uint8) {
		t.Helper()
		w := start(t, dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}}})
		defer w.end()
		w.download()
		w.client.Freeze(mihf.Freeze{})
		time.Sleep(80 * time.Millisecond)
		w.n.SetDown("192.0.2.1", true)
		time.Sleep(time.Second)
		if err := w.client.Rebind(t.Context(), w.n.Open(cell)); err != nil {
			t.Fatal(err)
		}
		w.client.Unfreeze(mihf.Unfreeze{})
		if !w.flows(100 * time.Millisecond) {
			t.Fatalf("nothing comes: client %v %+v, server %v %+v", w.client.State(), w.client.Stats(), w.server.State(), w.server.Stats())
		}
		if n := w.n.LostData(); n != 0 {
			t.Errorf("%d data packets lost", n)
		}
		if got := w.server.RemoteAddr().(dccpnet.Addr).Host.String(); got != cell {
			t.Errorf("the server sends to %s", got)
		}
		if got := w.client.LocalAddr().(dccpnet.Addr).Host.String(); got != cell {
			t.Errorf("the client is at %s", got)
		}
		if err := w.client.Close(); err != nil || w.server.State() == dccp.StateOpen {
			t.Errorf("close: %v, server %v", err, w.server.State())
		}
	})
}

// Without a freeze, too, the connection goes on; and the server's end can move as well.
func TestRebindOfEitherEnd(t *testing.T) {
	each(t, func(t *testing.T, ccid uint8) {
		t.Helper()
		w := start(t, dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}}})
		defer w.end()
		w.download()
		w.n.SetDown("192.0.2.1", true)
		if err := w.client.Rebind(t.Context(), w.n.Open(cell)); err != nil {
			t.Fatal(err)
		}
		if !w.flows(time.Second) {
			t.Error("nothing comes after the client's move")
		}
		if err := w.server.Rebind(t.Context(), w.n.Open("203.0.113.2:6512")); err != nil {
			t.Fatal(err)
		}
		w.n.SetDown("203.0.113.1", true)
		if !w.flows(time.Second) {
			t.Error("nothing comes after the server's move")
		}
	})
}

// Frozen for ten minutes, a NAT has forgotten the way and shows the client under another
// address: the connection finds back by itself.
func TestFrozenForTenMinutesBehindNAT(t *testing.T) {
	each(t, func(t *testing.T, ccid uint8) {
		t.Helper()
		w := start(t, dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}, MaxFreeze: 15 * time.Minute}})
		defer w.end()
		w.download()
		w.client.Freeze(mihf.Freeze{})
		time.Sleep(80 * time.Millisecond)
		w.n.SetDown("192.0.2.1", true)
		time.Sleep(10 * time.Minute)
		w.n.SetDown("192.0.2.1", false)
		w.n.NAT(wifi, "192.0.2.99:1234")
		w.client.Unfreeze(mihf.Unfreeze{})
		if !w.flows(time.Second) {
			t.Fatalf("nothing comes: client %v %+v, server %v %+v", w.client.State(), w.client.Stats(), w.server.State(), w.server.Stats())
		}
		if got := w.server.RemoteAddr().(dccpnet.Addr).Host.String(); got != "192.0.2.99:1234" {
			t.Errorf("the server sends to %s", got)
		}
	})
}

// A NAT that forgets in the middle of an upload: the server's Reset for packets that it
// cannot place is answered by a move, not believed.
func TestNATForgetsWhileSending(t *testing.T) {
	each(t, func(t *testing.T, ccid uint8) {
		t.Helper()
		w := start(t, dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}}})
		defer w.end()
		send := func() error {
			_, err := w.client.Write([]byte("up"))
			time.Sleep(100 * time.Millisecond)
			return err
		}
		if err := send(); err != nil {
			t.Fatal(err)
		}
		w.n.NAT(wifi, "192.0.2.99:1234")
		for range 20 {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}
		if s := w.server.Stats(); s.DataReceived < 18 {
			t.Errorf("server got %d of 21, client %+v", s.DataReceived, w.client.Stats())
		}
	})
}

// A peer without rebinding says so, and the connection stays as it is.
func TestRebindWithoutPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, dccpnet.Options{NoRebind: true})
		defer w.end()
		if err := w.client.Rebind(t.Context(), w.n.Open(cell)); !errors.Is(err, dccpnet.ErrNoRebind) {
			t.Errorf("error %v", err)
		}
	})
}

// A move to where no answer comes from fails, and the connection goes on where it was.
func TestRebindFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, dccpnet.Options{})
		defer w.end()
		w.download()
		w.n.SetDown("198.51.100.1", true)
		if err := w.client.Rebind(t.Context(), w.n.Open(cell)); err == nil {
			t.Error("moved to nowhere")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.client.Rebind(ctx, w.n.Open(cell)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if !w.flows(time.Second) {
			t.Error("does not go on")
		}
	})
}

// With the default longest freeze, one that nobody ends is over after 60 s, and the
// connection alive.
func TestFreezeLapses(t *testing.T) {
	each(t, func(t *testing.T, ccid uint8) {
		t.Helper()
		w := start(t, dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}}})
		defer w.end()
		w.download()
		w.client.Freeze(mihf.Freeze{})
		time.Sleep(30 * time.Second)
		if !w.client.Frozen() || w.flows(20*time.Second) {
			t.Error("the freeze does not hold")
		}
		time.Sleep(11 * time.Second)
		if w.client.Frozen() || !w.flows(time.Second) {
			t.Error("the freeze does not end")
		}
	})
}

// A half-open limit of none: every connection comes by a cookie.
func TestCookiesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, dccpnet.Options{HalfOpen: -1})
		defer w.end()
		if s := w.l.Stats(); s.CookiesSent != 1 || s.CookiesAccepted != 1 {
			t.Errorf("stats %+v", s)
		}
		if !w.client.Rebinds() || !w.server.Rebinds() {
			t.Error("no key agreed")
		}
		w.download()
		if w.got.Load() == 0 {
			t.Error("nothing flows")
		}
	})
}

// What fills the receive queue is dropped and told, and the sender slows down.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, dccpnet.Options{ReceiveQueue: 20})
		defer w.end()
		w.wg.Go(func() {
			for b := make([]byte, 100); ; {
				if _, err := w.server.Write(b); err != nil {
					return
				}
			}
		})
		buf := make([]byte, 100)
		for range 200 {
			time.Sleep(10 * time.Millisecond)
			if _, err := w.client.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		s := w.client.Stats()
		if s.Overflow == 0 || s.Overflow > 400 {
			t.Errorf("%d of %d dropped", s.Overflow, s.DataReceived)
		}
	})
}

// After the peer's close, Read gives what came before and then io.EOF.
func TestReadAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, dccpnet.Options{})
		defer w.end()
		for range 3 {
			if _, err := w.server.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.server.Close(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		for range 3 {
			if n, err := w.client.Read(buf); n != 1 || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if _, err := w.client.Read(buf); !errors.Is(err, io.EOF) {
			t.Errorf("error %v", err)
		}
	})
}

// Where the carrier or the listener ends, Read gives what came before and then the
// reason; after Abort or Close of this end it gives nothing.
func TestReadAfterEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, carrier *dccpnettest.Carrier)
		gets int
	}{
		"carrier":  {end: func(_ *world, carrier *dccpnettest.Carrier) { _ = carrier.Close() }, gets: 3},
		"listener": {end: func(w *world, _ *dccpnettest.Carrier) { _ = w.l.Close() }, gets: 3},
		"Abort":    {end: func(w *world, _ *dccpnettest.Carrier) { w.server.Abort() }},
		"Close":    {end: func(w *world, _ *dccpnettest.Carrier) { _ = w.server.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, n: dccpnettest.New(10 * time.Millisecond)}
				carrier := w.n.Open(server)
				w.connect(carrier, dccpnet.Options{})
				defer w.end()
				for range 3 {
					if _, err := w.client.Write([]byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				c.end(w, carrier)
				time.Sleep(time.Second)
				buf := make([]byte, 10)
				for range c.gets {
					if n, err := w.server.Read(buf); n != 1 || err != nil {
						t.Fatalf("%d, %v", n, err)
					}
				}
				if _, err := w.server.Read(buf); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Read: error %v", err)
				}
				if _, err := w.server.Write(buf); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Write: error %v", err)
				}
			})
		})
	}
}
