package grpcfront

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// batch is how many deliveries a stream takes from its feed at once: few, since each
// stream keeps that much room.
const batch = 1

// forms returns what a request's sender gets events as, and everything else: one on this host,
// on a unix socket, sees points of attachment by their own ids.
func (s *Server) forms(ctx context.Context) *encoded.Events {
	if infoOf(ctx).local {
		return s.encoded
	}
	return s.hidden
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
	to := subscriber{s, stream, s.forms(stream.Context()), frame{}}
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
			if err := to.deliver(&buf[i]); err != nil {
				return err
			}
		}
	}
}

// subscriber is one stream of deliveries.
type subscriber struct {
	*Server
	stream grpc.ServerStreamingServer[mihv1.SubscribeResponse]
	forms  *encoded.Events
	frame  frame // of the newest event
}

// deliver sends one delivery.
func (s *subscriber) deliver(d *mihf.Delivery) error {
	s.counts.sent.Add(1)
	if d.Kind == mihf.DeliverEvent {
		return s.deliverEvent(d)
	}
	p := &mihv1.SubscribeResponse{Previous: d.Previous, Conflated: d.Conflated}
	switch d.Kind {
	case mihf.DeliverHint:
		p.Item = &mihv1.SubscribeResponse_Hint{Hint: s.forms.HintEncoder(s.broker.Now()).Hint(&d.Hint)}
	case mihf.DeliverSnapshot:
		p.Item = &mihv1.SubscribeResponse_Snapshot{Snapshot: s.forms.Encoder().Snapshot(d.Snapshot)}
		d.Snapshot = nil // large, and the buffer lives as long as the stream
		r, err := s.shares.reply(s.stream.Context(), p)
		if err != nil {
			return statusOf(err)
		}
		return s.stream.SendMsg(r)
	case mihf.DeliverGap:
		p.Item = &mihv1.SubscribeResponse_Gap{Gap: conv.EncodeGap(&d.Gap)}
	default:
	}
	return s.stream.Send(p)
}

// deliverEvent sends the event's bytes, which all its subscribers share.
func (s *subscriber) deliverEvent(d *mihf.Delivery) error {
	octets, at, err := s.forms.Event(&d.Event)
	if err != nil { // the subscriber sees the gap by previous
		s.counts.encodeErrors.Add(1)
		s.log.Error("event not sent", "sequence", d.Event.Sequence, "kind", d.Event.Kind.String(), "error", err)
		return nil
	}
	s.frame = frame{previous: d.Previous, conflated: d.Conflated, held: s.broker.Now().Sub(at), event: octets}
	return s.stream.SendMsg(&s.frame)
}

// GetSnapshot sends the state that the caller may see.
func (s *Server) GetSnapshot(ctx context.Context, req *mihv1.GetSnapshotRequest) (*mihv1.GetSnapshotResponse, error) {
	return answered(s.service(ctx).GetSnapshot(ctx, callerOf(ctx), req))
}
