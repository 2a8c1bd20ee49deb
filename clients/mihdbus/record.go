package mihdbus

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// lastWord is how long the broker may take to say how many observations were missed.
const lastWord = 2 * time.Second

// Record calls write for each observation that the broker takes. See [clients.Client].
func (c *Client) Record(ctx context.Context, write func(*mihf.Observation) error) (lost uint64, err error) {
	s, err := c.open(ctx, true, dbusapi.MethodRecord)
	if err != nil {
		return 0, err
	}
	defer s.leave(mihf.ErrClosed)
	enough := func() {
		_ = s.l.tell(dbusapi.MethodCloseStream, s.id) // where it cannot be told the bus is lost, which ends the stream
		time.AfterFunc(lastWord, func() { s.end(errLastWord) })
	}
	stop := context.AfterFunc(ctx, enough)
	defer stop()
	var failed error
	for {
		r, err := s.get()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, errLastWord), failed != nil:
			return lost + s.dropped.Load(), failed
		default:
			return lost + s.dropped.Load(), c.errorOf(context.WithoutCancel(ctx), err)
		}
		n, o, err := s.observation(&r)
		lost += n
		if err != nil || o == nil || failed != nil {
			continue
		}
		if failed = write(o); failed != nil && stop() {
			enough()
		}
	}
}

// errLastWord ends a recording that waits for nothing any more.
var errLastWord = errors.New("the broker did not say how many observations were missed")

// observation reads one item of a recording: how many were missed, or an observation.
func (s *stream) observation(r *received) (lost uint64, o *mihf.Observation, err error) {
	var p mihv1.RecordResponse
	if err = variant.Decode(r.dict, &p); err == nil {
		if item, ok := p.GetItem().(*mihv1.RecordResponse_Lost); ok {
			return item.Lost, nil, nil
		}
		var got mihf.Observation
		got, err = conv.Decoder{Now: r.at, Held: conv.Held(p.GetHeld())}.Observation(p.GetObservation())
		o = &got
	}
	if err != nil {
		s.c.skipped.Add(1)
		return 1, nil, err
	}
	return 0, o, nil
}

// heldOf reads a time that a message waited at its sender.
func heldOf(ns int64) time.Duration { return conv.Held(durationpb.New(time.Duration(ns))) }
