package variant

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

// BenchmarkFreeze is a hint's way from the vocabulary to a dictionary, and that of the
// dictionary to octets.
func BenchmarkFreeze(b *testing.B) {
	h := mihf.Hint{
		Sequence: 10_000, Boot: 1, Flow: "01JDZ3M5Y6Q8W9X0Z1A2B3C4D5", Link: "wifi-00000001", Epoch: 1000, Kind: mihf.HintFreeze, At: 1,
		Freeze: mihf.Freeze{Lease: 3 * time.Second, Reason: mihf.FreezeLinkDown},
	}
	b.Run("dictionary", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Encode(conv.Encoder{Now: 1}.Hint(&h))
		}
	})
	dict := Encode(conv.Encoder{Now: 1}.Hint(&h))
	b.Run("octets", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			msg := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
				dbus.FieldPath: v(dbus.ObjectPath("/dev/mihf/MIHF1/Flow/x")), dbus.FieldInterface: v("dev.mihf.MIHF1.Flow"), dbus.FieldMember: v("Freeze"),
				dbus.FieldDestination: v(":1.5"), dbus.FieldSignature: v(dbus.SignatureOf(uint64(1), int64(0), dict)),
			}, Body: []any{uint64(1), int64(0), dict}}
			var buf bytes.Buffer
			if err := msg.EncodeTo(&buf, binary.LittleEndian); err != nil {
				b.Fatal(err)
			}
		}
	})
}
