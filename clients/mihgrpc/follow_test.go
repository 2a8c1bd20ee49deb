package mihgrpc

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// subscription is a stream with what a broker sent.
type subscription struct {
	grpc.ServerStreamingClient[mihv1.SubscribeResponse]
	sent []*mihv1.SubscribeResponse
}

func (s *subscription) Recv() (*mihv1.SubscribeResponse, error) {
	if len(s.sent) == 0 {
		return nil, io.EOF
	}
	p := s.sent[0]
	s.sent = s.sent[1:]
	return p, nil
}

// "A client skips a kind of event that it does not know and keeps its sequence": the order
// has no hole there. One that it knows and cannot read leaves a hole.
func TestUnknownKindsLeaveNoHole(t *testing.T) {
	event := func(previous uint64, e *mihv1.Event) *mihv1.SubscribeResponse {
		return &mihv1.SubscribeResponse{Previous: previous, Item: &mihv1.SubscribeResponse_Event{Event: e}}
	}
	resync := &mihv1.Event_Resync{Resync: &mihv1.Resync{}}
	c := &Client{life: clients.NewLife()}
	s := &stream{c: c, s: &subscription{sent: []*mihv1.SubscribeResponse{
		event(1, &mihv1.Event{Sequence: 2, Kind: resync}),
		event(2, &mihv1.Event{Sequence: 3}),
		{Previous: 3, Item: &mihv1.SubscribeResponse_Hint{Hint: &mihv1.Hint{Sequence: 4}}},
		{Previous: 4},
		event(5, &mihv1.Event{Sequence: 6, Kind: resync}),
		event(6, &mihv1.Event{Sequence: 7, BootId: "nonsense", Kind: resync}),
		event(7, &mihv1.Event{Sequence: 8, Kind: resync}),
	}}}
	var buf [1]mihf.Delivery
	for _, want := range []struct{ previous, sequence uint64 }{{1, 2}, {2, 6}, {7, 8}} {
		if _, err := s.Next(buf[:]); err != nil {
			t.Fatal(err)
		}
		if d := &buf[0]; d.Previous != want.previous || d.Sequence() != want.sequence {
			t.Errorf("delivery %d behind %d, want %d behind %d", d.Sequence(), d.Previous, want.sequence, want.previous)
		}
	}
	if _, err := s.Next(buf[:]); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last: %v, want io.EOF", err)
	}
	if c.Skipped() != 4 {
		t.Errorf("%d skipped, want 4", c.Skipped())
	}
}
