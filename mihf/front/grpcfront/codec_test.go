package grpcfront

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/encoded"
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

func BenchmarkEncodeShared(b *testing.B) {
	c := encoded.New("n", func() mihf.Time { return 2 })
	ev := mihf.Event{Boot: 1, Sequence: 1, Kind: mihf.LinkGoingDown, At: 1, Prediction: mihf.Prediction{ID: mihf.PredictionID{Boot: 1, N: 1}}}
	codec := newCodec(nil)
	b.ReportAllocs()
	for b.Loop() {
		bytes, at, err := c.Event(&ev)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := codec.Marshal(&frame{previous: 1, held: time.Duration(at), event: bytes}); err != nil {
			b.Fatal(err)
		}
	}
}
