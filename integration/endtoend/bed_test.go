package endtoend

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
)

// patience is how long a test waits for what must come; only a failure takes so long.
const patience = 20 * time.Second

var mihfd string // the built daemon

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if err := noteSources(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		dir, err := os.MkdirTemp("", "mihf-endtoend-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		mihfd = filepath.Join(dir, "mihfd")
		build := exec.CommandContext(context.Background(), "go", "build", "-o", mihfd, "mihf.dev/cmd/mihfd")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building mihfd: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// noteSources looks at every source file of the module. "go test" remembers what a test
// looked at, and so won't call an old result that of a daemon whose sources have changed.
func noteSources() error {
	return filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
}

// bed is a node with its daemon, a peer behind a veth pair, and a client that follows over
// gRPC.
type bed struct {
	t      *testing.T
	node   *netns.NS // the daemon's
	peer   *netns.NS
	dir    string
	client *mihgrpc.Client
	daemon *exec.Cmd
	// answered is how long the daemon took from its start to its first snapshot.
	answered time.Duration
	*watcher
}

// newBed makes two namespaces joined by v0 (node) and p0 (peer), both down, and starts the
// daemon in the node with what the configuration adds.
func newBed(t *testing.T, config string) *bed {
	t.Helper()
	return newBedWith(t, bedConfig{rest: config})
}

// bedConfig is what a test adds to the configuration.
type bedConfig struct {
	grpc string // lines of that section
	bus  string // "": none
	rest string // more of the section sensors.rtnl, and others
}

// newBedWith is [newBed] for more of a configuration.
func newBedWith(t *testing.T, c bedConfig) *bed {
	t.Helper()
	b := &bed{t: t, node: netns.New(t), peer: netns.New(t), dir: t.TempDir()}
	b.node.Pair("v0", b.peer, "p0")
	config := fmt.Sprintf("[grpc]\nsocket = %q\n%s[dbus]\nbus = %q\n[sensors.rtnl]\nsettle = \"0s\"\n%s",
		b.socket(), c.grpc, cmp.Or(c.bus, "none"), c.rest)
	if err := os.WriteFile(b.file("mihfd.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := mihgrpc.Dial("unix://"+b.socket(), mihgrpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	t.Cleanup(func() { client.Close() })
	b.start()
	b.watcher = watch(t, client)
	return b
}

func (b *bed) file(name string) string { return filepath.Join(b.dir, name) }
func (b *bed) socket() string          { return b.file("mihfd.sock") }

// start runs the daemon in the node's namespace.
func (b *bed) start() {
	b.t.Helper()
	log := &bytes.Buffer{}
	cmd := exec.CommandContext(context.Background(), mihfd, "-config", b.file("mihfd.toml"))
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+b.file("state"), "XDG_RUNTIME_DIR="+b.dir)
	cmd.Stdout, cmd.Stderr = log, log
	begin := time.Now()
	if err := b.node.Do(cmd.Start); err != nil {
		b.t.Fatal(err)
	}
	b.daemon = cmd
	b.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGCONT) // a test that failed may have left it stopped
			_ = cmd.Process.Signal(os.Interrupt)    // it may have ended by itself
			if err := cmd.Wait(); err != nil {
				b.t.Errorf("the daemon ended with %v", err)
			}
		}
		if b.t.Failed() {
			b.t.Logf("daemon's log:\n%s", log)
		}
	})
	b.listening()
	b.snapshot("anything: the daemon answers", func(*mihf.Snapshot) bool { return true })
	b.answered = time.Since(begin)
}

// listening waits until the socket takes connections, so that the client need not try again.
func (b *bed) listening() {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, err := new(net.Dialer).DialContext(b.t.Context(), "unix", b.socket())
		if err == nil {
			_ = c.Close() // was only to see
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the daemon does not listen: %v", err)
		}
	}
}

func (b *bed) signal(s os.Signal) {
	b.t.Helper()
	if err := b.daemon.Process.Signal(s); err != nil {
		b.t.Fatal(err)
	}
}

// kill ends the daemon as a crash does.
func (b *bed) kill() {
	b.t.Helper()
	b.signal(os.Kill)
	if err := b.daemon.Wait(); err == nil {
		b.t.Fatal("a killed daemon ended without an error")
	}
}

// snapshot asks for the state until ok accepts it.
func (b *bed) snapshot(what string, ok func(*mihf.Snapshot) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		s, err := b.client.Snapshot(ctx)
		if err == nil && ok(s) {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("no snapshot with %s: %v; last: %+v", what, errors.Join(err, ctx.Err()), s)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// link returns the link that has the name now.
func (b *bed) link(name string) *mihf.LinkStatus {
	b.t.Helper()
	var found *mihf.LinkStatus
	b.snapshot("link "+name, func(s *mihf.Snapshot) bool {
		found = named(s, name)
		return found != nil
	})
	return found
}

func named(s *mihf.Snapshot, name string) *mihf.LinkStatus {
	for i := range s.Links {
		if f := s.Links[i].Facts; f != nil && f.Name == name {
			return &s.Links[i]
		}
	}
	return nil
}
