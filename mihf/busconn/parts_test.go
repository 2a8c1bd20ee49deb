package busconn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

func TestSockets(t *testing.T) {
	for address, want := range map[string][]string{
		"unix:path=/run/dbus/system_bus_socket":       {"/run/dbus/system_bus_socket"},
		"unix:path=/a%20b,guid=0123":                  {"/a b"},
		"unix:guid=01,abstract=/tmp/x":                {"@/tmp/x"},
		"unix:path=/a;unix:path=/b;":                  {"/a", "/b"},
		"tcp:host=localhost,port=1":                   nil,
		"unix:guid=1":                                 nil,
		"unix:path=/a%2":                              nil,
		"":                                            nil,
		"/run/dbus/system_bus_socket":                 nil,
		"unix:path=/a;unixexec:path=/bin/sh":          nil,
		"unix:path=":                                  nil,
		"unix:path=/" + strings.Repeat("x", 300) + "": {"/" + strings.Repeat("x", 300)},
	} {
		got, err := sockets(address)
		if diff := cmp.Diff(want, got); diff != "" || (want == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", address, got, err)
		}
		if (Check(address) == nil) != (want != nil) {
			t.Errorf("%q: Check says otherwise", address)
		}
	}
}

func encoded(t testing.TB, order binary.ByteOrder, typ dbus.Type, body ...any) []byte {
	t.Helper()
	m := &dbus.Message{Type: typ, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/a/bc")), dbus.FieldInterface: dbus.MakeVariant("a.b"), dbus.FieldMember: dbus.MakeVariant("C"),
		dbus.FieldSender: dbus.MakeVariant(":1.5"), dbus.FieldDestination: dbus.MakeVariant(":1.77"), dbus.FieldReplySerial: dbus.MakeVariant(uint32(9)),
		dbus.FieldErrorName: dbus.MakeVariant("a.Error"),
	}}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var b bytes.Buffer
	if err := m.EncodeTo(&b, order); err != nil {
		t.Fatal(err)
	}
	order.PutUint32(b.Bytes()[8:], 0x01020304)
	return b.Bytes()
}

// Answers pass as they are, calls and signals are handed over, in either byte order; what is
// too large is not read, and an answer of that size becomes an error.
func TestFrames(t *testing.T) {
	large := strings.Repeat("x", 5000)
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		var in bytes.Buffer
		in.WriteString("REJECTED EXTERNAL\r\n")
		small := encoded(t, order, dbus.TypeMethodReply, "hello", int32(5))
		in.Write(encoded(t, order, dbus.TypeMethodCall, "one"))
		in.Write(small)
		in.Write(encoded(t, order, dbus.TypeSignal, large))
		in.Write(encoded(t, order, dbus.TypeMethodCall, large))
		in.Write(encoded(t, order, dbus.TypeMethodReply, large))
		in.Write(encoded(t, order, dbus.TypeSignal, "two"))
		in.Write(small)
		var unread []dbus.Type
		var taken []string
		f := &frames{in: bufio.NewReaderSize(&in, 64), limit: 2000, heed: func(sender string) bool { return sender == ":1.5" }, call: func(m *message, whole []byte) {
			c := callOf(m)
			c.whole = whole
			args, err := c.Args()
			if err != nil || c.serial != 0x01020304 || c.Sender != ":1.5" || c.Path != "/a/bc" || c.Interface != "a.b" || c.Member != "C" || c.Signature != "s" {
				t.Errorf("%+v, %v", c, err)
			}
			taken = append(taken, "call "+args[0].(string))
		}, signal: func(s *dbus.Signal) { taken = append(taken, "signal "+s.Body[0].(string)) }, unread: func(m *message, why error) {
			unread = append(unread, m.typ)
			if !errors.Is(why, ErrTooLarge) || m.text[fieldSender] != ":1.5" || m.serial != 0x01020304 {
				t.Errorf("%+v, %v", m, why)
			}
		}}
		line := make([]byte, len("REJECTED EXTERNAL\r\n"))
		if _, err := io.ReadFull(f, line); err != nil || !bytes.HasPrefix(line, []byte("REJECTED")) {
			t.Fatalf("%q, %v", line, err)
		}
		again := make([]byte, len(small))
		if _, err := io.ReadFull(f, again); err != nil || !bytes.Equal(small, again) {
			t.Fatalf("a small answer was changed: %v", err)
		}
		reply, err := dbus.DecodeMessage(f)
		if err != nil || reply.Type != dbus.TypeError || reply.Headers[dbus.FieldReplySerial].Value() != uint32(9) {
			t.Errorf("%v, %v", reply, err)
		}
		if last, err := dbus.DecodeMessage(f); err != nil || last.Body[0] != "hello" {
			t.Errorf("%v, %v", last, err)
		}
		if diff := cmp.Diff([]string{"call one", "signal two"}, taken); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]dbus.Type{dbus.TypeSignal, dbus.TypeMethodCall, dbus.TypeMethodReply}, unread); diff != "" {
			t.Error(diff)
		}
		if _, err := f.Read(line); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}

// Whatever a bus sends: no panic, and nothing above the limit is given on.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("OK 1234\r\n"))
	f.Add(encoded(f, binary.LittleEndian, dbus.TypeMethodCall, "x"))
	f.Add(encoded(f, binary.BigEndian, dbus.TypeMethodReply, strings.Repeat("x", 400)))
	f.Add(encoded(f, binary.LittleEndian, dbus.TypeMethodCall, strings.Repeat("x", 400)))
	f.Add(encoded(f, binary.LittleEndian, dbus.TypeSignal, strings.Repeat("x", 400)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &frames{
			in: bufio.NewReader(bytes.NewReader(b)), limit: 256, heed: func(string) bool { return true }, signal: func(*dbus.Signal) {}, unread: func(*message, error) {},
			call: func(m *message, whole []byte) { _, _ = (&Call{whole: whole}).Args() },
		}
		buf := make([]byte, 1024)
		for {
			if _, err := r.Read(buf); err != nil {
				return
			}
			if len(r.buffer) > smallMessage {
				t.Fatalf("a buffer of %d", len(r.buffer))
			}
		}
	})
}
