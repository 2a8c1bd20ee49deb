package dbusfront

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/dbusapi"
	"mihf.dev/proto/variant"
)

// stream is a subscription or a recording of a peer. Its number is the peer's choice.
type stream struct {
	p      *peer
	id     uint64
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing more comes
}

// errStreamClosed ends a stream that its peer closed.
var errStreamClosed = errors.New("closed by its connection")

// open makes room for a stream.
func (p *peer) open(id uint64) (*stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams[id] != nil {
		return nil, fmt.Errorf("%w: stream %d of this connection", mihf.ErrExists, id)
	}
	if len(p.streams) >= p.b.s.o.MaxStreams {
		return nil, fmt.Errorf("%w: this connection has %d streams", mihf.ErrLimit, p.b.s.o.MaxStreams)
	}
	s := &stream{p: p, id: id, ended: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(p.ctx)
	s.ctx, s.cancel = ctx, func() { cancel(errStreamClosed) }
	p.streams[id] = s
	return s, nil
}

// forget ends a stream that did not begin.
func (s *stream) forget() {
	s.cancel()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.streams[s.id] == s {
		delete(s.p.streams, s.id)
	}
}

// begin returns an answer after which body runs, until its end is told.
func (s *stream) begin(body func() error) (answer, error) {
	return answer{after: func() {
		s.p.b.spawn(func() {
			defer close(s.ended)
			err := body()
			s.forget()
			s.tellEnd(err)
		})
	}}, nil
}

// tellEnd says why a stream ended, unless its peer knows.
func (s *stream) tellEnd(err error) {
	if errors.Is(err, errStreamClosed) || errors.Is(context.Cause(s.ctx), errGone) {
		return
	}
	name, text := "", ""
	if err != nil && !errors.Is(err, io.EOF) {
		name, text = dbusapi.ErrorName(err), err.Error()
	}
	_ = s.p.b.emit(s.p.ctx, s.p.name, dbusapi.Root, dbusapi.BrokerInterface, dbusapi.SignalStreamEnded, these(s.id, name, text)) // the bus was lost: so is the stream
}

// deliver sends one item.
func (s *stream) deliver(item func() variant.Dict) error {
	return s.p.b.emit(s.ctx, s.p.name, dbusapi.Root, dbusapi.BrokerInterface, dbusapi.SignalDelivery, func() []any { return []any{s.id, item()} })
}

func (p *peer) subscribe(who mihf.Caller, args []any) (answer, error) {
	q, err := subscription(args[1])
	if err != nil {
		return answer{}, err
	}
	s, err := p.open(args[0].(uint64))
	if err != nil {
		return answer{}, err
	}
	feed, err := p.b.s.o.Broker.Subscribe(s.ctx, who, q)
	if err != nil {
		s.forget()
		return answer{}, err
	}
	return s.begin(func() error {
		defer feed.Close()
		return s.follow(feed)
	})
}

// follow sends what a feed gives until it ends.
func (s *stream) follow(feed mihf.Feed) error {
	buf := make([]mihf.Delivery, 16)
	for {
		n, err := feed.Next(buf)
		if err != nil {
			if cause := context.Cause(s.ctx); cause != nil {
				return cause
			}
			return err
		}
		for i := range buf[:n] {
			d := &buf[i]
			if err := s.deliver(func() variant.Dict { return s.p.b.s.delivery(d) }); err != nil {
				return err
			}
		}
		clear(buf[:n]) // a snapshot may be large
	}
}

func (p *peer) record(who mihf.Caller, args []any) (answer, error) {
	s, err := p.open(args[0].(uint64))
	if err != nil {
		return answer{}, err
	}
	return s.begin(func() error {
		lost, err := p.b.s.o.Broker.Record(s.ctx, who, func(o *mihf.Observation) error {
			return s.deliver(func() variant.Dict {
				return variant.Dict{"observation": dbus.MakeVariant(variant.Encode(p.b.s.dicts.Encoder().Observation(o)))}
			})
		})
		if errors.Is(context.Cause(s.ctx), errStreamClosed) {
			return s.lastWord(lost)
		}
		return err
	})
}

// lastWord tells a recorder that had enough how many observations it missed.
func (s *stream) lastWord(lost uint64) error {
	_ = s.p.b.emit(s.p.ctx, s.p.name, dbusapi.Root, dbusapi.BrokerInterface, dbusapi.SignalDelivery,
		these(s.id, variant.Dict{"lost": dbus.MakeVariant(lost)})) // the bus was lost: nobody waits for it
	return nil // which is told
}

func (p *peer) closeStream(_ mihf.Caller, args []any) (answer, error) {
	id := args[0].(uint64)
	p.mu.Lock()
	s := p.streams[id]
	p.mu.Unlock()
	if s == nil {
		return answer{}, fmt.Errorf("%w: stream %d of this connection", mihf.ErrNotFound, id)
	}
	s.cancel()
	return give()
}
