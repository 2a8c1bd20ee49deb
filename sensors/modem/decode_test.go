package modem

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
)

// M06 and M08: "Values <= -1e300, NaN, Inf -> field absent"; "central table of sentinels per field;
// value outside the 3GPP range = absent; unit test per sentinel".
func TestM06M08Sentinels(t *testing.T) {
	for _, c := range []struct {
		name     string
		value    float64
		want     bool
		rejected uint64
	}{
		{"rsrp", -90, true, 0},
		{"rsrp", -math.MaxFloat64, false, 0},
		{"rsrp", -1e300, false, 0},
		{"rsrp", math.NaN(), false, 0},
		{"rsrp", math.Inf(1), false, 0},
		{"rsrp", math.Inf(-1), false, 0},
		{"rsrp", math.MaxFloat64, false, 1},
		{"rsrp", 255, false, 1},
		{"rsrp", 99, false, 1},
		{"rsrp", 0, false, 1},
		{"rsrp", -1, false, 1},
		{"rsrq", 255, false, 1},
		{"rsrq", 99, false, 1},
		{"snr", 255, false, 1},
		{"snr", 99, false, 1},
		{"snr", -1, true, 0},
		{"error-rate", 99, false, 0},
	} {
		var r reader
		values := decodeSignals(&r, dict{"Lte": dbus.MakeVariant(dict{c.name: dbus.MakeVariant(c.value)})}, 0)
		if values.Len() == 1 != c.want || r.rejected != c.rejected || r.err() != nil {
			t.Errorf("%s %v: %d values, %d rejected, %v", c.name, c.value, values.Len(), r.rejected, r.err())
		}
	}
}

func TestCell(t *testing.T) {
	for _, c := range []struct {
		location, operator string
		access             uint32
		want               mihf.PoA
	}{
		{"262,01,1A2B,1C3D4E5,0", "", 0, "26201-1c3d4e5"},
		{"262,001,1A2B,1C3D4E5", "26201", 0, "262001-1c3d4e5"},
		{",,1A2B,1C3D4E5,0", "26201", 0, "26201-1c3d4e5"},
		{"262,01,1A2B,FFFF,0", "", 1 << 14, "26201-ffff"},
		{"262,01,1A2B,FFFF,0", "", 1 << 1, ""},
		{"262,01,0,0,0", "26201", 0, ""},
		{"262,01,FFFF,FFFFFFF,0", "26201", 0, ""},
		{"262,01,FFFF,FFFFFFFF,0", "26201", 0, ""},
		{"262,01,FFFF,FFFFFFFFF,0", "26201", 0, ""},
		{"262,01,FFFF,FFFFFFFFFFFFFFFF,0", "26201", 0, ""},
		{"262,01,FFFF,-1,0", "26201", 0, ""},
		{"000,00,1,1,0", "", 0, ""},
		{"262,01", "26201", 0, ""},
		{"", "", 0, ""},
	} {
		if got := decodeCell(c.location, c.operator, c.access); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.location, c.operator, got, c.want)
		}
	}
}

// FuzzDecode gives the decoders whatever a message can hold.
func FuzzDecode(f *testing.F) {
	for _, body := range [][]any{
		{objects{modem0: registered(modem0, imei).of}},
		{dict{"Connected": dbus.MakeVariant(true), "Interface": dbus.MakeVariant("wwan0")}},
		{map[uint32]dbus.Variant{1: dbus.MakeVariant("262,01,1A2B,1C3D4E5,0")}},
		{int32(8), int32(11), uint32(1)},
		{modem0, []string{modemInterface}},
		{signalInterface, dict{"Lte": dbus.MakeVariant(lte(-90, -9))}, []string{}},
		{modem0, map[string]dict{modemInterface: {"Ports": dbus.MakeVariant([][]string{{"a", "b"}})}}},
	} {
		msg := &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)), dbus.FieldPath: dbus.MakeVariant(modem0),
			dbus.FieldInterface: dbus.MakeVariant("a.b"), dbus.FieldMember: dbus.MakeVariant("c"),
		}}
		var b bytes.Buffer
		if err := msg.EncodeTo(&b, binary.LittleEndian); err != nil {
			f.Fatal(err)
		}
		b.Bytes()[8] = 1
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		body, ok := decodeBody(b)
		if !ok {
			return
		}
		for _, name := range []string{
			objectManager + ".InterfacesAdded", objectManager + ".InterfacesRemoved", properties + ".PropertiesChanged", modemInterface + ".StateChanged",
		} {
			_, _ = decodeEvent(&dbus.Signal{Name: name, Body: body}) // an error is an answer
		}
		st := newState(&config{cells: true, reconcile: reconcile, count: &counters{}})
		st.begin(1, ":1.7")
		st.calls(1)
		st.answered(1, &answer{call: call{kind: callList, path: rootPath}, body: body})
		for _, m := range st.ordered() {
			m.identified(1, false, "")
			if !m.link.Valid() {
				t.Errorf("link %q", m.link)
			}
			st.answered(1, &answer{call: call{kind: callCell, path: m.path}, body: body})
			for path := range m.bearers {
				st.answered(1, &answer{call: call{kind: callBearer, path: path}, body: body})
			}
		}
		for _, o := range st.flush() {
			o.Values.All(func(p mihf.Parameter, v float64) bool {
				if p.Check(v) != nil {
					t.Errorf("%v = %v", p, v)
				}
				return true
			})
		}
	})
}

// decodeBody decodes a message as the connection does.
func decodeBody(b []byte) (body []any, ok bool) {
	defer func() { _ = recover() }() // godbus's own
	msg, err := dbus.DecodeMessage(bytes.NewReader(b))
	if err != nil {
		return nil, false
	}
	return msg.Body, true
}
