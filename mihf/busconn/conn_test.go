package busconn_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patient = 20 * time.Second // only a failure takes so long

func open(t *testing.T, b *daemons.MessageBus, o busconn.Options) *busconn.Conn {
	t.Helper()
	c, err := busconn.Open(t.Context(), b.Address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func args(t testing.TB, call *busconn.Call) []any {
	t.Helper()
	a, err := call.Args()
	if err != nil {
		t.Error(err)
	}
	return a
}

// served is a connection whose calls are answered in order, by one goroutine.
func served(t *testing.T, b *daemons.MessageBus, answer func(c *busconn.Conn, call *busconn.Call)) *busconn.Conn {
	t.Helper()
	return servedWith(t, b, busconn.Options{}, answer)
}

func servedWith(t *testing.T, b *daemons.MessageBus, o busconn.Options, answer func(c *busconn.Conn, call *busconn.Call)) *busconn.Conn {
	t.Helper()
	calls := make(chan *busconn.Call, 4096)
	o.Call = func(call *busconn.Call) { calls <- call }
	c := open(t, b, o)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			select {
			case call := <-calls:
				answer(c, call)
			case <-c.Done():
				return
			}
		}
	})
	t.Cleanup(func() { c.Close(); serving.Wait() })
	return c
}

// "Method calls and signals are handed over one after another, in the order in which they
// came": 5000 of each, and each call once.
func TestOrder(t *testing.T) {
	const many = 5000
	b := daemons.Bus(t, daemons.BusConfig{})
	next := make(chan int, 2*many)
	c := open(t, b, busconn.Options{
		Call: func(call *busconn.Call) { next <- int(args(t, call)[0].(int32)) },
		Signal: func(s *dbus.Signal) {
			if s.Name == "a.b.C" {
				next <- int(s.Body[0].(int32))
			}
		},
	})
	peer := daemons.DialBus(t, b)
	for i := range many {
		peer.Object(c.Name(), "/x").Go("a.b.C", dbus.FlagNoReplyExpected, nil, int32(2*i))
		msg := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: dbus.MakeVariant(c.Name()), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/x")),
			dbus.FieldInterface: dbus.MakeVariant("a.b"), dbus.FieldMember: dbus.MakeVariant("C"), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(int32(0))),
		}, Body: []any{int32(2*i + 1)}}
		peer.Send(msg, nil)
	}
	for i := range 2 * many {
		select {
		case n := <-next:
			if n != i {
				t.Fatalf("message %d came in the place of %d", n, i)
			}
		case <-time.After(patient):
			t.Fatalf("message %d did not come", i)
		}
	}
	if _, err := c.Bus(t.Context(), "GetId"); err != nil { // everything before it was handed over
		t.Fatal(err)
	}
	if len(next) != 0 {
		t.Errorf("%d messages came twice", len(next))
	}
}

func TestCallsAndErrors(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := served(t, b, func(c *busconn.Conn, call *busconn.Call) {
		if call.Member == "Refuse" {
			_ = c.Refuse(call, dbusapi.ErrorExists, "taken")
			return
		}
		_ = c.Reply(call, call.Signature, fmt.Sprint(call.Path, call.Interface, args(t, call)))
	})
	peer := open(t, b, busconn.Options{})
	got, err := peer.Call(t.Context(), c.Name(), "/x", "a.b.Echo", int32(3), "y")
	if err != nil || got[0] != "is" || got[1] != "/xa.b[3 y]" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = peer.Call(t.Context(), c.Name(), "/x", "a.b.Refuse")
	if err = dbusapi.FromReply(err); !errors.Is(err, mihf.ErrExists) || err.Error() != "taken" {
		t.Error(err)
	}
	_, err = c.Call(t.Context(), peer.Name(), "/x", "a.b.C")
	if err = dbusapi.FromReply(err); !errors.Is(err, mihf.ErrNotFound) {
		t.Errorf("a connection without objects: %v", err)
	}
}

// "A message above MaxMessage is not read into memory: a call is refused by name".
func TestOversized(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	unread := make(chan error, 10)
	c := servedWith(t, b, busconn.Options{Unread: func(why error) { unread <- why }}, func(c *busconn.Conn, call *busconn.Call) { _ = c.Reply(call, "small") })
	peer := open(t, b, busconn.Options{})
	large := strings.Repeat("x", 1<<20)
	_, err := peer.Call(t.Context(), c.Name(), "/x", "a.b.Echo", large)
	if err = dbusapi.FromReply(err); !errors.Is(err, mihf.ErrLimit) {
		t.Errorf("a large call: %v", err)
	}
	if err := peer.Room(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := peer.Emit(c.Name(), "/x", "a.b", "C", large); err != nil { // passed over
		t.Fatal(err)
	}
	if got, err := peer.Call(t.Context(), c.Name(), "/x", "a.b.Echo"); err != nil || got[0] != "small" {
		t.Errorf("afterwards: %v, %v", got, err)
	}
	if len(unread) != 2 || !errors.Is(<-unread, busconn.ErrTooLarge) {
		t.Errorf("%d more were told of, want 2 as too large", len(unread))
	}
	// An answer.
	talker := served(t, b, func(c *busconn.Conn, call *busconn.Call) { _ = c.Reply(call, large) })
	_, err = peer.Call(t.Context(), talker.Name(), "/x", "a.b.Echo")
	if err = dbusapi.FromReply(err); !errors.Is(err, mihf.ErrLimit) {
		t.Errorf("a large answer: %v", err)
	}
}

// "Nothing waits for a bus that stands still but who asks for it"; what was kept goes out
// when the bus goes on, and nothing is lost of what was taken.
func TestBusThatStandsStill(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := open(t, b, busconn.Options{})
	peer := daemons.DialBus(t, b, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	heard := make(chan *dbus.Signal, 1<<16)
	peer.Signal(heard)
	b.Stop()
	taken, text := 0, strings.Repeat("x", 1000)
	for {
		err := c.Emit(":"+strings.TrimPrefix(peer.Names()[0], ":"), "/x", "a.b", "C", int32(taken), text)
		if errors.Is(err, busconn.ErrBusy) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if taken++; taken > 1<<15 {
			t.Fatal("never busy")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Room(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("room: %v", err)
	}
	if _, err := c.Bus(t.Context(), "GetId"); err == nil {
		t.Error("a call was answered by a bus that stands still")
	}
	b.Cont()
	if err := c.Room(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < taken; {
		select {
		case s := <-heard:
			if s.Name != "a.b.C" {
				continue
			}
			if got := int(s.Body[0].(int32)); got != i {
				t.Fatalf("signal %d in the place of %d", got, i)
			}
			i++
		case <-time.After(patient):
			t.Fatalf("signal %d of %d did not come", i, taken)
		}
	}
}

// SendBuffer: what is sent to a bus that does not read fills the kernel's room after a few
// messages, so that there is no more in Room.
func TestSendBuffer(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := open(t, b, busconn.Options{SendBuffer: 8 << 10})
	b.Stop()
	defer b.Cont()
	sent, text := 0, strings.Repeat("x", 300)
	full := func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return c.Room(ctx) != nil
	}
	for ; !full(); sent++ {
		if err := c.Emit("", "/x", "a.b", "C", text); err != nil {
			t.Fatal(err)
		}
	}
	if sent < 2 || sent > 16 {
		t.Errorf("%d messages of %d octets were taken", sent, len(text))
	}
}

// "A call ends after CallTimeout at the latest, and with its context", and Close waits for
// nobody.
func TestCloseWhileTheBusStandsStill(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := open(t, b, busconn.Options{})
	b.Stop()
	defer b.Cont()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Bus(ctx, "GetId"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call with a context: %v", err)
	}
	if _, err := c.Bus(t.Context(), "GetId"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call: %v", err)
	}
	text, taken := strings.Repeat("x", 8000), 0
	for c.Emit("", "/x", "a.b", "C", text) == nil {
		taken++
	}
	t.Logf("%d signals were kept", taken)
	c.Close()
	<-c.Done()
	if err := c.Emit("", "/x", "a.b", "C"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	opening, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := busconn.Open(opening, b.Address, busconn.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("opening: %v", err)
	}
}

// "That the bus is lost shows in Done".
func TestBusIsLost(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := open(t, b, busconn.Options{})
	b.Kill()
	select {
	case <-c.Done():
	case <-time.After(patient):
		t.Fatal("not seen")
	}
	if _, err := c.Bus(t.Context(), "GetId"); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := c.Room(t.Context()); err == nil {
		t.Error("there is room on a bus that is lost")
	}
	if _, err := busconn.Open(t.Context(), b.Address, busconn.Options{}); err == nil {
		t.Error("connected to no bus")
	}
	b.Restart()
	if open(t, b, busconn.Options{}).Name() == "" {
		t.Error("no name on the bus that came back")
	}
}

// "No file descriptor is taken from anybody".
func TestNoDescriptors(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := open(t, b, busconn.Options{Call: func(call *busconn.Call) { t.Errorf("a call with a descriptor came: %+v", call) }})
	peer := daemons.DialBus(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	err := peer.Object(c.Name(), "/x").CallWithContext(ctx, "a.b.C", 0, dbus.UnixFD(0)).Err
	if err == nil || ctx.Err() != nil {
		t.Errorf("%v, want a refusal of the bus", err)
	}
}
