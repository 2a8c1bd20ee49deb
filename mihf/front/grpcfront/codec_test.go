package grpcfront

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// A frame's bytes are what ordinary marshalling of the same message gives.
func TestFrameIsTheOrdinaryMessage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ev := &mihv1.Event{
			Sequence: rapid.Uint64().Draw(rt, "sequence"), BootId: "00000001", Link: rapid.StringN(0, 300, 900).Draw(rt, "link"),
			Kind: &mihv1.Event_LinkRemoved{LinkRemoved: &mihv1.LinkRemoved{Reason: 2}},
		}
		body, err := proto.Marshal(ev)
		if err != nil {
			rt.Skip("not UTF-8")
		}
		f := &frame{
			previous: rapid.Uint64().Draw(rt, "previous"), conflated: rapid.Uint32().Draw(rt, "conflated"),
			held: time.Duration(rapid.Int64Range(-5, int64(48*time.Hour)).Draw(rt, "held")), event: body,
		}
		want := &mihv1.SubscribeResponse{Previous: f.previous, Conflated: f.conflated, Item: &mihv1.SubscribeResponse_Event{Event: ev}}
		if f.held > 0 {
			want.Held = durationpb.New(f.held)
		}
		bytes, err := newCodec(nil).Marshal(f)
		if err != nil {
			rt.Fatal(err)
		}
		if n := bytes[0].Len(); n > maxFrameHead {
			rt.Errorf("head of %d octets outgrew its room", n)
		}
		got := new(mihv1.SubscribeResponse)
		if err := proto.Unmarshal(bytes.Materialize(), got); err != nil {
			rt.Fatal(err)
		}
		if !proto.Equal(want, got) {
			rt.Errorf("want %v\ngot %v", want, got)
		}
	})
}

// An event is encoded once for all its subscribers, also for one who is behind.
func TestEventIsEncodedOnce(t *testing.T) {
	c := &encodings{node: "n"}
	encoded := 0
	now := func() mihf.Time { encoded++; return mihf.Time(time.Hour) }
	event := func(boot mihf.BootID, sequence uint64) []byte {
		t.Helper()
		b, _, err := c.event(now, &mihf.Event{Boot: boot, Sequence: sequence, Kind: mihf.LinkUp, At: 1})
		if err != nil {
			t.Fatal(err)
		}
		var p mihv1.Event
		if err := proto.Unmarshal(b, &p); err != nil || p.GetSequence() != sequence || p.GetBootId() != boot.String() {
			t.Fatalf("event %d of %v came back as %v, %v", sequence, boot, &p, err)
		}
		return b
	}
	a, b := event(1, 5), event(1, 5)
	if encoded != 1 || &a[0] != &b[0] {
		t.Errorf("encoded %d times", encoded)
	}
	event(1, 5+slots)
	event(1, 5) // of one who is behind: does not push out the newer one
	if encoded = 0; event(1, 5+slots) == nil || encoded != 0 {
		t.Error("the newer event was pushed out")
	}
	event(2, 5) // another run
}

func BenchmarkEncodeShared(b *testing.B) {
	c := &encodings{node: "n"}
	ev := mihf.Event{Boot: 1, Sequence: 1, Kind: mihf.LinkGoingDown, At: 1, Prediction: mihf.Prediction{ID: mihf.PredictionID{Boot: 1, N: 1}}}
	now := func() mihf.Time { return 2 }
	codec := newCodec(nil)
	b.ReportAllocs()
	for b.Loop() {
		bytes, at, err := c.event(now, &ev)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := codec.Marshal(&frame{previous: 1, held: time.Duration(at), event: bytes}); err != nil {
			b.Fatal(err)
		}
	}
}
