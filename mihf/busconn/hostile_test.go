package busconn_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/integration/daemons"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
)

// raw writes messages to a bus octet by octet.
type raw struct {
	testing.TB
	conn   net.Conn
	in     *bufio.Reader
	serial uint32
}

func dialRaw(t testing.TB, b *daemons.MessageBus) *raw {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "unix", strings.TrimPrefix(b.Address, "unix:path="))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	r := &raw{TB: t, conn: c, in: bufio.NewReader(c)}
	r.write([]byte("\x00AUTH EXTERNAL " + hex.EncodeToString([]byte(strconv.Itoa(os.Geteuid()))) + "\r\n"))
	if line, err := r.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "OK ") {
		t.Fatalf("authentication: %q, %v", line, err)
	}
	r.write([]byte("BEGIN\r\n"))
	r.send(dbus.TypeMethodCall, header{1: text('o', "/org/freedesktop/DBus"), 2: text('s', "org.freedesktop.DBus"), 3: text('s', "Hello"), 6: text('s', "org.freedesktop.DBus")}, nil)
	r.next(dbus.TypeMethodReply)
	return r
}

// next returns the next message of a type.
func (r *raw) next(typ dbus.Type) *dbus.Message {
	r.Helper()
	for {
		m, err := dbus.DecodeMessage(r.in)
		if err != nil {
			r.Fatal(err)
		}
		if m.Type == typ {
			return m
		}
	}
}

func (r *raw) write(b []byte) {
	r.Helper()
	if _, err := r.conn.Write(b); err != nil {
		r.Fatal(err)
	}
}

// header are the fields of a header, each the octets of its variant.
type header map[byte][]byte

// text is the value of a field.
func text(typ byte, s string) []byte {
	b := []byte{1, typ, 0}
	if typ == 'g' {
		return append(append(append(b, byte(len(s))), s...), 0)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(append(b, s...), 0)
}

func (r *raw) send(typ dbus.Type, h header, body []byte) {
	r.Helper()
	r.serial++
	var f []byte
	for _, k := range slices.Sorted(maps.Keys(h)) {
		f = append(f, make([]byte, -len(f)&7)...)
		f = append(append(f, k), h[k]...)
	}
	b := []byte{'l', byte(typ), 0, 1}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, r.serial)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f)))
	b = append(b, f...)
	b = append(b, make([]byte, -len(b)&7)...)
	r.write(append(b, body...))
}

// nested is a value in n variants, of a type that is aligned to 1 or 4.
func nested(n int, sig string, value []byte) []byte {
	var b []byte
	for range n - 1 {
		b = append(b, 1, 'v', 0)
	}
	b = append(append(append(b, byte(len(sig))), sig...), 0)
	b = append(b, make([]byte, -len(b)&3)...)
	return append(b, value...)
}

// A message that the bus passes on and godbus cannot decode, or that has more header than
// anybody needs, ends nothing: any connection can send one to any other.
func TestUnreadable(t *testing.T) {
	deep := strings.Repeat("aa(", 17) + "i" + strings.Repeat(")", 17) // libdbus counts arrays anew in each structure
	dict := nested(63, "a{sv}", make([]byte, 4))
	dict = append(dict, make([]byte, -len(dict)&7)...)
	b := daemons.Bus(t, daemons.BusConfig{})
	unread := make(chan error, 100)
	c := servedWith(t, b, busconn.Options{Signal: func(*dbus.Signal) {}, Unread: func(why error) { unread <- why }}, func(c *busconn.Conn, call *busconn.Call) {
		if _, err := call.Args(); err != nil {
			unread <- err
			_ = c.Refuse(call, dbusapi.ErrorInvalidArgs, err.Error())
			return
		}
		_ = c.Reply(call)
	})
	for _, m := range []struct {
		what   string
		h      header
		body   []byte
		answer bool // a call is refused
	}{
		{"an array in 64 variants", header{8: text('g', "v")}, nested(64, "ay", []byte{1, 0, 0, 0, 7}), true},
		{"an empty array in 64 variants", header{8: text('g', "v")}, nested(64, "ai", make([]byte, 4)), true},
		{"an empty dictionary in 63 variants", header{8: text('g', "v")}, dict, true},
		{"34 arrays in 17 structures", header{8: text('g', deep)}, make([]byte, 4), true},
		{"that as a value", header{8: text('g', "g")}, append(append([]byte{byte(len(deep))}, deep...), 0), true},
		{"signatures as keys", header{8: text('g', "a{gg}")}, []byte{6, 0, 0, 0, 0, 0, 0, 0, 1, 'i', 0, 1, 'i', 0}, true},
		{"a path of 100 KiB", header{1: text('o', "/"+strings.Repeat("a", 100<<10))}, nil, false},
	} {
		r := dialRaw(t, b)
		for _, typ := range []dbus.Type{dbus.TypeSignal, dbus.TypeMethodCall} {
			h := header{1: text('o', "/x"), 2: text('s', "a.b"), 3: text('s', "C"), 6: text('s', c.Name())}
			maps.Copy(h, m.h)
			r.send(typ, h, m.body)
			select {
			case <-unread:
			case <-c.Done():
				t.Fatalf("%s, %v: the connection was lost", m.what, typ)
			case <-time.After(patient):
				t.Fatalf("%s, %v: was not told", m.what, typ)
			}
		}
		if !m.answer {
			continue
		}
		if got := r.next(dbus.TypeError).Headers[dbus.FieldErrorName].Value(); got != dbusapi.ErrorInvalidArgs {
			t.Errorf("%s: refused with %v", m.what, got)
		}
	}
	peer := open(t, b, busconn.Options{})
	if _, err := peer.Call(t.Context(), c.Name(), "/x", "a.b.C"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// "signals only from whom they are wanted" are decoded.
func TestHeed(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	heard := make(chan string, 100)
	wanted := dialRaw(t, b)
	c := servedWith(t, b, busconn.Options{
		Heed:   func(sender string) bool { return sender == ":1.0" },
		Signal: func(s *dbus.Signal) { heard <- s.Sender + " " + s.Name },
		Unread: func(why error) { heard <- why.Error() },
	}, func(c *busconn.Conn, call *busconn.Call) { _ = c.Reply(call) })
	say := func(r *raw, typ dbus.Type, h header, body []byte) {
		all := header{1: text('o', "/x"), 2: text('s', "a.b"), 3: text('s', "C"), 6: text('s', c.Name())}
		maps.Copy(all, h)
		r.send(typ, all, body)
	}
	other := dialRaw(t, b)
	say(other, dbus.TypeSignal, nil, nil)
	say(other, dbus.TypeSignal, header{8: text('g', "v")}, nested(64, "ay", []byte{1, 0, 0, 0, 7})) // cannot be decoded
	say(other, dbus.TypeMethodCall, nil, nil)
	other.next(dbus.TypeMethodReply) // all before it was passed over
	say(wanted, dbus.TypeSignal, nil, nil)
	if got := <-heard; got != ":1.0 a.b.C" {
		t.Error(got)
	}
}
