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
	// before is what the next delivery follows, where kinds that are not known came
	// between.
	before mihf.Opt[uint64]
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
		if unknown(p) {
			s.c.skipped.Add(1)
			s.before = mihf.Some(s.before.Or(p.GetPrevious()))
			continue
		}
		if err := s.decode(p, &buf[0]); err != nil {
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

func (s *stream) decode(p *mihv1.SubscribeResponse, d *mihf.Delivery) (err error) {
	dec := s.c.decoder(conv.Held(p.GetHeld()))
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
	default:
		err = mihf.ErrInvalid
	}
	return err
}

// Close ends the stream.
func (s *stream) Close() { s.cancel() }
