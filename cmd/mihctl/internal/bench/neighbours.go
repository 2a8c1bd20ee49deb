package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/clients"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
)

// monotonic is a moment that means the same in all processes of the machine, in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is no Linux without it
	}
	return t.Nano()
}

// neighbours are gRPC subscribers in a process of their own, with a connection each.
type neighbours struct {
	count, events int
	at            [][]int64 // by neighbour: when it had each event; 0: it has not
	tasks         sync.WaitGroup
}

// lastArrival is how long what was published last may take. Who has not got all by then
// misses it.
const lastArrival = 2 * time.Second

// ServeNeighbours is the process of count subscribers that connect to a gRPC front on a unix
// socket. It writes a line when all have the snapshot, and reads one when events were
// published. Then it writes a line for each: JSON, when it had them.
func ServeNeighbours(ctx context.Context, socket string, count, events int, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	n := &neighbours{count: count, events: events, at: make([][]int64, count)}
	open, err := n.join(ctx, socket)
	defer func() {
		cancel()
		n.tasks.Wait()
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
	}()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if !bufio.NewScanner(in).Scan() {
		return errors.New("the bench ended")
	}
	limit := time.AfterFunc(lastArrival, cancel)
	n.tasks.Wait()
	limit.Stop()
	lines := json.NewEncoder(out)
	for _, at := range n.at {
		if err := lines.Encode(at); err != nil {
			return err
		}
	}
	return nil
}

// join connects them and waits until each has the snapshot.
func (n *neighbours) join(ctx context.Context, socket string) (open []clients.Client, err error) {
	var ready sync.WaitGroup
	for i := range n.count {
		c, feed, err := follow(ctx, socket)
		if err != nil {
			return open, err
		}
		open = append(open, c)
		n.at[i] = make([]int64, n.events)
		ready.Add(1)
		n.tasks.Go(func() { arrive(feed, n.at[i], sync.OnceFunc(ready.Done)) })
	}
	ready.Wait()
	return open, nil
}

// follow connects a subscriber.
func follow(ctx context.Context, socket string) (clients.Client, mihf.Feed, error) {
	c, err := mihgrpc.Dial("unix://"+socket, mihgrpc.Options{})
	if err != nil {
		return nil, nil, err
	}
	feed, err := c.Follow(ctx, mihf.SubscribeRequest{})
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, feed, nil
}

// arrive notes when each event comes; ready is called with the snapshot, and where there is
// none.
func arrive(feed mihf.Feed, at []int64, ready func()) {
	defer ready()
	defer feed.Close()
	buf := make([]mihf.Delivery, 8)
	var first uint64
	for left := len(at); left > 0; {
		n, err := feed.Next(buf)
		if err != nil {
			return // what did not come is counted
		}
		now := monotonic()
		for i := range buf[:n] {
			switch buf[i].Kind {
			case mihf.DeliverSnapshot:
				first = buf[i].Sequence()
				ready()
			case mihf.DeliverEvent:
				if place := buf[i].Sequence() - first - 1; place < uint64(len(at)) {
					at[place] = now
				}
				left--
			default:
			}
		}
	}
}
