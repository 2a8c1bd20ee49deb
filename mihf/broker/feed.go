package broker

import (
	"context"
	"errors"
	"fmt"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// feed is a subscription.
type feed struct {
	ending
	b    *Broker
	wait sleeper
	stop func() bool // of the context

	// The reader's.
	pending []mihf.Delivery // goes first: a gap, a snapshot
	read    uint64          // the log's last sequence when all was read
	cursor  *queue.Cursor   // used under mu's read side; the loop looks at it under mu
}

// Subscribe opens a subscription. See front.Broker.
func (b *Broker) Subscribe(ctx context.Context, who mihf.Caller, req mihf.SubscribeRequest) (mihf.Feed, error) {
	filter, err := route.NewFilter(&req, who, &b.cfg.Access)
	if err != nil {
		return nil, b.refused(err)
	}
	f := &feed{ending: newEnding(), b: b, wait: newSleeper()}
	var refused error
	if err := b.do(ctx, func(now mihf.Time) { refused = b.start(now, f, filter, who, &req) }); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	f.stop = context.AfterFunc(ctx, func() { f.end(context.Cause(ctx)) })
	return f, nil
}

// admit makes room for one more feed or attachment.
func (b *Broker) admit() error {
	if b.live.Load() >= int64(b.cfg.MaxSubscribers) {
		return b.refused(fmt.Errorf("%w: %d subscribers", mihf.ErrLimit, b.cfg.MaxSubscribers))
	}
	b.live.Add(1)
	return nil
}

// start places the feed's cursor; in the loop, when everything is published.
func (b *Broker) start(now mihf.Time, f *feed, filter *route.Filter, who mihf.Caller, req *mihf.SubscribeRequest) error {
	if err := b.admit(); err != nil {
		return err
	}
	if len(b.feeds) > 2*int(b.live.Load()) {
		b.wakeFeeds() // forgets those that have ended
	}
	b.feeds = append(b.feeds, f)
	if req.Boot == b.Boot() {
		if f.cursor = b.log.Resume(filter, req.After); f.cursor != nil {
			return nil
		}
	}
	f.cursor = b.log.Start(filter)
	f.read = b.log.Last()
	snapshot := b.engine.Snapshot(now, b.sees(who))
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

// cannotResume says why a subscription that asked for it begins with a snapshot instead;
// "" if it did not ask.
func (b *Broker) cannotResume(req *mihf.SubscribeRequest) string {
	switch {
	case req.Boot == 0 && req.After == 0:
		return ""
	case req.Boot == 0:
		return "no boot id was given with the sequence"
	case req.Boot != b.Boot():
		return "the broker was restarted"
	case req.After > b.log.Last():
		return fmt.Sprintf("sequence %d is not reached yet", req.After)
	}
	return "the replay ring does not reach back so far"
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
	for {
		if err := f.Err(); err != nil {
			return 0, err
		}
		if n := copy(buf, f.pending); n > 0 {
			if f.pending = f.pending[n:]; len(f.pending) == 0 {
				f.pending = nil // a snapshot may be large
			}
			return n, nil
		}
		closing := f.b.closing.Load() // before the last look at what is published
		if f.b.published.Load() != f.read {
			if n, err := f.take(buf); n > 0 || err != nil {
				return n, err
			}
			continue
		}
		if closing {
			f.over(mihf.ErrClosed)
			continue
		}
		f.wait.sleep(f.ready)
	}
}

func (f *feed) ready() bool {
	return f.b.published.Load() != f.read || f.b.closing.Load() || f.Err() != nil
}

// take reads from the log.
func (f *feed) take(buf []mihf.Delivery) (int, error) {
	f.b.mu.RLock()
	n, err := f.b.log.Read(f.cursor, buf)
	last := f.b.log.Last()
	f.b.mu.RUnlock()
	if err != nil {
		f.over(err)
		return 0, f.Err()
	}
	if n < len(buf) {
		f.read = last
	}
	return n, nil
}

// Close ends the feed with mihf.ErrClosed.
func (f *feed) Close() {
	f.stop()
	f.end(mihf.ErrClosed)
}

// end finishes the feed and wakes its reader. The loop forgets it when it comes by.
func (f *feed) end(why error) {
	f.over(why)
	f.wait.wake()
}

func (f *feed) over(why error) {
	if !f.finish(why) {
		return
	}
	f.b.live.Add(-1)
	if errors.Is(why, mihf.ErrSlow) {
		f.b.counts.slow.Add(1)
		f.b.cfg.Logger.Warn("subscriber closed", "reason", "slow", "error", why)
	}
}

// wakeFeeds wakes the readers and forgets the feeds that have ended; in the loop.
func (b *Broker) wakeFeeds() {
	live := b.feeds[:0]
	for _, f := range b.feeds {
		if f.Err() != nil {
			continue
		}
		f.wait.wake()
		live = append(live, f)
	}
	clear(b.feeds[len(live):])
	b.feeds = live
}

// endOverrun ends the feeds that the log outran, also those whose reader is busy
// elsewhere; in the loop.
func (b *Broker) endOverrun() {
	var slow []*feed
	b.mu.Lock() // readers move their cursors under its read side
	for _, f := range b.feeds {
		if b.log.Overrun(f.cursor) {
			slow = append(slow, f)
		}
	}
	b.mu.Unlock()
	for _, f := range slow {
		f.end(fmt.Errorf("%w: more than %d items behind", mihf.ErrSlow, b.log.Kept()))
	}
}
