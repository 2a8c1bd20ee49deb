package live_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mihf.dev/cmd/mihgw/internal/live"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/transports/tcpadjust/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker tells an agent of one link. It is a stand-in: what a real one says comes from a
// forecast and a kernel's routes, which are not what these tests are about.
type broker struct {
	events chan mihf.Event
	link   mihf.LinkStatus
}

func (b *broker) Follow(ctx context.Context, _ mihf.SubscribeRequest) (mihf.Feed, error) {
	return &feed{ctx: ctx, events: b.events}, nil
}

func (b *broker) Snapshot(context.Context) (*mihf.Snapshot, error) {
	return &mihf.Snapshot{Links: []mihf.LinkStatus{b.link}}, nil
}

func (b *broker) Attach(context.Context) (mihf.Attachment, error) { return nil, mihf.ErrClosed }

type feed struct {
	ctx    context.Context
	events chan mihf.Event
}

func (f *feed) Next(buf []mihf.Delivery) (int, error) {
	select {
	case e := <-f.events:
		buf[0] = mihf.Delivery{Kind: mihf.DeliverEvent, Event: e}
		return 1, nil
	case <-f.ctx.Done():
		return 0, f.ctx.Err()
	}
}
func (f *feed) Done() <-chan struct{} { return f.ctx.Done() }
func (f *feed) Err() error            { return f.ctx.Err() }
func (f *feed) Close()                {}

// bed is an agent on a host that is joined to another one.
type bed struct {
	t         *testing.T
	near, far *netns.NS
	broker    *broker
	kernel    *kernel.Actuator
	journal   string

	mu      sync.Mutex
	actions []live.Action
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, near: netns.New(t), far: netns.New(t), journal: filepath.Join(t.TempDir(), "journal")}
	b.near.Pair("v0", b.far, "v1")
	b.near.Up("v0")
	b.far.Up("v1")
	b.near.AddAddr("v0", "10.5.0.1/24", 0, 0)
	b.far.AddAddr("v1", "10.5.0.2/24", 0, 0)
	k, err := kernel.Open()
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.kernel = k
	t.Cleanup(func() { _ = k.Close() })
	b.broker = &broker{events: make(chan mihf.Event), link: mihf.LinkStatus{Link: "lnk", Facts: &mihf.LinkFacts{
		Name: "v0", Index: b.near.Index("v0"),
		Addresses: []mihf.Address{{Prefix: netip.MustParsePrefix("10.5.0.1/24")}},
	}}}
	return b
}

// start runs an agent in the near namespace until the test or stop ends it.
func (b *bed) start(cfg live.Config) (stop func()) {
	b.t.Helper()
	cfg.Clock = clock.Boot()
	cfg.Report = func(a live.Action) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.actions = append(b.actions, a)
	}
	j, err := live.OpenJournal(b.journal)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.near.Do(func() error { return live.New(cfg, b.broker, b.kernel, j).Run(ctx) }); err != nil {
			b.t.Error(err)
		}
	}()
	return func() { cancel(); <-done }
}

// did returns what was done to a connection, in order.
func (b *bed) did(local net.Addr) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, a := range b.actions {
		if a.Local.String() == local.String() {
			what := a.What
			if a.Dry {
				what += " (dry)"
			}
			if a.Why != "" {
				what += ": " + a.Why
			}
			out = append(out, what)
		}
	}
	return out
}

func (b *bed) usable(lci *mihf.LCI) {
	b.broker.events <- mihf.Event{Kind: mihf.PathUsable, Link: "lnk", Path: &mihf.Path{Source: netip.MustParseAddr("10.5.0.1"), LCI: lci}}
}

// connect returns a connection from the near host, and its far end.
func (b *bed) connect() (near, far *net.TCPConn) {
	b.t.Helper()
	var l net.Listener
	b.in(b.far, func() (err error) {
		l, err = new(net.ListenConfig).Listen(b.t.Context(), "tcp", "10.5.0.2:0")
		return err
	})
	defer l.Close()
	b.in(b.near, func() error {
		c, err := new(net.Dialer).DialContext(b.t.Context(), "tcp", l.Addr().String())
		if err == nil {
			near = c.(*net.TCPConn)
		}
		return err
	})
	c, err := l.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	far = c.(*net.TCPConn)
	b.t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func (b *bed) in(ns *netns.NS, f func() error) {
	b.t.Helper()
	if err := ns.Do(f); err != nil {
		b.t.Fatal(err)
	}
}

// pump sends without end from one end to the other.
func (b *bed) pump(from, to *net.TCPConn) {
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(io.Discard, to) })
	wg.Go(func() {
		for buf := make([]byte, 1<<16); ; {
			if _, err := from.Write(buf); err != nil {
				return
			}
		}
	})
	b.t.Cleanup(func() { from.Close(); to.Close(); wg.Wait() })
	b.until("data", func() bool { return info(b.t, from).Bytes_acked > 1<<20 })
}

func (b *bed) until(what string, cond func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func info(t *testing.T, c *net.TCPConn) *unix.TCPInfo {
	t.Helper()
	var i *unix.TCPInfo
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { i, _ = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	}
	if err != nil || i == nil {
		t.Fatalf("TCP_INFO: %v", err)
	}
	return i
}

func TestRecover(t *testing.T) {
	b := newBed(t)
	upNear, upFar := b.connect()
	downNear, downFar := b.connect()
	b.pump(upNear, upFar)
	b.pump(downFar, downNear)
	defer b.start(live.Config{})()
	b.near.Down("v0")
	b.until("a loss at the sender", func() bool { return info(t, upNear).Backoff > 0 })
	b.near.Up("v0")
	before := [2]uint64{info(t, upNear).Bytes_acked, info(t, downFar).Bytes_acked}
	b.usable(nil)
	b.until("data both ways", func() bool {
		return info(t, upNear).Bytes_acked > before[0] && info(t, downFar).Bytes_acked > before[1]
	})
	b.until("the report", func() bool { return len(b.did(downNear.LocalAddr())) > 1 })
	if got := b.did(upNear.LocalAddr()); !slices.Equal(got, []string{"recover"}) {
		t.Errorf("upload: %q", got)
	}
	if got := b.did(downNear.LocalAddr()); !slices.Equal(got, []string{"recover", "unreachable"}) {
		t.Errorf("download: %q", got)
	}
}

// tiny are characteristics that a sender may rely on: a path of two segments.
func tiny() *mihf.LCI {
	c := func(v float64) mihf.Characteristic {
		return mihf.Characteristic{Value: v, Source: mihf.SourceMeasured, At: clock.Boot().Now(), Confidence: 0.9}
	}
	return &mihf.LCI{CapacityUpBPS: c(2e3), CapacityDownBPS: c(2e3), RTTSeconds: c(0.05)}
}

// TestAdjustAndPutBack: a window follows the characteristics; an agent that ends, or died,
// leaves no clamp and no pacing.
func TestAdjustAndPutBack(t *testing.T) {
	for _, crash := range []bool{false, true} {
		name := "ends"
		if crash {
			name = "crashes"
		}
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			near, far := b.connect()
			b.pump(near, far)
			stop := b.start(live.Config{Adjust: true})
			b.usable(tiny())
			b.until("a clamp", func() bool { return b.clamp(near) == 4 })
			if crash { // the journal as it was; what the agent puts back at its end is set again
				kept, err := os.ReadFile(b.journal)
				if err != nil {
					t.Fatal(err)
				}
				stop()
				b.in(b.near, func() error {
					_, err := b.kernel.Apply([]kernel.Order{{Cookie: b.socket(near).Cookie, Clamp: 4}})
					return errors.Join(err, os.WriteFile(b.journal, kept, 0o600))
				})
				stop = b.start(live.Config{})
				b.until("the clamp off", func() bool { return b.clamp(near) > 1<<20 })
			}
			stop()
			if got := b.clamp(near); got < 1<<20 {
				t.Errorf("a clamp of %d stays", got)
			}
			if left, err := os.ReadFile(b.journal); err != nil || !strings.Contains(string(left), `"sockets":[]`) {
				t.Errorf("journal: %s, %v", left, err)
			}
		})
	}
}

func (b *bed) socket(c *net.TCPConn) (s kernel.Socket) {
	b.t.Helper()
	b.in(b.near, func() error {
		all, err := b.kernel.Sockets(func(s *kernel.Socket) bool { return s.Local.String() == c.LocalAddr().String() })
		if len(all) == 1 {
			s = all[0]
		}
		return err
	})
	return s
}

func (b *bed) clamp(c *net.TCPConn) uint32 { return b.socket(c).Clamp }

// TestLeftAlone: what isn't named, and what only might be done, is not touched.
func TestLeftAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  live.Config
		lci  *mihf.LCI
		want []string
	}{
		"another link":       {live.Config{Links: []string{"v7"}, Adjust: true}, tiny(), nil},
		"another user":       {live.Config{UIDs: []uint32{4711}, Adjust: true}, tiny(), nil},
		"not asked for":      {live.Config{}, tiny(), []string{"recover"}},
		"not believable":     {live.Config{Adjust: true}, &mihf.LCI{}, []string{"recover", "adjust: round-trip time is not known"}},
		"only to say what":   {live.Config{Adjust: true, DryRun: true}, tiny(), []string{"recover (dry)", "adjust (dry)"}},
		"this link and user": {live.Config{Links: []string{"v0"}, UIDs: []uint32{0}}, nil, []string{"recover"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			near, far := b.connect()
			b.pump(near, far)
			stop := b.start(tt.cfg)
			b.usable(tt.lci)
			b.usable(tt.lci) // when this one is taken the first is done with
			stop()
			got := b.did(near.LocalAddr())
			if len(got) > len(tt.want) {
				got = got[:len(tt.want)]
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("done: %q, want %q", got, tt.want)
			}
			if c := b.clamp(near); c < 1<<20 {
				t.Errorf("a clamp of %d", c)
			}
		})
	}
}
