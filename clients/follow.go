package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"mihf.dev/mihf"
)

// Stream is one connection's part of a subscription.
type Stream interface {
	// Next waits for deliveries, as mihf.Feed does; an error ends the stream. io.EOF says
	// that a request with Present has all that it asked for.
	Next(buf []mihf.Delivery) (int, error)
	Close()
}

// Open subscribes once. It returns when the broker has taken or refused the request; the
// stream ends with ctx.
type Open func(ctx context.Context, req mihf.SubscribeRequest) (Stream, error)

// Follow subscribes through open and keeps the subscription over lost connections, as the
// package comment says. It fails if the first try does.
func Follow(ctx context.Context, req mihf.SubscribeRequest, open Open) (mihf.Feed, error) {
	f := &follower{open: open, req: req, done: make(chan struct{})}
	f.place = place{sequence: req.After, boot: req.Boot}
	own, cancel := context.WithCancelCause(ctx)
	var err error
	if f.stream, err = open(own, req); err != nil {
		cancel(nil)
		return nil, err
	}
	f.ctx, f.cancel = own, cancel
	context.AfterFunc(own, func() { f.finish(context.Cause(own)) })
	return f, nil
}

// place is where a reader is in the order.
type place struct {
	sequence uint64
	boot     mihf.BootID
}

// follower is a feed over many streams. Its reader owns all but the last fields.
type follower struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	open    Open
	req     mihf.SubscribeRequest
	stream  Stream // nil: lost
	place   place
	missed  string // why a snapshot that comes next would hide a gap; "": it would not
	pending []mihf.Delivery
	backoff Backoff

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// Next waits for deliveries.
func (f *follower) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	for {
		if err := f.Err(); err != nil {
			if f.stream != nil {
				f.lost(err)
			}
			return 0, err
		}
		if n := copy(buf, f.pending); n > 0 {
			f.pending = f.pending[n:]
			return n, nil
		}
		if f.stream == nil {
			if err := f.reopen(); err != nil {
				f.finish(err)
				continue
			}
		}
		n, err := f.stream.Next(buf)
		if err != nil {
			f.lost(err)
			if refused(err) || (f.req.Present && errors.Is(err, io.EOF)) {
				f.finish(err)
			}
			continue
		}
		if n = f.check(buf[:n]); n > 0 {
			f.backoff.Reset()
			return n, nil
		}
	}
}

// lost closes the stream.
func (f *follower) lost(err error) {
	f.stream.Close()
	f.stream = nil
	if f.missed == "" {
		f.missed = "the connection was lost"
	}
	if errors.Is(err, mihf.ErrSlow) {
		f.backoff.Reset() // the reader is back: no reason to wait longer each time
	}
}

// reopen subscribes again behind the reader's place until it works or is refused.
func (f *follower) reopen() error {
	req := f.req
	req.After, req.Boot = f.place.sequence, f.place.boot
	if req.Boot == 0 {
		req.After = 0
	}
	for {
		if err := f.backoff.Wait(f.ctx); err != nil {
			return err
		}
		stream, err := f.open(f.ctx, req)
		if err == nil {
			f.stream = stream
			return nil
		}
		if refused(err) || f.ctx.Err() != nil {
			return err
		}
	}
}

// refused reports whether trying again is of no use.
func refused(err error) bool {
	return errors.Is(err, ErrClientClosed) || errors.Is(err, mihf.ErrPermission) || errors.Is(err, mihf.ErrInvalid) || errors.Is(err, mihf.ErrNotFound)
}

// check follows the order and returns how many deliveries are good. At the first that
// does not follow the one before it, the stream is given up for one that begins with a
// snapshot; a snapshot in the place of what followed is preceded by a gap.
func (f *follower) check(ds []mihf.Delivery) int {
	for i := range ds {
		d := &ds[i]
		missed := f.missed
		f.missed = ""
		switch d.Kind {
		case mihf.DeliverGap:
			f.place.sequence = d.Gap.To
		case mihf.DeliverSnapshot:
			from := f.place.sequence
			f.place = place{d.Snapshot.Sequence, d.Snapshot.Boot}
			if missed == "" {
				continue
			}
			good := i + 1 + f.check(ds[i+1:])
			gap := mihf.Delivery{Kind: mihf.DeliverGap, Previous: from, Gap: mihf.Gap{From: from, To: d.Snapshot.Sequence, Reason: missed}}
			f.pending = slices.Concat([]mihf.Delivery{gap}, ds[i:good], f.pending)
			return i
		default:
			next := placeOf(d)
			if f.place.boot != 0 && (d.Previous != f.place.sequence || next.boot != f.place.boot) {
				f.place.boot, f.missed = 0, "deliveries were lost on the way"
				f.lost(nil)
				return i
			}
			f.place = next
		}
	}
	return len(ds)
}

func placeOf(d *mihf.Delivery) place {
	if d.Kind == mihf.DeliverHint {
		return place{d.Hint.Sequence, d.Hint.Boot}
	}
	return place{d.Event.Sequence, d.Event.Boot}
}

// Done is closed when the feed has ended.
func (f *follower) Done() <-chan struct{} { return f.done }

// Err says why the feed ended.
func (f *follower) Err() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

// Close ends the feed with mihf.ErrClosed.
func (f *follower) Close() {
	f.finish(mihf.ErrClosed)
}

// finish ends the feed for the first reason given.
func (f *follower) finish(why error) {
	f.once.Do(func() {
		f.err = why
		close(f.done)
	})
	f.cancel(why)
}
