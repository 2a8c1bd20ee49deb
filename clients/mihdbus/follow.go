package mihdbus

import (
	"context"
	"fmt"
	"io"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// Follow subscribes and keeps the subscription. See [clients.Follow].
func (c *Client) Follow(ctx context.Context, req mihf.SubscribeRequest) (mihf.Feed, error) {
	own, cancel := c.during(ctx)
	f, err := clients.Follow(own, req, c.subscribe)
	if err != nil {
		cancel()
		return nil, err
	}
	return feed{f, cancel}, nil
}

// feed is a subscription that ends with its client.
type feed struct {
	mihf.Feed
	cancel context.CancelFunc
}

// Close ends the feed.
func (f feed) Close() {
	f.Feed.Close()
	f.cancel()
}

// stream is what the broker sends under one number.
type stream struct {
	*inbox
	c  *Client
	l  *link
	id uint64
	// before is what the next delivery follows, where kinds that are not known came
	// between.
	before mihf.Opt[uint64]
}

func errBehind(n int) error { return fmt.Errorf("%w: %d messages waited", mihf.ErrSlow, n) }

// endOf is why the broker ended something.
func endOf(name, text string) error {
	if name == "" {
		return io.EOF
	}
	return dbusapi.NewError(name, text)
}

// open asks the broker for a stream.
func (c *Client) open(ctx context.Context, lossy bool, method string, args ...any) (*stream, error) {
	own, cancel := c.during(ctx)
	defer cancel()
	l, err := c.connection(own)
	if err != nil {
		return nil, c.errorOf(own, err)
	}
	s := &stream{inbox: newInbox(c.o.Queue), c: c, l: l, id: c.streams.Add(1)}
	s.lossy = lossy
	if err := l.add(s); err != nil {
		return nil, c.errorOf(own, err)
	}
	if _, err := l.call(own, method, append([]any{s.id}, args...)...); err != nil {
		s.leave(mihf.ErrClosed) // also where the broker took it and its answer was lost
		return nil, c.errorOf(own, err)
	}
	return s, nil
}

// leave ends the stream by its user.
func (s *stream) leave(why error) {
	known := s.l.drop(s.id) != nil
	s.close(why)
	if known {
		_ = s.l.tell("CloseStream", s.id) // on a bus that is lost nobody needs to know
	}
}

// subscribe opens one stream.
func (c *Client) subscribe(ctx context.Context, req mihf.SubscribeRequest) (clients.Stream, error) {
	s, err := c.open(ctx, false, "Subscribe", variant.Encode(conv.EncodeSubscribe(&req)))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.leave(context.Cause(ctx)) })
	return &subscription{s, stop}, nil
}

type subscription struct {
	*stream
	stop func() bool
}

// Close ends the stream.
func (s *subscription) Close() {
	s.stop()
	s.leave(mihf.ErrClosed)
}

// Next waits for one delivery.
func (s *subscription) Next(buf []mihf.Delivery) (int, error) {
	for {
		r, err := s.get()
		if err != nil {
			return 0, err
		}
		var p mihv1.SubscribeResponse
		if err := variant.Decode(r.dict, &p); err != nil {
			s.c.skipped.Add(1)
			continue
		}
		if unknown(&p) {
			s.c.skipped.Add(1)
			s.before = mihf.Some(s.before.Or(p.GetPrevious()))
			continue
		}
		if err := decode(conv.Decoder{Now: r.at, Held: conv.Held(p.GetHeld())}, &p, &buf[0]); err != nil {
			s.c.skipped.Add(1)
			continue
		}
		buf[0].Previous = s.before.Or(buf[0].Previous)
		s.before = mihf.Opt[uint64]{}
		return 1, nil
	}
}

// unknown reports whether a delivery is of a kind that a newer broker added. Nothing is
// missing without it.
func unknown(p *mihv1.SubscribeResponse) bool {
	switch item := p.GetItem().(type) {
	case *mihv1.SubscribeResponse_Event:
		return item.Event.GetKind() == nil
	case *mihv1.SubscribeResponse_Hint:
		return item.Hint.GetKind() == nil
	default:
		return item == nil
	}
}

func decode(dec conv.Decoder, p *mihv1.SubscribeResponse, d *mihf.Delivery) (err error) {
	*d = mihf.Delivery{Previous: p.GetPrevious(), Conflated: p.GetConflated()}
	switch item := p.GetItem().(type) {
	case *mihv1.SubscribeResponse_Event:
		d.Kind = mihf.DeliverEvent
		d.Event, err = dec.Event(item.Event)
	case *mihv1.SubscribeResponse_Hint:
		d.Kind = mihf.DeliverHint
		d.Hint, err = dec.Hint(item.Hint)
	case *mihv1.SubscribeResponse_Snapshot:
		d.Kind = mihf.DeliverSnapshot
		d.Snapshot, err = dec.Snapshot(item.Snapshot)
	case *mihv1.SubscribeResponse_Gap:
		d.Kind, d.Gap = mihf.DeliverGap, conv.DecodeGap(item.Gap)
	}
	return err
}
