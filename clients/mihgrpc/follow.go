package mihgrpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Follow subscribes and keeps the subscription. See [clients.Follow].
func (c *Client) Follow(ctx context.Context, req mihf.SubscribeRequest) (mihf.Feed, error) {
	return c.life.Follow(ctx, req, c.subscribe)
}

// subscribe opens one stream and waits until the broker has taken the request.
func (c *Client) subscribe(ctx context.Context, req mihf.SubscribeRequest) (clients.Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s, err := c.events.Subscribe(ctx, conv.EncodeSubscribe(&req))
	if err == nil {
		err = taken(s)
	}
	if err != nil {
		cancel()
		return nil, c.errorOf(err)
	}
	return &stream{c: c, s: s, cancel: cancel}, nil
}

// taken waits for the header that the broker sends when it takes a request.
func taken[T any](s interface {
	grpc.ClientStream
	Recv() (*T, error)
},
) error {
	md, err := s.Header()
	if err == nil && md == nil { // the stream ended without one: its status says why
		_, err = s.Recv()
	}
	return err
}

// stream is one connection's part of a subscription.
type stream struct {
	c      *Client
	s      grpc.ServerStreamingClient[mihv1.SubscribeResponse]
	cancel context.CancelFunc
	passed clients.PassedOver
}

// Next waits for one delivery.
func (s *stream) Next(buf []mihf.Delivery) (int, error) {
	for {
		p, err := s.s.Recv()
		if errors.Is(err, io.EOF) { // the broker ended the stream in good order
			return 0, io.EOF
		}
		if err != nil {
			return 0, s.c.errorOf(err)
		}
		if !conv.KnownKind(p) {
			s.c.skipped.Add(1)
			s.passed.Add(p.GetPrevious())
			continue
		}
		if buf[0], err = s.c.decoder(conv.Held(p.GetHeld())).Delivery(p); err != nil {
			s.c.skipped.Add(1)
			continue
		}
		s.passed.Join(&buf[0])
		return 1, nil
	}
}

// Close ends the stream.
func (s *stream) Close() { s.cancel() }
