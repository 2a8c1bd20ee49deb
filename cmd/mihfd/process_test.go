package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
	"mihf.dev/mihf/recording/walk"
)

// patience is how long something is waited for that must come.
const patience = 20 * time.Second

// bed is a directory with all that a daemon uses, and its service manager.
type bed struct {
	t      *testing.T
	dir    string
	notify *net.UnixConn
	env    []string
	uid    int // 0: the test's own
	binary string
}

func newBed(t *testing.T, env ...string) *bed {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &bed{t: t, dir: dir, notify: conn, binary: self, env: append([]string{
		asDaemon + "=1", "NOTIFY_SOCKET=" + path,
		"CONFIGURATION_DIRECTORY=" + dir, "STATE_DIRECTORY=" + dir + "/state", "RUNTIME_DIRECTORY=" + dir,
	}, env...)}
}

func (b *bed) configure(text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "mihfd.toml"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// told waits for the next thing that the service manager is told, other than that the
// daemon is alive.
func (b *bed) told(want string) {
	b.t.Helper()
	buf := make([]byte, 256)
	for {
		if err := b.notify.SetReadDeadline(time.Now().Add(patience)); err != nil {
			b.t.Fatal(err)
		}
		n, err := b.notify.Read(buf)
		if err != nil {
			b.t.Fatalf("waiting for %s: %v", want, err)
		}
		if got := string(buf[:n]); strings.HasPrefix(got, want) {
			return
		} else if got != "WATCHDOG=1" {
			b.t.Fatalf("told %q, want %q", got, want)
		}
	}
}

// process is a daemon that runs.
type process struct {
	*exec.Cmd
	b    *bed
	log  *lines
	once sync.Once
	err  error
}

func (b *bed) start() *process {
	b.t.Helper()
	p := b.command()
	p.begin()
	return p
}

func (b *bed) command(args ...string) *process {
	p := &process{Cmd: exec.CommandContext(b.t.Context(), b.binary, args...), b: b, log: newLines()}
	p.Env, p.Dir, p.Stderr = b.env, b.dir, p.log
	if b.uid != 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return p
}

func (p *process) begin() {
	b := p.b
	b.t.Helper()
	if err := p.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.wait()
		if b.t.Failed() {
			b.t.Logf("log of process %d:\n%s", p.Process.Pid, p.log.all())
		}
	})
}

func (p *process) wait() error {
	p.once.Do(func() { p.err = p.Wait() })
	return p.err
}

func (p *process) signal(s os.Signal) {
	p.b.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.b.t.Fatal(err)
	}
}

// ends waits for the process and checks its exit status.
func (p *process) ends(status int) {
	p.b.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	defer timer.Stop()
	_ = p.wait() // ExitCode tells
	if got := p.ProcessState.ExitCode(); got != status {
		p.b.t.Fatalf("exit status %d (%v), want %d", got, p.ProcessState, status)
	}
}

func (p *process) snapshot(socket string) *mihf.Snapshot {
	p.b.t.Helper()
	s, err := ask(p.b.t, socket, (*mihgrpc.Client).Snapshot)
	if err != nil {
		p.b.t.Fatal(err)
	}
	return s
}

// ask asks over gRPC.
func ask[T any](t *testing.T, socket string, question func(*mihgrpc.Client, context.Context) (T, error)) (answer T, err error) {
	t.Helper()
	c, err := mihgrpc.Dial("unix://"+socket, mihgrpc.Options{})
	if err != nil {
		return answer, err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return question(c, ctx)
}

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) has(t *testing.T, want string) {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(l.all(), want) {
		select {
		case <-l.more:
		case <-late:
			t.Fatalf("no %q in the log:\n%s", want, l.all())
		}
	}
}

func TestDaemon(t *testing.T) {
	b := newBed(t, "WATCHDOG_USEC=200000")
	b.configure("[node]\nname = \"n\"\n[log]\nformat = \"json\"\n")
	begun := time.Now()
	p := b.start()
	b.told("READY=1")
	s := p.snapshot(b.dir + "/mihfd.sock")
	t.Logf("snapshot %v after the start", time.Since(begun))
	if s.Node != "n" || s.Boot == 0 {
		t.Errorf("node %q, boot %v", s.Node, s.Boot)
	}
	for _, c := range s.Sensors {
		if c.Condition == mihf.ConditionStarting {
			t.Errorf("%s is still starting although READY=1 was told", c.Sensor)
		}
	}
	if len(s.Sensors) != 5 {
		t.Errorf("sensors %+v", s.Sensors)
	}
	if info, err := os.Stat(b.dir + "/state"); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("state directory: %v, %v", info, err)
	}

	t.Log("# another one refuses, and leaves the first alone")
	second := b.start()
	second.ends(exitFailed)
	second.log.has(t, "already running")
	if again := p.snapshot(b.dir + "/mihfd.sock"); again.Boot != s.Boot {
		t.Errorf("boot id %v, before %v", again.Boot, s.Boot)
	}

	t.Log("# fed, as the broker's loop answers")
	buf := make([]byte, 64)
	if n, err := b.notify.Read(buf); err != nil || string(buf[:n]) != "WATCHDOG=1" {
		t.Errorf("told %q, error %v", buf[:n], err)
	}
}

func TestReload(t *testing.T) {
	b := newBed(t)
	b.configure("[log]\nformat = \"json\"\n")
	p := b.start()
	b.told("READY=1")
	hangup := func() {
		t.Helper()
		p.signal(syscall.SIGHUP)
		b.told("RELOADING=1\nMONOTONIC_USEC=")
		b.told("READY=1")
	}
	t.Log("# what can be changed is changed, what can't is named")
	b.configure("[log]\nformat = \"json\"\nlevel = \"warn\"\n[link]\nhorizon = \"1s\"\n")
	hangup()
	p.log.has(t, `"keys":["link.horizon"]`)
	t.Log("# a mistake changes nothing")
	b.configure("[log]\nlevel = \"debug\"\nlevl = 3\n")
	hangup()
	p.log.has(t, "configuration refused")
	p.log.has(t, "log.levl: no such key")
	t.Log("# what is right again is taken")
	b.configure("[log]\nformat = \"json\"\nlevel = \"info\"\n")
	hangup()
	p.log.has(t, `"applied":["log.level"],"needs_restart":[]`)
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
	for line := range strings.Lines(p.log.all()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestSignalsEndTheDaemon(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		b := newBed(t)
		p := b.start()
		b.told("READY=1")
		p.signal(sig)
		b.told("STOPPING=1")
		p.ends(exitOK)
		if _, err := os.Stat(b.dir + "/mihfd.sock"); !os.IsNotExist(err) {
			t.Errorf("%v: the socket is left: %v", sig, err)
		}
	}
}

// TestSignalsWhileStarting: one that comes before the daemon runs is obeyed, too. Its
// configuration is a pipe, so that it waits while it starts.
func TestSignalsWhileStarting(t *testing.T) {
	b := newBed(t)
	path := filepath.Join(b.dir, "mihfd.toml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reads := func() *os.File { // waits until the daemon does
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	t.Log("# SIGTERM ends it")
	p := b.start()
	f := reads()
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
	p.log.has(t, "terminated while starting")
	_ = f.Close()

	t.Log("# SIGHUP makes it read again once it runs")
	p = b.start()
	f = reads()
	p.signal(syscall.SIGHUP)
	_ = f.Close()
	p.log.has(t, "msg=starting") // it has read to the end
	_ = reads().Close()
	p.log.has(t, "configuration read")
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// TestSecondSignalKills holds the end up by a connection that says nothing.
func TestSecondSignalKills(t *testing.T) {
	b := newBed(t)
	p := b.start()
	b.told("READY=1")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", b.dir+"/mihfd.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadAtLeast(conn, make([]byte, 1), 1); err != nil { // its settings: the server has it
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	b.told("STOPPING=1")
	p.signal(syscall.SIGTERM)
	_ = p.wait()
	if ws, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v, want killed", p.ProcessState)
	}
}

// TestNoDescriptors: who connects while the daemon has none left is served when it has.
func TestNoDescriptors(t *testing.T) {
	b := newBed(t)
	p := b.start()
	b.told("READY=1")
	var old unix.Rlimit
	if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	limit := func(descriptors uint64) {
		t.Helper()
		if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: descriptors, Max: old.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(0)
	served := make(chan error, 1)
	socket := b.dir + "/mihfd.sock"
	go func() {
		_, err := ask(t, socket, (*mihgrpc.Client).Snapshot)
		served <- err
	}()
	p.log.has(t, "connections wait, accepting them fails")
	select {
	case err := <-served:
		t.Errorf("answered without a descriptor: %v", err)
	default:
	}
	limit(old.Cur)
	if err := <-served; err != nil {
		t.Error(err)
	}
	s, err := ask(t, socket, (*mihgrpc.Client).Status)
	if err != nil || !slices.ContainsFunc(s.Counters, func(c mihf.CounterValue) bool { return c.Name == "mihf_grpc_accept_errors_total" && c.Value > 0 }) {
		t.Errorf("not counted: %v, %+v", err, s.Counters)
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// TestKilledAndBack: what a killed daemon leaves doesn't hold up the next.
func TestKilledAndBack(t *testing.T) {
	b := newBed(t)
	p := b.start()
	b.told("READY=1")
	first := p.snapshot(b.dir + "/mihfd.sock").Boot
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	p = b.start()
	b.told("READY=1")
	if second := p.snapshot(b.dir + "/mihfd.sock").Boot; second == first {
		t.Errorf("boot id %v again", second)
	}
}

// TestOrdinaryUser: no rights, no configuration, a user's own paths.
func TestOrdinaryUser(t *testing.T) {
	b := newBed(t)
	if os.Geteuid() == 0 {
		b.uid = 65534
		readable := filepath.Join(b.dir, "mihfd")
		copyFile(t, b.binary, readable)
		b.binary = readable
	}
	for _, d := range []string{"home", "run"} {
		path := filepath.Join(b.dir, d)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if b.uid != 0 {
			if err := os.Chown(path, b.uid, b.uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(b.dir): 0o755, b.dir + "/notify": 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	b.env = []string{
		asDaemon + "=1", "NOTIFY_SOCKET=" + b.dir + "/notify", "HOME=" + b.dir + "/home", "XDG_RUNTIME_DIR=" + b.dir + "/run",
	}
	p := b.start()
	b.told("READY=1")
	s := p.snapshot(b.dir + "/run/mihf/mihfd.sock")
	for _, c := range s.Sensors {
		absent := (c.Sensor == "nl80211" || c.Sensor == "modem") && c.Condition == mihf.ConditionUnavailable // this machine has no Wi-Fi, no modem
		if c.Condition != mihf.ConditionOK && !absent {
			t.Errorf("%s is %v: %s", c.Sensor, c.Condition, c.Text)
		}
	}
	if _, err := os.Stat(b.dir + "/home/.local/state/mihf"); err != nil {
		t.Error(err)
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// TestLive: where the output is not a terminal, the live view prints lines.
func TestLive(t *testing.T) {
	b := newBed(t)
	p, out := b.command("-live"), newLines()
	p.Stdout = out
	p.begin()
	b.told("READY=1")
	out.has(t, "\n")
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// TestReplay: without a radio the daemon has the link of a recording.
func TestReplay(t *testing.T) {
	file, err := filepath.Abs("../../mihf/recording/walk/walk.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t)
	b.configure("[sensors.replay]\nfile = \"" + file + "\"\n")
	p := b.start()
	b.told("READY=1")
	s := p.snapshot(b.dir + "/mihfd.sock")
	walking := func(l mihf.LinkStatus) bool { return l.Link == walk.Link }
	for late := time.Now().Add(patience); !slices.ContainsFunc(s.Links, walking); s = p.snapshot(b.dir + "/mihfd.sock") {
		if time.Now().After(late) {
			t.Fatalf("links %+v", s.Links)
		}
	}
	if len(s.Sensors) != 6 {
		t.Errorf("sensors %+v", s.Sensors)
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}
