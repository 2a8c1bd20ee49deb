package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mihf.dev/clients"
	"mihf.dev/mihf"
)

// audience is many subscribers.
type audience struct {
	clients   []clients.Client
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

// join subscribes with one connection, or with one each.
func (c *audience) join(ctx context.Context, own bool, dial func() (clients.Client, error)) error {
	var client clients.Client
	for i := range c.listeners {
		if own || client == nil {
			var err error
			if client, err = dial(); err != nil {
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
