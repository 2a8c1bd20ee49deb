package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"mihf.dev/clients"
	"mihf.dev/mihf"
)

// host is how a process of its own serves a front.
type host struct {
	// serve serves until ctx ends and returns where; what it needs of the file system is in dir.
	serve func(ctx context.Context, b *started, dir string, tasks *sync.WaitGroup) (where string, err error)
	dial  func(where string) (clients.Client, error)
	// shared is how many subscribers one connection may have; 0: any number.
	shared int
}

// in serves from a folder, and connects a client.
func (h host) in(dir string) func(context.Context, *started, *sync.WaitGroup) (clients.Client, error) {
	return func(ctx context.Context, b *started, tasks *sync.WaitGroup) (clients.Client, error) {
		where, err := h.serve(ctx, b, dir, tasks)
		if err != nil {
			return nil, err
		}
		return h.dial(where)
	}
}

// hosts are the fronts by their names.
var hosts = map[string]host{"grpc": hostGRPC, "nats": hostNATS, "dbus": hostDBus}

// ServeMemory is the server whose memory is measured: a broker with a front, a flow whose
// link is lost and comes back, 10 events/s in all. What it needs of the file system is in
// dir. It writes a line that says where it serves, and then for each line read its resident
// memory in KiB; it ends when in does.
func ServeMemory(ctx context.Context, front, dir string, in io.Reader, out io.Writer) error {
	h, ok := hosts[front]
	if !ok {
		return fmt.Errorf("there is no front %q", front)
	}
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
	where, err := h.serve(ctx, b, dir, &tasks)
	if err != nil {
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
	if _, err := fmt.Fprintln(out, where); err != nil {
		return err
	}
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
