package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is a service manager that writes down what it is told.
type manager struct {
	mu    sync.Mutex // guards told
	told  []string
	fails bool
}

func (m *manager) notify(state string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, state)
	if m.fails {
		return errors.New("nobody listens")
	}
	return nil
}

// want checks what was told since it was called last.
func (m *manager) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := cmp.Diff(want, m.told); d != "" {
		t.Errorf("told (-want +got)\n%s", d)
	}
	m.told = nil
}

func until(name string, after time.Duration) Task {
	return NewTask(name, func(ctx context.Context, ready func()) error {
		select {
		case <-time.After(after):
			ready()
			ready()
		case <-ctx.Done():
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

func TestServe(t *testing.T) { synctest.Test(t, testServe) }
func testServe(t *testing.T) {
	m := &manager{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, nil, m.notify, until("a", time.Second), until("b", 2*time.Second),
			NewTask("short", func(context.Context, func()) error { return nil }))
	}()
	t.Log("# ready only when the last one is")
	time.Sleep(1500 * time.Millisecond)
	m.want(t)
	time.Sleep(time.Second)
	m.want(t, "READY=1")
	t.Log("# the end of the context is no error")
	cancel()
	m.want(t, "STOPPING=1")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	m.want(t)
}

func TestServeStoppedBeforeReady(t *testing.T) { synctest.Test(t, testServeStoppedBeforeReady) }
func testServeStoppedBeforeReady(t *testing.T) {
	m := &manager{fails: true} // which is no reason to fail
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := Serve(ctx, nil, m.notify, until("a", time.Hour)); err != nil {
		t.Error(err)
	}
	m.want(t, "STOPPING=1")
	if err := Serve(ctx, nil, nil, until("a", 0)); err != nil {
		t.Error(err)
	}
}

func TestServeEndsWithItsTasks(t *testing.T) { synctest.Test(t, testServeEndsWithItsTasks) }
func testServeEndsWithItsTasks(t *testing.T) {
	m := &manager{}
	err := Serve(t.Context(), nil, m.notify, NewTask("a", func(context.Context, func()) error {
		time.Sleep(time.Second)
		return nil
	}))
	if err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	last := m.told[len(m.told)-1]
	m.mu.Unlock()
	if last != "STOPPING=1" {
		t.Errorf("last told %q", last)
	}
}

func TestFailureEndsAll(t *testing.T) { synctest.Test(t, testFailureEndsAll) }
func testFailureEndsAll(t *testing.T) {
	broken := errors.New("broken")
	for name, task := range map[string]Task{
		"error": NewTask("bad", func(_ context.Context, ready func()) error {
			ready()
			time.Sleep(time.Second)
			return broken
		}),
		"cancelled by itself": NewTask("bad", func(context.Context, func()) error {
			return errors.Join(context.Canceled, broken)
		}),
		"panic": NewTask("bad", func(_ context.Context, ready func()) error { panic(broken.Error()) }),
	} {
		m := &manager{}
		err := Serve(t.Context(), nil, m.notify, until("good", 0), task)
		if err == nil || !strings.HasPrefix(err.Error(), "bad: ") || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%s: error %v", name, err)
		}
		if p, ok := errors.AsType[*PanicError](err); ok != (name == "panic") || ok && !strings.Contains(string(p.Stack), "daemon_test.go") {
			t.Errorf("%s: error %#v", name, err)
		}
	}
}

func TestWatchdog(t *testing.T) { synctest.Test(t, testWatchdog) }
func testWatchdog(t *testing.T) {
	m := &manager{}
	var hangs atomic.Bool
	probe := func(ctx context.Context) error {
		if !hangs.Load() {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	w := Watchdog(10*time.Second, slog.New(slog.NewTextHandler(&log, nil)), m.notify, probe)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-w.Ready()
	t.Log("# twice in an interval")
	m.want(t, "WATCHDOG=1")
	time.Sleep(11 * time.Second)
	m.want(t, "WATCHDOG=1", "WATCHDOG=1")
	t.Log("# not while the probe hangs, and said once")
	hangs.Store(true)
	time.Sleep(30 * time.Second)
	m.want(t)
	if n := strings.Count(log.String(), "watchdog not fed"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	t.Log("# again when it answers")
	hangs.Store(false)
	time.Sleep(10 * time.Second)
	m.want(t, "WATCHDOG=1", "WATCHDOG=1")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestObey(t *testing.T) { synctest.Test(t, testObey) }
func testObey(t *testing.T) {
	ends, hangups := make(chan os.Signal), make(chan os.Signal)
	var got []string
	ended := make(chan error, 1)
	go func() {
		ended <- obey(t.Context(), ends, hangups, func(s os.Signal) { got = append(got, s.String()) }, func() { got = append(got, "reload") })
	}()
	hangups <- syscall.SIGHUP
	hangups <- syscall.SIGHUP
	synctest.Wait()
	ends <- syscall.SIGTERM
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"reload", "reload", "terminated"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := obey(ctx, nil, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// TestHangingReload: a reload that hangs keeps nobody from ending the daemon.
func TestHangingReload(t *testing.T) { synctest.Test(t, testHangingReload) }

func testHangingReload(t *testing.T) {
	ends, hangups := make(chan os.Signal), make(chan os.Signal)
	ctx, cancel := context.WithCancel(t.Context())
	hang := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- obey(ctx, ends, hangups, func(os.Signal) { cancel() }, func() { <-hang }) }()
	hangups <- syscall.SIGHUP
	synctest.Wait()
	start := time.Now()
	ends <- syscall.SIGTERM
	if err := <-ended; err != nil || ctx.Err() == nil || time.Since(start) > reloadGrace {
		t.Errorf("error %v, stopped: %v, after %v", err, ctx.Err() != nil, time.Since(start))
	}
	close(hang)
}

// TestReloadPanics: a panic of a reload ends the daemon with its reason.
func TestReloadPanics(t *testing.T) { synctest.Test(t, testReloadPanics) }

func testReloadPanics(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	hangups <- syscall.SIGHUP
	err := obey(t.Context(), nil, hangups, nil, func() { panic("boom") })
	if p, ok := errors.AsType[*PanicError](err); !ok || p.Value != "boom" {
		t.Errorf("error %v, want the panic", err)
	}
}

// TestSignals sends the test's own process signals. A second SIGTERM would kill it, which
// the test of cmd/mihfd shows.
func TestSignals(t *testing.T) {
	m := &manager{}
	ctx, cancel := context.WithCancel(t.Context())
	reloaded := make(chan struct{})
	c := Catch()
	s := c.Obey(cancel, func() { close(reloaded) }, slog.New(slog.DiscardHandler), m.notify)
	send := func(sig syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGHUP) // before anybody runs
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	<-reloaded
	send(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("stop was not called")
	}
	if len(m.told) != 2 || !strings.HasPrefix(m.told[0], "RELOADING=1\nMONOTONIC_USEC=") || m.told[1] != "READY=1" {
		t.Errorf("told %q", m.told)
	}
}

// TestMeanwhile: a signal that comes before the tasks run ends what is done until then, and
// one that comes later is left to them.
func TestMeanwhile(t *testing.T) {
	c := Catch()
	defer c.Release()
	told := make(chan os.Signal, 1)
	over := c.Meanwhile(func(s os.Signal) { told <- s })
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := <-told; s != syscall.SIGTERM {
		t.Errorf("told %v", s)
	}
	over()
	c.Meanwhile(func(s os.Signal) { t.Errorf("told %v after the end", s) })()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.ends
}

// TestSystemd: sd_notify(3) sends a datagram to the socket that NOTIFY_SOCKET names.
func TestSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := Systemd(Ready); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := conn.Read(buf)
	if got := string(buf[:n]); err != nil || got != "READY=1" {
		t.Errorf("got %q, error %v", got, err)
	}
	t.Setenv("NOTIFY_SOCKET", path+"x")
	if err := Systemd(Ready); err == nil {
		t.Error("no error although nobody listens")
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Systemd(Ready); err != nil {
		t.Errorf("error %v without a service manager", err)
	}
}

func TestWatchdogInterval(t *testing.T) {
	for _, tc := range []struct {
		usec, pid string
		want      time.Duration
		err       bool
	}{
		{"", "", 0, false},
		{"3000000", "", 3 * time.Second, false},
		{"3000000", "1", 0, false}, // another process is meant
		{"x", "", 0, true},
	} {
		t.Setenv("WATCHDOG_USEC", tc.usec)
		t.Setenv("WATCHDOG_PID", tc.pid)
		if got, err := WatchdogInterval(); got != tc.want || (err != nil) != tc.err {
			t.Errorf("%q for process %q: %v, error %v", tc.usec, tc.pid, got, err)
		}
	}
}
