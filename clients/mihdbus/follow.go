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
	return c.life.Follow(ctx, req, c.subscribe)
}

// stream is what the broker sends under one number.
type stream struct {
	*inbox
	c      *Client
	l      *link
	id     uint64
	passed clients.PassedOver
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
	own, cancel := c.life.During(ctx)
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
		_ = s.l.tell(dbusapi.MethodCloseStream, s.id) // on a bus that is lost nobody needs to know
	}
}

// subscribe opens one stream.
func (c *Client) subscribe(ctx context.Context, req mihf.SubscribeRequest) (clients.Stream, error) {
	s, err := c.open(ctx, false, dbusapi.MethodSubscribe, variant.Encode(conv.EncodeSubscribe(&req)))
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
		if !conv.KnownKind(&p) {
			s.c.skipped.Add(1)
			s.passed.Add(p.GetPrevious())
			continue
		}
		if buf[0], err = (conv.Decoder{Now: r.at, Held: conv.Held(p.GetHeld())}).Delivery(&p); err != nil {
			s.c.skipped.Add(1)
			continue
		}
		s.passed.Join(&buf[0])
		return 1, nil
	}
}
