package variant

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// body returns a dictionary as it is in a message.
func body(in Dict) []byte {
	msg := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: v(dbus.ObjectPath("/a")), dbus.FieldInterface: v("a.b"), dbus.FieldMember: v("C"), dbus.FieldSignature: v(dbus.SignatureOf(in)),
	}, Body: []any{in}}
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, binary.LittleEndian); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// "Decoding never panics, whatever the dictionary holds", and what was taken is encoded and
// taken again.
func FuzzDecode(f *testing.F) {
	deep := v("x")
	for range 20 {
		deep = v(deep)
	}
	for _, seed := range []Dict{
		{},
		Encode(&mihv1.FlowSpec{Flow: "F", Rtt: durationpb.New(time.Second), Tuples: []*mihv1.Endpoints{{Protocol: 6}}, Hints: []mihv1.HintKind{1, 2}}),
		Encode(&mihv1.ThresholdConfig{Parameter: 1, Threshold: &mihv1.Threshold{Value: math.NaN(), Direction: 1}}),
		{"flow": deep, "rtt_ns": v(math.Inf(1)), "tuples": v([][]any{{uint32(1), "x"}})},
		{"tuples": v([]dbus.Variant{v(int16(3))}), "hints": v(map[string]string{"a": "b"}), "link": v(dbus.Signature{})},
		{"ssid": v(""), "sequence": v(uint64(math.MaxUint64)), "event": v(Dict{"link_up": v(Dict{"facts": v(Dict{"name": v([]byte{255})})})})},
	} {
		f.Add(body(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := dbus.DecodeMessage(bytes.NewReader(b))
		if err != nil || len(msg.Body) == 0 {
			return
		}
		in, ok := msg.Body[0].(Dict)
		if !ok {
			return
		}
		for _, m := range []proto.Message{
			&mihv1.FlowSpec{}, &mihv1.FlowUpdate{}, &mihv1.Ack{}, &mihv1.SubscribeRequest{}, &mihv1.ThresholdConfig{},
			&mihv1.SubscribeResponse{}, &mihv1.RecordResponse{}, &mihv1.ExplainResponse{}, &mihv1.StatusResponse{},
		} {
			for _, decode := range []func(Dict, proto.Message) error{Decode, DecodeRequest} {
				proto.Reset(m)
				if err := decode(in, m); err != nil {
					if !errors.Is(err, mihf.ErrInvalid) {
						t.Errorf("%v does not wrap ErrInvalid", err)
					}
					continue
				}
				if err := Decode(Encode(m), m.ProtoReflect().New().Interface()); err != nil {
					t.Errorf("%v was taken, and refused when encoded again: %v", m, err)
				}
			}
		}
	})
}
