package grpcfront

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

// batch is how many deliveries a stream takes from its feed at once: few, since each
// stream keeps that much room.
const batch = 1

// encoder returns one for messages that are sent now.
func (s *Server) encoder() conv.Encoder {
	return conv.Encoder{Now: s.broker.Now(), Wall: time.Now(), Node: s.encoded.Node()}
}

// hint encodes a hint; hints carry no wall time.
func (s *Server) hint(h *mihf.Hint) *mihv1.Hint {
	return conv.Encoder{Now: s.broker.Now(), Node: s.encoded.Node()}.Hint(h)
}

// Subscribe sends a subscription's deliveries, from the goroutine that reads them.
func (s *Server) Subscribe(req *mihv1.SubscribeRequest, stream grpc.ServerStreamingServer[mihv1.SubscribeResponse]) error {
	q, err := conv.DecodeSubscribe(req)
	if err != nil {
		return statusOf(err)
	}
	feed, err := s.broker.Subscribe(stream.Context(), callerOf(stream.Context()), q)
	if err != nil {
		return statusOf(err)
	}
	defer feed.Close()
	if err := stream.SendHeader(nil); err != nil { // tells the client that it was taken
		return err
	}
	buf := make([]mihf.Delivery, batch)
	for {
		n, err := feed.Next(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return statusOf(err)
		}
		for i := range buf[:n] {
			if err := s.deliver(stream, &buf[i]); err != nil {
				return err
			}
		}
	}
}

// deliver sends one delivery.
func (s *Server) deliver(stream grpc.ServerStreamingServer[mihv1.SubscribeResponse], d *mihf.Delivery) error {
	s.counts.sent.Add(1)
	p := &mihv1.SubscribeResponse{Previous: d.Previous, Conflated: d.Conflated}
	switch d.Kind {
	case mihf.DeliverEvent:
		bytes, at, err := s.encoded.Event(&d.Event)
		if err != nil { // the subscriber sees the gap by previous
			s.counts.encodeErrors.Add(1)
			s.log.Error("event not sent", "sequence", d.Event.Sequence, "kind", d.Event.Kind.String(), "error", err)
			return nil
		}
		return stream.SendMsg(&frame{previous: d.Previous, conflated: d.Conflated, held: s.broker.Now().Sub(at), event: bytes})
	case mihf.DeliverHint:
		p.Item = &mihv1.SubscribeResponse_Hint{Hint: s.hint(&d.Hint)}
	case mihf.DeliverSnapshot:
		p.Item = &mihv1.SubscribeResponse_Snapshot{Snapshot: s.encoder().Snapshot(d.Snapshot)}
		d.Snapshot = nil // large, and the buffer lives as long as the stream
	case mihf.DeliverGap:
		p.Item = &mihv1.SubscribeResponse_Gap{Gap: conv.EncodeGap(&d.Gap)}
	}
	return stream.Send(p)
}

// GetSnapshot sends the state that the caller may see.
func (s *Server) GetSnapshot(ctx context.Context, _ *mihv1.GetSnapshotRequest) (*mihv1.GetSnapshotResponse, error) {
	snap, err := s.broker.Snapshot(ctx, callerOf(ctx))
	if err != nil {
		return nil, statusOf(err)
	}
	return &mihv1.GetSnapshotResponse{Snapshot: s.encoder().Snapshot(snap)}, nil
}
