package broker

import (
	"context"
	"fmt"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// overrunCheck is how many items are published between two looks for subscribers that
// the log outran; it must be well below the log's size.
const overrunCheck = 256

// feed is a subscription.
type feed struct {
	b       *Broker
	cursor  *queue.Cursor   // used by the reader, under mu's read side
	pending []mihf.Delivery // goes first: a gap, a snapshot
	stop    func() bool     // of the context

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// Subscribe opens a subscription. See front.Broker.
func (b *Broker) Subscribe(ctx context.Context, who mihf.Caller, req mihf.SubscribeRequest) (mihf.Feed, error) {
	filter, err := route.NewFilter(&req, who, &b.cfg.Access)
	if err != nil {
		b.counts.refused.Add(1)
		return nil, err
	}
	f := &feed{b: b, done: make(chan struct{})}
	var refused error
	if err := b.do(ctx, func(now mihf.Time) { refused = b.start(now, f, filter, who, &req) }); err != nil {
		return nil, err
	}
	if refused != nil {
		b.counts.refused.Add(1)
		return nil, refused
	}
	f.stop = context.AfterFunc(ctx, func() { f.end(context.Cause(ctx)) })
	return f, nil
}

// start places the feed's cursor; in the loop, when everything is published.
func (b *Broker) start(now mihf.Time, f *feed, filter *route.Filter, who mihf.Caller, req *mihf.SubscribeRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.feeds)+len(b.attached) >= b.cfg.MaxSubscribers {
		return fmt.Errorf("%w: %d subscribers", mihf.ErrLimit, b.cfg.MaxSubscribers)
	}
	b.feeds[f] = struct{}{}
	resuming := req.Boot != 0
	if resuming && req.Boot == b.Boot() {
		if f.cursor = b.log.Resume(filter, req.After); f.cursor != nil {
			return nil
		}
	}
	snapshot := b.engine.Snapshot(now, b.sees(who))
	if resuming {
		gap := mihf.Gap{From: req.After, To: snapshot.Sequence, Reason: "the replay ring does not reach back so far"}
		if req.Boot != b.Boot() {
			gap = mihf.Gap{To: snapshot.Sequence, Reason: "the broker was restarted"}
		}
		f.pending = append(f.pending, mihf.Delivery{Kind: mihf.DeliverGap, Previous: req.After, Gap: gap})
	}
	f.pending = append(f.pending, mihf.Delivery{Kind: mihf.DeliverSnapshot, Previous: req.After, Snapshot: snapshot})
	f.cursor = b.log.Start(filter, snapshot.Sequence)
	return nil
}

func (b *Broker) sees(who mihf.Caller) func(uint32) bool {
	all := b.cfg.Access.Any(who)
	uid, known := who.UID.Get()
	return func(owner uint32) bool { return all || (known && uid == owner) }
}

// Next waits for deliveries.
func (f *feed) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	if n := copy(buf, f.pending); n > 0 {
		f.pending = f.pending[n:]
		return n, nil
	}
	f.b.mu.RLock()
	defer f.b.mu.RUnlock()
	for {
		if err := f.Err(); err != nil {
			return 0, err
		}
		n, err := f.b.log.Read(f.cursor, buf)
		if err != nil {
			f.finish(err)
			return 0, err
		}
		if n > 0 {
			return n, nil
		}
		if f.b.closing {
			return 0, mihf.ErrClosed
		}
		f.b.news.Wait()
	}
}

func (f *feed) Done() <-chan struct{} { return f.done }

func (f *feed) Err() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

func (f *feed) Close() {
	f.stop()
	f.end(mihf.ErrClosed)
}

// end finishes the feed, forgets it and wakes its reader.
func (f *feed) end(why error) {
	f.finish(why)
	f.b.mu.Lock()
	delete(f.b.feeds, f)
	f.b.mu.Unlock()
	f.b.news.Broadcast()
}

func (f *feed) finish(why error) {
	f.once.Do(func() {
		f.err = why
		close(f.done)
	})
}

// endOverrun ends the feeds that the log outran, also those whose reader is busy
// elsewhere; mu is held.
func (b *Broker) endOverrun() {
	for f := range b.feeds {
		if b.log.Overrun(f.cursor) {
			b.counts.slow.Add(1)
			b.cfg.Logger.Warn("subscriber closed", "reason", "slow", "unread_items", b.log.Unread(f.cursor))
			f.finish(fmt.Errorf("%w: fell %d items behind", mihf.ErrSlow, b.log.Unread(f.cursor)))
			delete(b.feeds, f)
		}
	}
}
