package conv

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// The hot path: a Freeze from the value to bytes and back.
func BenchmarkFreeze(b *testing.B) {
	h := mihf.Hint{
		Sequence: 99, Boot: 0xb007, Flow: "01M8Q1BXA9QKZR5T3WYZ93QJ35", Link: "wifi-00000001", Epoch: 7,
		Prediction: mihf.PredictionID{Boot: 0xb007, N: 12}, At: now, Kind: mihf.HintFreeze,
		Freeze: mihf.Freeze{Lease: 3 * time.Second, P10: time.Second, P50: 1500 * time.Millisecond, P90: 2 * time.Second},
	}
	bytes, err := proto.Marshal(Encoder{Now: now}.Hint(&h))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := proto.Marshal(Encoder{Now: now}.Hint(&h)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var p mihv1.Hint
			if err := proto.Unmarshal(bytes, &p); err != nil {
				b.Fatal(err)
			}
			if _, err := (Decoder{Now: now}).Hint(&p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) { // protobuf alone
		m := Encoder{Now: now}.Hint(&h)
		b.ReportAllocs()
		for b.Loop() {
			bytes, err := proto.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			var p mihv1.Hint
			if err := proto.Unmarshal(bytes, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
