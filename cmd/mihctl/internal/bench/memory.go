package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
)

const crowdEvery = 100 * time.Millisecond // 10 events/s

// Memory is how much a server grows by many gRPC subscribers, while 10 events/s are
// published and a flow is frozen and thawed.
type Memory struct {
	OwnConnection    float64 `json:"kib_each_own_connection"`
	SharedConnection float64 `json:"kib_each_shared_connection"`
	IdleMiB          float64 `json:"idle_mib"`   // the server before
	HintsEach        int     `json:"hints_each"` // that each subscriber got while all were there
	MissedHints      int     `json:"missed_hints"`
	Subscribers      int     `json:"subscribers"`
}

func memory(ctx context.Context, o *Options) (*Memory, error) {
	m := &Memory{HintsEach: -1, Subscribers: o.Crowd}
	for _, own := range []bool{true, false} {
		grown, err := m.measure(ctx, o, own)
		if err != nil {
			return nil, err
		}
		if own {
			m.OwnConnection = grown
		} else {
			m.SharedConnection = grown
		}
	}
	return m, nil
}

// server is the process that is measured.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startServer(ctx context.Context, argv []string, socket string) (*server, error) {
	s := &server{cmd: exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], socket)...)}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	return s, s.cmd.Start()
}

// ask returns the server's resident memory in KiB.
func (s *server) ask() (float64, error) {
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	if !s.out.Scan() {
		return 0, errors.Join(errors.New("the server ended"), s.out.Err())
	}
	return strconv.ParseFloat(s.out.Text(), 64)
}

func (s *server) end() error {
	return errors.Join(s.in.Close(), s.cmd.Wait())
}

// measure returns by how many KiB a fresh server grows for each subscriber.
func (m *Memory) measure(ctx context.Context, o *Options, own bool) (grown float64, err error) {
	dir, err := os.MkdirTemp("", "mihf-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	socket := filepath.Join(dir, "mihfd.sock")
	s, err := startServer(ctx, o.Server, socket)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	before, err := s.ask()
	if err != nil {
		return 0, err
	}
	m.IdleMiB = round(before/1024, 1)
	c := &audience{listeners: make([]listener, o.Crowd)}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.join(ctx, socket, own); err != nil {
		return 0, err
	}
	time.Sleep(o.Settle)
	after, err := s.ask()
	if err != nil {
		return 0, err
	}
	m.count(c)
	return round((after-before)/float64(o.Crowd), 1), nil
}

// count compares what the subscribers got: all joined before a moment and left after
// another, so in between they must have the same hints.
func (m *Memory) count(c *audience) {
	from, to := uint64(0), ^uint64(0)
	for i := range c.listeners {
		c.listeners[i].mu.Lock()
		from, to = max(from, c.listeners[i].joined), min(to, c.listeners[i].last)
		m.MissedHints += c.listeners[i].broken
		c.listeners[i].mu.Unlock()
	}
	most := 0
	counts := make([]int, len(c.listeners))
	for i := range c.listeners {
		counts[i] = c.listeners[i].within(from, to)
		most = max(most, counts[i])
	}
	for _, n := range counts {
		m.MissedHints += most - n
	}
	if m.HintsEach < 0 || most < m.HintsEach {
		m.HintsEach = most
	}
}

// audience is many subscribers.
type audience struct {
	clients   []*mihgrpc.Client
	feeds     []mihf.Feed
	listeners []listener
	tasks     sync.WaitGroup
}

// listener is what one subscriber got.
type listener struct {
	mu           sync.Mutex // guards the following
	joined, last uint64     // sequences
	broken       int        // deliveries that did not follow the one before
	hints        []uint64
}

func (l *listener) within(from, to uint64) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.hints {
		if s > from && s <= to {
			n++
		}
	}
	return n
}

func (c *audience) join(ctx context.Context, socket string, own bool) error {
	var client *mihgrpc.Client
	for i := range c.listeners {
		if own || client == nil {
			var err error
			if client, err = mihgrpc.Dial("unix://"+socket, mihgrpc.Options{}); err != nil {
				return err
			}
			c.clients = append(c.clients, client)
		}
		feed, err := client.Follow(ctx, mihf.SubscribeRequest{Hints: true})
		if err != nil {
			return fmt.Errorf("subscriber %d: %w", i, err)
		}
		c.feeds = append(c.feeds, feed)
		c.tasks.Go(func() { c.listeners[i].follow(feed) })
	}
	return nil
}

func (l *listener) follow(feed mihf.Feed) {
	buf := make([]mihf.Delivery, 4)
	for {
		n, err := feed.Next(buf)
		if err != nil {
			return // closed
		}
		l.mu.Lock()
		for i := range buf[:n] {
			l.take(&buf[i])
		}
		l.mu.Unlock()
	}
}

func (l *listener) take(d *mihf.Delivery) {
	switch {
	case d.Kind == mihf.DeliverSnapshot:
		l.joined = d.Snapshot.Sequence
	case d.Kind == mihf.DeliverGap || d.Previous != l.last:
		l.broken++
	case d.Kind == mihf.DeliverHint:
		l.hints = append(l.hints, d.Hint.Sequence)
	}
	l.last = d.Sequence()
}

func (c *audience) close() error {
	for _, f := range c.feeds {
		f.Close()
	}
	var err error
	for _, client := range c.clients {
		err = errors.Join(err, client.Close())
	}
	c.tasks.Wait()
	return err
}

// ServeMemory is the server whose memory is measured: a broker with its gRPC front on the
// socket, a flow whose link is lost and comes back, 10 events/s in all. For each line read
// it writes its resident memory in KiB; it ends when in does.
func ServeMemory(ctx context.Context, socket string, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(50) // as mihfd does
	ctx, cancel := context.WithCancel(ctx)
	b, err := start(ctx)
	if err != nil {
		cancel()
		return err
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer b.end()
	defer cancel()
	if err := serve(ctx, b, socket, &tasks); err != nil {
		return err
	}
	at, err := b.Attach(ctx, inproc)
	if err != nil {
		return err
	}
	back := carrier(true)
	b.Observe(&back)
	if _, err := at.Register(late); err != nil {
		return err
	}
	tasks.Go(func() { drain(at) })
	tasks.Go(func() { _ = pace(ctx, 1<<30, crowdEvery, flicker(b)) }) // ends with ctx
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if _, err := fmt.Fprintln(out, resident()); err != nil {
			return err
		}
	}
	return nil
}

func drain(f mihf.Feed) {
	buf := make([]mihf.Delivery, 4)
	for {
		if _, err := f.Next(buf); err != nil {
			return
		}
	}
}

// flicker gives a detection each time, and every tenth time a loss of the link or its
// return, for which a flow is frozen or thawed.
func flicker(b *started) func(int) {
	heard := observe(b)
	return func(i int) {
		if i%10 != 0 {
			heard(i)
			return
		}
		o := carrier(i%20 != 0)
		o.At = b.Now()
		b.Observe(&o)
	}
}

// resident returns the process's resident memory in KiB.
func resident() int {
	for line := range strings.Lines(readFile("/proc/self/status")) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
			if err == nil {
				return n
			}
		}
	}
	return 0
}
