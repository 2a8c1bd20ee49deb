package liveview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a client of a broker that says what the test says.
type fake struct {
	clients.Client
	feed  *fakeFeed
	fail  func() error // of Snapshot; nil: none
	blind bool         // to hints
}

func newFake() *fake {
	return &fake{feed: &fakeFeed{items: make(chan mihf.Delivery, 16), done: make(chan struct{})}}
}

func (f *fake) Follow(_ context.Context, req mihf.SubscribeRequest) (mihf.Feed, error) {
	if f.blind && req.Hints {
		return nil, mihf.ErrPermission
	}
	return f.feed, nil
}

func (f *fake) Snapshot(context.Context) (*mihf.Snapshot, error) {
	if f.fail != nil {
		if err := f.fail(); err != nil {
			return nil, err
		}
	}
	at := clock.Boot().Now()
	l := mihf.LinkStatus{Link: wlan, Up: true, Since: at, ValuesAt: at, Facts: &mihf.LinkFacts{Name: "wl\x1b[0m"}}
	l.Values.Set(mihf.ParamRSSI, -61)
	return &mihf.Snapshot{Node: "laptop", Boot: 1, At: at, Links: []mihf.LinkStatus{l}}, nil
}

type fakeFeed struct {
	items chan mihf.Delivery
	once  sync.Once
	done  chan struct{}
}

func (f *fakeFeed) Next(buf []mihf.Delivery) (int, error) {
	select {
	case buf[0] = <-f.items:
		return 1, nil
	case <-f.done:
		return 0, mihf.ErrClosed
	}
}
func (f *fakeFeed) Done() <-chan struct{} { return f.done }
func (f *fakeFeed) Err() error            { return nil }
func (f *fakeFeed) Close()                { f.once.Do(func() { close(f.done) }) }

// terminal is a pseudo-terminal whose user the test is.
type terminal struct {
	t    *testing.T
	user *os.File // the end with the keys and the screen
	tty  *os.File
	mu   sync.Mutex // guards seen
	seen bytes.Buffer
	more chan struct{}
	wg   sync.WaitGroup
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, user: user, tty: tty, more: make(chan struct{}, 1)}
	x.size(80, 24)
	x.wg.Go(x.read)
	t.Cleanup(func() {
		_ = tty.Close() // ends read
		x.wg.Wait()
		_ = user.Close()
	})
	return x
}

func (x *terminal) size(width, height uint16) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) read() {
	var b [4096]byte
	for {
		n, err := x.user.Read(b[:])
		if err != nil {
			return
		}
		x.mu.Lock()
		x.seen.Write(b[:n])
		x.mu.Unlock()
		select {
		case x.more <- struct{}{}:
		default:
		}
	}
}

// wantSeen waits until the screen was sent s, and returns all that was sent so far.
func (x *terminal) wantSeen(s string) string {
	x.t.Helper()
	limit := time.After(10 * time.Second)
	for {
		x.mu.Lock()
		all := x.seen.String()
		x.mu.Unlock()
		if strings.Contains(all, s) {
			return all
		}
		select {
		case <-x.more:
		case <-limit:
			x.t.Fatalf("the screen never got %q, but at last\n%q", s, all[max(0, len(all)-500):])
		}
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.user.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) modes() *unix.Termios {
	x.t.Helper()
	m, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return m
}

// "The terminal is as it was before when Run returns, however it ends."
func TestTerminalIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(x *terminal, c *fake, cancel func()){
		"q":        func(x *terminal, _ *fake, _ func()) { x.press("q") },
		"ctrl-c":   func(x *terminal, _ *fake, _ func()) { x.press("\x03") },
		"context":  func(_ *terminal, _ *fake, cancel func()) { cancel() },
		"the feed": func(_ *terminal, c *fake, _ func()) { c.feed.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", "")
			x, c := openTerminal(t), newFake()
			before := x.modes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, c, x.tty, x.tty) }()
			x.wantSeen(`wl\x1b[0m`)
			if cmp.Equal(before, x.modes()) {
				t.Error("the terminal was not taken")
			}
			end(x, c, cancel)
			if err := <-ended; err != nil && (name != "the feed" || !errors.Is(err, mihf.ErrClosed)) {
				t.Errorf("Run: %v", err)
			}
			x.wantSeen(leave)
			if diff := cmp.Diff(before, x.modes()); diff != "" {
				t.Errorf("modes (-before +after)\n%s", diff)
			}
		})
	}
}

// A key that means nothing, an event, a new size and a daemon that does not answer.
func TestScreen(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	x, c := openTerminal(t), newFake()
	broken := make(chan struct{})
	c.fail = func() error {
		select {
		case <-broken:
			return errors.New("connection refused")
		default:
			return nil
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), c, x.tty, x.tty) }()
	all := x.wantSeen("-61 dBm")
	if sgr.MatchString(all) {
		t.Errorf("colour, or a name's escape sequence: %q", all)
	}
	x.press("x")
	c.feed.items <- mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Kind: mihf.LinkUp, Link: wlan, At: clock.Boot().Now()}}
	x.wantSeen("up: down → up")
	x.size(100, 30)
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	x.wantSeen(strings.Repeat(" ", 100-len("mihf on laptop  run 00000001  sequence 0")-len("  00:00:00  q quits")))
	close(broken)
	x.wantSeen("no answer from the daemon: connection refused")
	x.press("q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// "Where the output is not a terminal, change lines are printed instead, without escapes."
func TestLines(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := newFake()
	c.blind = true // events are shown to who may see no hints
	ev := mihf.Event{Kind: mihf.LinkRenamed, Link: wlan, Sequence: 8, At: clock.Boot().Now(), Rename: &mihf.Rename{Old: "a", New: "b\x1b[31m"}}
	c.feed.items <- mihf.Delivery{Kind: mihf.DeliverEvent, Event: ev}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer c.feed.Close()
		ended <- Run(ctx, c, w)
	}()
	var b [1024]byte
	n, err := r.Read(b[:])
	if err != nil {
		t.Fatal(err)
	}
	got := string(b[:n])
	if !strings.HasSuffix(got, `     8  wifi-3fa9c01d  link_renamed            a → b\x1b[31m`+"\n") {
		t.Errorf("%q", got)
	}
	cancel()
	c.feed.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_, _ = r.Close(), w.Close()
}

// "It is drawn at most ten times a second, and only when something has changed."
func TestDrawnAtMostTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int64
		v := newViewer(nil, func(*state) error { count.Add(1); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.loop(ctx) }()
		for range 2000 {
			time.Sleep(time.Millisecond)
			v.deliveries <- mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Kind: mihf.LinkUp}}
		}
		if drawn := count.Load(); drawn < 15 || drawn > 21 {
			t.Errorf("drawn %d times in 2 s of changes", drawn)
		}
		time.Sleep(time.Second)
		before := count.Load()
		time.Sleep(10 * time.Second)
		if n := count.Load() - before; n > 10 {
			t.Errorf("drawn %d times in 10 s without a change; ages need 10", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The state is asked for in turn, at once after an event, and never more often than drawn.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int64
		c := newFake()
		c.fail = func() error { count.Add(1); return errors.New("no") }
		v := newViewer(nil, func(*state) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = v.loop(ctx) })
		wg.Go(func() { _ = v.ask(ctx, c) })
		time.Sleep(10 * time.Second)
		if asked := count.Load(); asked < 35 || asked > 42 {
			t.Errorf("asked %d times in 10 quiet seconds", asked)
		}
		count.Store(0)
		for range 1000 {
			time.Sleep(time.Millisecond)
			v.deliveries <- mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Kind: mihf.LinkUp}}
		}
		if asked := count.Load(); asked < 8 || asked > 12 {
			t.Errorf("asked %d times in a second of changes", asked)
		}
		cancel()
		wg.Wait()
	})
}
