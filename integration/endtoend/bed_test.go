package endtoend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// bed is a node with its daemon, a peer behind a veth pair, and a client that follows.
type bed struct {
	t      *testing.T
	node   *netns.NS // the daemon's
	peer   *netns.NS
	dir    string
	client *mihgrpc.Client
	daemon *exec.Cmd
	// answered is how long the daemon took from its start to its first snapshot.
	answered time.Duration

	mu   sync.Mutex // guards the following
	news *sync.Cond
	seen []mihf.Delivery
	dead error
	next int // what the test has not looked at
}

// newBed makes two namespaces joined by v0 (node) and p0 (peer), both down, and starts the
// daemon in the node with what the configuration adds.
func newBed(t *testing.T, config string) *bed {
	t.Helper()
	return newBedWith(t, "", config)
}

// newBedWith is [newBed] with lines for the section grpc.
func newBedWith(t *testing.T, grpc, config string) *bed {
	t.Helper()
	b := &bed{t: t, node: netns.New(t), peer: netns.New(t), dir: t.TempDir()}
	b.news = sync.NewCond(&b.mu)
	b.node.Pair("v0", b.peer, "p0")
	config = "[grpc]\nsocket = \"" + b.socket() + "\"\n" + grpc + "[dbus]\nbus = \"none\"\n[sensors.rtnl]\nsettle = \"0s\"\n" + config
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
	b.follow()
	b.want("the first snapshot", func(d *mihf.Delivery) bool { return d.Kind == mihf.DeliverSnapshot })
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

// follow collects what the client is sent until the test ends.
func (b *bed) follow() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	feed, err := b.client.Follow(ctx, mihf.SubscribeRequest{Hints: true})
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]mihf.Delivery, 16)
		for {
			n, err := feed.Next(buf)
			b.mu.Lock()
			b.seen = append(b.seen, buf[:n]...)
			if err != nil {
				b.dead = err
			}
			b.mu.Unlock()
			b.news.Broadcast()
			if err != nil {
				return
			}
		}
	}()
	b.t.Cleanup(func() { cancel(); feed.Close(); <-done })
}

// want waits for the next delivery that ok accepts; later calls look behind it.
func (b *bed) want(what string, ok func(*mihf.Delivery) bool) *mihf.Delivery {
	b.t.Helper()
	timer := time.AfterFunc(patience, b.news.Broadcast)
	defer timer.Stop()
	deadline := time.Now().Add(patience)
	b.mu.Lock()
	defer b.mu.Unlock()
	from := b.next
	for {
		for ; b.next < len(b.seen); b.next++ {
			if d := &b.seen[b.next]; ok(d) {
				b.next++
				return d
			}
		}
		if b.dead != nil || !time.Now().Before(deadline) {
			b.t.Fatalf("%s did not come (%v); after the last one came:\n%s", what, b.dead, b.list(from))
		}
		b.news.Wait()
	}
}

// event waits for the next event of a kind that ok accepts; nil: any.
func (b *bed) event(k mihf.Kind, ok func(*mihf.Event) bool) *mihf.Event {
	b.t.Helper()
	d := b.want(k.String(), func(d *mihf.Delivery) bool {
		return d.Kind == mihf.DeliverEvent && d.Event.Kind == k && (ok == nil || ok(&d.Event))
	})
	return &d.Event
}

func (b *bed) hint(k mihf.HintKind) *mihf.Hint {
	b.t.Helper()
	d := b.want("hint "+k.String(), func(d *mihf.Delivery) bool { return d.Kind == mihf.DeliverHint && d.Hint.Kind == k })
	return &d.Hint
}

// count returns how many events of a kind came so far.
func (b *bed) count(k mihf.Kind) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for i := range b.seen {
		if b.seen[i].Kind == mihf.DeliverEvent && b.seen[i].Event.Kind == k {
			n++
		}
	}
	return n
}

func (b *bed) list(from int) string {
	var s strings.Builder
	for i := from; i < len(b.seen); i++ {
		switch d := &b.seen[i]; d.Kind {
		case mihf.DeliverEvent:
			fmt.Fprintf(&s, "  %d %v %v\n", d.Event.Sequence, d.Event.Kind, d.Event.Link)
		case mihf.DeliverHint:
			fmt.Fprintf(&s, "  %d hint %v %v\n", d.Hint.Sequence, d.Hint.Kind, d.Hint.Flow)
		default:
			fmt.Fprintf(&s, "  %d delivery %d\n", d.Sequence(), d.Kind)
		}
	}
	return s.String()
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
