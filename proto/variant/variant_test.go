package variant

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// messages returns every message of the protocol, by name.
func messages() []protoreflect.MessageType {
	var out []protoreflect.MessageType
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if mt.Descriptor().ParentFile().Package() == "mih.v1" {
			out = append(out, mt)
		}
		return true
	})
	slices.SortFunc(out, func(a, b protoreflect.MessageType) int {
		return strings.Compare(string(a.Descriptor().FullName()), string(b.Descriptor().FullName()))
	})
	return out
}

// draw fills a message at random.
func draw(t *rapid.T, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case !rapid.Bool().Draw(t, string(fd.Name())):
		case fd.IsList():
			l := m.Mutable(fd).List()
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				l.Append(drawValue(t, fd, l.NewElement, depth))
			}
		default:
			m.Set(fd, drawValue(t, fd, func() protoreflect.Value { return m.NewField(fd) }, depth))
		}
	}
}

func drawValue(t *rapid.T, fd protoreflect.FieldDescriptor, empty func() protoreflect.Value, depth int) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "b"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-2, 40).Draw(t, "e")))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, "i"))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, "u"))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "x"))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "t"))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(rapid.Float32().Draw(t, "f"))
	case protoreflect.DoubleKind:
		special := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)})
		return protoreflect.ValueOfFloat64(rapid.OneOf(rapid.Float64(), special).Draw(t, "d"))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.ReplaceAll(strings.ToValidUTF8(rapid.String().Draw(t, "s"), ""), "\x00", ""))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "ay"))
	default: // a message
	}
	switch fd.Message().FullName() {
	case durationName:
		return protoreflect.ValueOfMessage(durationpb.New(time.Duration(rapid.Int64().Draw(t, "ns"))).ProtoReflect())
	case timestampName:
		return protoreflect.ValueOfMessage(timestamppb.New(time.Unix(0, rapid.Int64Range(-1<<62, 1<<62).Draw(t, "unix"))).ProtoReflect())
	}
	v := empty()
	if depth < 5 {
		draw(t, v.Message(), depth+1)
	}
	return v
}

// overTheWire returns what arrives when in is sent, by the library's own codec.
func overTheWire(in Dict) (Dict, error) {
	msg := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/a")), dbus.FieldInterface: dbus.MakeVariant("a.b"), dbus.FieldMember: dbus.MakeVariant("C"),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(in)),
	}, Body: []any{in}}
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, binary.LittleEndian); err != nil {
		return nil, err
	}
	got, err := dbus.DecodeMessage(&b)
	if err != nil {
		return nil, err
	}
	return got.Body[0].(Dict), nil
}

// "Decode of what Encode gave is equal to the message", also over the wire.
func TestDecodeOfEncode(t *testing.T) {
	all := messages()
	if len(all) < 50 {
		t.Fatalf("%d messages found", len(all))
	}
	for _, mt := range all {
		t.Run(string(mt.Descriptor().Name()), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				in := mt.New()
				draw(rt, in, 0)
				dict, err := overTheWire(Encode(in.Interface()))
				if err != nil {
					rt.Fatal(err)
				}
				out := mt.New()
				if err := Decode(dict, out.Interface()); err != nil {
					rt.Fatal(err)
				}
				if !proto.Equal(in.Interface(), out.Interface()) {
					rt.Fatalf("(-sent +arrived)\n%s", cmp.Diff(in.Interface(), out.Interface(), protocmp.Transform()))
				}
			})
		})
	}
}

// Keys are unique in each message, and every kind of field has a D-Bus type.
func TestEveryFieldHasAKey(t *testing.T) {
	for _, mt := range messages() {
		seen := map[string]bool{}
		fields := mt.Descriptor().Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			keys := []string{key(fd)}
			if octets(fd) {
				keys = append(keys, textKey(fd))
			}
			for _, k := range keys {
				if seen[k] {
					t.Errorf("%s: two fields have the key %s", mt.Descriptor().Name(), k)
				}
				seen[k] = true
			}
			if fd.IsMap() {
				t.Errorf("%s: a map", fd.FullName())
			}
			if e := fd.Enum(); e != nil && !strings.HasSuffix(prefix(e), "_") {
				t.Errorf("%s: the first value is not <PREFIX>_UNSPECIFIED", e.FullName())
			}
		}
	}
}

func TestEncode(t *testing.T) {
	ssid, value := []byte("caf\xe9"), 0.0
	for _, tc := range []struct {
		in   proto.Message
		want map[string]string // as busctl and gdbus show it
	}{
		{&mihv1.LinkUp{Poa: "02:00:00:00:00:01", Ssid: ssid}, map[string]string{
			"poa": `"02:00:00:00:00:01"`, "ssid": "@ay [0x63, 0x61, 0x66, 0xe9]", "ssid_text": `"caf\\xe9"`,
		}},
		{&mihv1.LinkUp{Ssid: []byte{}}, map[string]string{"ssid": "@ay []", "ssid_text": `""`}},
		{&mihv1.LinkParametersReport{Parameter: mihv1.Parameter_PARAMETER_RSSI_DBM, Value: &value, Periodic: true}, map[string]string{
			"parameter": `"rssi_dbm"`, "value": "@d 0", "periodic": "true",
		}},
		{&mihv1.Freeze{Lease: durationpb.New(3 * time.Second), Reason: mihv1.FreezeReason_FREEZE_REASON_LINK_DOWN}, map[string]string{
			"lease_ns": "@x 3000000000", "reason": `"link_down"`,
		}},
		{&mihv1.Event{WallTime: timestamppb.New(time.Unix(1, 5)), Sequence: 7}, map[string]string{
			"wall_time_unix_ns": "@x 1000000005", "sequence": "@t 7",
		}},
		{&mihv1.Freeze{Reason: 77}, map[string]string{"reason": `"77"`}},
		{&mihv1.SensorCondition{Text: "a\x00b"}, map[string]string{"text": `"a\\x00b"`}},
		{&mihv1.Forecast{Loss: []float32{0, 0.5}}, map[string]string{"loss": "@ad [0, 0.5]"}},
		{(*mihv1.Lci)(nil), map[string]string{}},
	} {
		got := map[string]string{}
		for k, v := range Encode(tc.in) {
			got[k] = v.String()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v (-want +got)\n%s", tc.in, diff)
		}
		if _, err := overTheWire(Encode(tc.in)); err != nil {
			t.Errorf("%v: %v", tc.in, err)
		}
	}
}

func v(x any) dbus.Variant { return dbus.MakeVariant(x) }

func TestDecodeTakesWhatMeansTheSame(t *testing.T) {
	for name, in := range map[string]Dict{
		"as it is sent":  {"flow": v("F"), "rtt_ns": v(int64(5)), "owner_uid": v(uint32(7)), "hints": v([]string{"freeze"})},
		"other integers": {"flow": v("F"), "rtt_ns": v(byte(5)), "owner_uid": v(int64(7)), "hints": v([]string{"freeze"})},
		"a path":         {"flow": v(dbus.ObjectPath("F")), "rtt_ns": v(uint16(5)), "owner_uid": v(int16(7)), "hints": v([]string{"freeze"})},
	} {
		var got mihv1.FlowSpec
		if err := DecodeRequest(in, &got); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := &mihv1.FlowSpec{Flow: "F", Rtt: durationpb.New(5), OwnerUid: proto.Uint32(7), Hints: []mihv1.HintKind{mihv1.HintKind_HINT_KIND_FREEZE}}
		if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	var up mihv1.LinkUp
	if err := DecodeRequest(Dict{"ssid_text": v(`caf\xe9`)}, &up); err != nil || string(up.GetSsid()) != "caf\xe9" {
		t.Errorf("SSID %q, %v", up.GetSsid(), err)
	}
	var th mihv1.Threshold
	if err := DecodeRequest(Dict{"value": v(int32(-70))}, &th); err != nil || th.GetValue() != -70 {
		t.Errorf("value %v, %v", th.GetValue(), err)
	}
}

// "An error wraps mihf.ErrInvalid and names the key, what is there and what is wanted."
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		in   Dict
		m    proto.Message
		want string
	}{
		{Dict{"rtt_ns": v("5ms")}, &mihv1.FlowSpec{}, "rtt_ns: is s, want a whole number"},
		{Dict{"rtt_ns": v(uint64(1 << 63))}, &mihv1.FlowSpec{}, "rtt_ns: 9223372036854775808 is outside"},
		{Dict{"owner_uid": v(int32(-1))}, &mihv1.FlowSpec{}, "owner_uid: -1 is outside 0 to 4294967295"},
		{Dict{"flow": v([]byte("F"))}, &mihv1.FlowSpec{}, "flow: is ay, want s"},
		{Dict{"late_freeze": v(uint32(1))}, &mihv1.FlowSpec{}, "late_freeze: is u, want b"},
		{Dict{"tuples": v("x")}, &mihv1.FlowSpec{}, "tuples: is s, want a list"},
		{Dict{"tuples": v([]string{"x"})}, &mihv1.FlowSpec{}, "tuples[0]: is s, want a{sv}"},
		{Dict{"tuples": v([]Dict{{}, {"protocol": v(1.5)}})}, &mihv1.FlowSpec{}, "tuples[1].protocol: is d, want a whole number"},
		{Dict{"hints": v([]string{"freeze", "thaw"})}, &mihv1.FlowSpec{}, `hints[1]: "thaw" is not one of its values`},
		{Dict{"continuity": v("REBINDS")}, &mihv1.FlowSpec{}, `continuity: "REBINDS" is not one of its values`},
		{Dict{"rtt": v(int64(5)), "late_freze": v(true)}, &mihv1.FlowSpec{}, `"late_freze": is not known here; want flow, `},
		{Dict{"x": v(1)}, &mihv1.GetSnapshotRequest{}, `"x": is not known here; no key is`},
		{Dict{"value": v("much")}, &mihv1.Threshold{}, "value: is s, want a number"},
		{Dict{"ssid_text": v(`\zz`)}, &mihv1.LinkUp{}, "ssid_text: escaped name"},
		{Dict{"ssid": v(5)}, &mihv1.LinkUp{}, "ssid: is i, want ay"},
		{Dict{"register": v(Dict{}), "ack": v(Dict{})}, &mihv1.AttachRequest{}, "ack: register is given too"},
		{Dict{"flow": {}}, &mihv1.FlowSpec{}, "flow: is nothing, want s"},
	} {
		err := DecodeRequest(tc.in, tc.m)
		if !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.in, err, tc.want)
		}
	}
	_, err := DecodeRequests[mihv1.ThresholdConfig]([]Dict{{}, {"threshold": v(Dict{"value": v("x")})}})
	if want := "[1].threshold.value: is s"; !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// An answer of a newer broker is read as far as it is known.
func TestAnswerOfANewerBroker(t *testing.T) {
	var got mihv1.Freeze
	if err := Decode(Dict{"lease_ns": v(int64(5)), "reason": v("boredom"), "colour": v("blue")}, &got); err != nil {
		t.Fatal(err)
	}
	if got.GetLease().AsDuration() != 5 || got.GetReason() != -1 {
		t.Errorf("%v", &got)
	}
}
