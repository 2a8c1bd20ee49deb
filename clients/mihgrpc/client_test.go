package mihgrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/grpcfront"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A name that the host itself knows is enough: nothing more is asked of the DNS, which may be
// away.
func TestDialWithoutDNS(t *testing.T) {
	var asked atomic.Bool
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asked.Store(true)
		return nil, errors.New("no DNS")
	}}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil { // nobody is there
		t.Fatal(err)
	}
	c, err := Dial("localhost:"+port, Options{TLS: &tls.Config{MinVersion: tls.VersionTLS13}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("error %v, want that nobody is there", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if asked.Load() {
		t.Error("the DNS was asked")
	}
}

func TestDial(t *testing.T) {
	for address, good := range map[string]bool{"unix:///run/x": true, "": true, "host:1": false, "host": false, "unix://x": false} {
		c, err := Dial(address, Options{})
		if (err == nil) != good {
			t.Errorf("Dial(%q): %v", address, err)
		}
		if c != nil {
			for range 2 {
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		}
	}
}

func TestErrorsAreTheVocabularys(t *testing.T) {
	for code, want := range kinds {
		err := errorOf(status.Error(code, "what and why"))
		if !errors.Is(err, want) || err.Error() != "what and why" {
			t.Errorf("%v: %v, want %v", code, err, want)
		}
	}
	if err := errorOf(io.EOF); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("EOF: %v", err)
	}
	for _, x := range []struct{ message, want string }{
		{`connection error: desc = "transport: Error while dialing: dial unix /x: connect: no"`, "dial unix /x: connect: no"},
		{`connection error: desc = "error reading server preface: EOF"`, "error reading server preface: EOF"},
		{`connection error: desc = "half`, `connection error: desc = "half`},
		{"the broker ended", "the broker ended"},
	} {
		if got := errorOf(status.Error(codes.Unavailable, x.message)).Error(); got != x.want {
			t.Errorf("%q is shown as %q, want %q", x.message, got, x.want)
		}
	}
	if errorOf(nil) != nil {
		t.Error("nil must stay nil")
	}
	if err := errorOf(status.Error(codes.Internal, "x")); status.Code(err) != codes.Internal {
		t.Errorf("internal: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	c, err := Dial("unix://"+filepath.Join(t.TempDir(), "s"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Snapshot(t.Context()); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("Snapshot: %v", err)
	}
	if _, err := c.Follow(t.Context(), mihf.SubscribeRequest{}); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("Follow: %v", err)
	}
	if _, err := c.Attach(t.Context()); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("Attach: %v", err)
	}
	if _, err := c.Record(t.Context(), func(*mihf.Observation) error { return nil }); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("Record: %v", err)
	}
}

// runBroker runs a broker until stop.
func runBroker(t *testing.T, boot mihf.BootID) (b *broker.Broker, stop func()) {
	t.Helper()
	cfg := broker.Config{Engine: engine.Defaults()}
	cfg.Engine.Boot = boot
	b = broker.New(cfg)
	return b, run(t, b.Run)
}

// run runs a task until stop, which waits for it.
func run(t *testing.T, task func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := task(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func serve(t *testing.T, b *broker.Broker, path string) (stop func()) {
	t.Helper()
	ln, err := grpcfront.ListenUnix(path, 0o600, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := grpcfront.New(grpcfront.Options{Broker: b, Listeners: []net.Listener{ln}, Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s.Run)
}

// A connection that is lost loses nothing: the subscription resumes where it was. A
// broker that was restarted is seen by a gap and a snapshot.
func TestFollowOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s #1 %41?")
	b, stopBroker := runBroker(t, 1)
	stopFront := serve(t, b, path)
	c, err := Dial("unix://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // only a failure takes so long
	defer cancel()
	feed, err := c.Follow(ctx, mihf.SubscribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	want := func(k mihf.DeliveryKind, n int) {
		t.Helper()
		buf := make([]mihf.Delivery, 1)
		if _, err := feed.Next(buf); err != nil {
			t.Fatal(err)
		}
		if d := &buf[0]; d.Kind != k || (k == mihf.DeliverEvent && d.Event.Gap != time.Duration(n)) {
			t.Fatalf("delivery %+v, want kind %d with mark %d", d, k, n)
		}
	}
	mark := func(n int) {
		b.Observe(&mihf.Observation{At: b.Now(), Kind: mihf.ObsResume, Gap: time.Duration(n)})
	}
	want(mihf.DeliverSnapshot, 0)
	mark(1)
	want(mihf.DeliverEvent, 1)
	stopFront()
	mark(2) // while nobody is connected
	stopFront = serve(t, b, path)
	want(mihf.DeliverEvent, 2)
	mark(3)
	want(mihf.DeliverEvent, 3)
	stopBroker()
	stopFront()
	b, _ = runBroker(t, 2)
	serve(t, b, path)
	want(mihf.DeliverGap, 0)
	want(mihf.DeliverSnapshot, 0)
	mark(4)
	want(mihf.DeliverEvent, 4)
}

// "Close ends what is open on the client": with ErrClientClosed, and nothing dials again,
// be the broker there or not.
func TestCloseEndsWhatIsOpen(t *testing.T) {
	for name, away := range map[string]bool{"connected": false, "broker away": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			b, _ := runBroker(t, 1)
			stopFront := serve(t, b, path)
			c, err := Dial("unix://"+path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()                                // once more
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // only a failure takes so long
			defer cancel()
			read, err := c.Follow(ctx, mihf.SubscribeRequest{})
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			unread, err := c.Follow(ctx, mihf.SubscribeRequest{})
			if err != nil {
				t.Fatal(err)
			}
			defer unread.Close()
			a, err := c.Attach(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if _, err := read.Next(make([]mihf.Delivery, 1)); err != nil {
				t.Fatal(err)
			}
			if away {
				a.Close() // the broker would end it
				stopFront()
			}
			ended := make(chan error, 1)
			go func() { ended <- readAll(read) }()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, clients.ErrClientClosed) {
				t.Errorf("the feed that is read ends with %v", err)
			}
			<-unread.Done()
			if err := unread.Err(); !errors.Is(err, clients.ErrClientClosed) {
				t.Errorf("the feed that nobody reads ends with %v", err)
			}
			if _, err := a.Next(make([]mihf.Delivery, 1)); !errors.Is(err, mihf.ErrClosed) || errors.Is(err, clients.ErrClientClosed) == away {
				t.Errorf("the attachment ends with %v", err)
			}
			if _, err := c.Follow(ctx, mihf.SubscribeRequest{}); !errors.Is(err, clients.ErrClientClosed) {
				t.Errorf("Follow on a closed client: %v", err)
			}
			if _, err := c.Snapshot(ctx); !errors.Is(err, clients.ErrClientClosed) {
				t.Errorf("Snapshot on a closed client: %v", err)
			}
		})
	}
}

// readAll reads a feed to its end.
func readAll(f mihf.Feed) error {
	for buf := make([]mihf.Delivery, 8); ; {
		if _, err := f.Next(buf); err != nil {
			return err
		}
	}
}
