package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// feed is a subscription. While its reader is asleep the loop reads for it, so that who
// waits in Next is woken with its deliveries, and only if there are some.
//
// What each delivery needs comes first, within two cache lines: with a hundred readers
// on a few cores that is what they wait for.
type feed struct {
	wait sleeper
	b    *Broker

	// The reader's; while it is asleep, that of who catches it.
	read    uint64          // the log's last sequence when all was read
	n       int             // deliveries in buf, or failed
	buf     []mihf.Delivery // the sleeper's
	cursor  queue.Cursor    // used under mu's read side or by the loop
	pending []mihf.Delivery // goes first: a gap, a snapshot
	err     error           // where n is failed

	ending
	stop   func() bool // of the context
	who    mihf.Identity
	unread atomic.Int64 // bytes of pending that are charged
}

// Special values of a feed's n and read.
const (
	failed = -1
	fresh  = math.MaxUint64 // nothing was read yet
)

// Subscribe opens a subscription. See front.Broker.
func (b *Broker) Subscribe(ctx context.Context, who mihf.Caller, req mihf.SubscribeRequest) (mihf.Feed, error) {
	filter, err := b.filter("subscribe", who, &req)
	if err != nil {
		return nil, err
	}
	f := &feed{ending: newEnding(), b: b, wait: newSleeper(), read: fresh, who: who.Identity()}
	var refused error
	if err := b.do(ctx, func(now mihf.Time) { refused = b.start(now, f, filter, who, &req) }); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	f.stop = context.AfterFunc(ctx, func() { f.finish(context.Cause(ctx)) })
	return f, nil
}

// start places the feed's cursor; in the loop, when everything is published.
func (b *Broker) start(now mihf.Time, f *feed, filter *route.Filter, who mihf.Caller, req *mihf.SubscribeRequest) error {
	if err := b.admit(f.who); err != nil {
		return err
	}
	if len(b.feeds) > 2*b.shares.subscribers() {
		b.serveFeeds() // forgets those that have ended
	}
	b.feeds = append(b.feeds, f)
	if req.Boot == 0 && req.After != 0 {
		req.Boot = b.Boot() // who names no run means this one
	}
	if req.Boot == b.Boot() {
		c, ok := b.log.Resume(filter, req.After)
		if ok {
			f.place(c, req)
			return nil
		}
	}
	f.place(b.log.Start(filter), req)
	snapshot := b.engine.Snapshot(now, b.access.Load().Sees(who))
	if err := b.charge(f, snapshot); err != nil {
		f.finish(err)
		return err
	}
	previous := uint64(0)
	if why := b.cannotResume(req); why != "" {
		previous = snapshot.Sequence
		f.pending = append(f.pending, mihf.Delivery{
			Kind: mihf.DeliverGap, Previous: req.After,
			Gap: mihf.Gap{From: min(req.After, previous), To: previous, Reason: why},
		})
	}
	f.pending = append(f.pending, mihf.Delivery{Kind: mihf.DeliverSnapshot, Previous: previous, Snapshot: snapshot})
	return nil
}

// place gives the feed its cursor.
func (f *feed) place(c queue.Cursor, req *mihf.SubscribeRequest) {
	if f.cursor = c; req.Present {
		f.b.log.Bound(&f.cursor)
	}
}

// cannotResume says why a subscription that asked for it begins with a snapshot instead;
// "" if it did not ask.
func (b *Broker) cannotResume(req *mihf.SubscribeRequest) string {
	switch {
	case req.Boot == 0:
		return ""
	case req.Boot != b.Boot():
		return "the broker was restarted"
	case req.After > b.log.Last():
		return fmt.Sprintf("sequence %d is not reached yet", req.After)
	}
	return "the replay ring does not reach back so far"
}

// Next waits for deliveries.
func (f *feed) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	for {
		if f.wait.over() {
			return 0, f.Err()
		}
		f.buf, f.n = buf, 0
		closing := f.b.closing.Load() // before the last look at what is published
		read := f.read                // not the reader's own any more once it is asleep
		switch {
		case f.b.published.Load() != read:
			f.lookUp()
		case closing:
			f.finish(mihf.ErrClosed)
		default:
			f.wait.sleep(func() bool { return f.b.published.Load() != read || f.b.closing.Load() })
		}
		if f.n > 0 {
			return f.n, nil
		}
		if f.n == failed {
			f.finish(f.err)
		}
	}
}

// lookUp fills buf with what is pending, else from the log.
func (f *feed) lookUp() {
	if f.n = copy(f.buf, f.pending); f.n > 0 {
		if f.pending = f.pending[f.n:]; len(f.pending) == 0 {
			f.pending = nil // a snapshot may be large
			f.b.discharge(f)
		}
		return
	}
	f.b.mu.RLock()
	defer f.b.mu.RUnlock()
	f.take()
}

// take reads from the log into buf.
func (f *feed) take() {
	n, err := f.b.log.Read(&f.cursor, f.buf)
	switch {
	case n == 0 && err != nil:
		n, f.err = failed, err
	case err == nil && n < len(f.buf):
		f.read = f.b.log.Last()
	}
	f.n = n
}

// Close ends the feed with mihf.ErrClosed.
func (f *feed) Close() {
	f.stop()
	f.finish(mihf.ErrClosed)
}

// finish ends the feed for the first reason given and wakes its reader. The loop forgets
// it when it comes by.
func (f *feed) finish(why error) {
	if !f.ending.finish(why) {
		return
	}
	f.wait.end()
	f.b.discharge(f)
	f.b.leave(f.who)
	if errors.Is(why, mihf.ErrSlow) {
		f.b.counts.slow.Add(1)
		f.b.cfg.Logger.Warn("subscriber closed", "reason", "slow", "error", why)
	}
}

// serveFeeds reads for the feeds whose readers are asleep, wakes those that there is
// something for, and forgets those that have ended; in the loop.
func (b *Broker) serveFeeds() {
	live := b.feeds[:0]
	for _, f := range b.feeds {
		if f.wait.over() {
			continue
		}
		f.serve()
		live = append(live, f)
	}
	clear(b.feeds[len(live):])
	b.feeds = live
}

func (f *feed) serve() {
	if !f.wait.catch() {
		return // it is busy, and will see that more was published
	}
	if f.take(); f.n != 0 {
		f.wait.release()
		return
	}
	f.wait.rest(f.b.closing.Load)
}

// endOverrun ends the feeds that the log outran, also those whose reader is busy
// elsewhere; in the loop.
func (b *Broker) endOverrun() {
	type late struct {
		*feed
		by uint64
	}
	var slow []late
	b.mu.Lock() // readers move their cursors under its read side
	for _, f := range b.feeds {
		if b.log.Overrun(&f.cursor) {
			slow = append(slow, late{f, b.log.Unread(&f.cursor)})
		}
	}
	b.mu.Unlock()
	for _, f := range slow {
		f.finish(fmt.Errorf("%w: fell %d items behind", mihf.ErrSlow, f.by))
	}
}
