package mihgrpc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// lastWord is how long the broker may take to say how many observations were missed.
const lastWord = 2 * time.Second

// Record calls write for each observation that the broker takes. See [clients.Client].
func (c *Client) Record(ctx context.Context, write func(*mihf.Observation) error) (lost uint64, err error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx by the last word
	defer cancel()
	s, err := c.admin.Record(own)
	if err != nil {
		return 0, c.errorOf(err)
	}
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastWord, cancel)
		_ = s.CloseSend() // a broken stream shows in Recv
	})
	defer stop()
	lost, err = c.record(s, write, stop)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // the last word did not come in time
	}
	return lost, err
}

func (c *Client) record(s grpc.BidiStreamingClient[mihv1.RecordRequest, mihv1.RecordResponse], write func(*mihf.Observation) error, stop func() bool) (lost uint64, failed error) {
	for {
		p, err := s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return lost, failed
		case err != nil && failed == nil:
			return lost, c.errorOf(err)
		case err != nil:
			return lost, failed
		}
		if item, ok := p.GetItem().(*mihv1.RecordResponse_Lost); ok {
			lost += item.Lost
			continue
		}
		if failed != nil {
			continue // on its way when we had enough
		}
		o, err := c.decoder(conv.Held(p.GetHeld())).Observation(p.GetObservation())
		if err != nil {
			c.skipped.Add(1)
			lost++
			continue
		}
		if failed = write(&o); failed != nil && stop() {
			_ = s.CloseSend() // a broken stream shows in Recv
		}
	}
}
