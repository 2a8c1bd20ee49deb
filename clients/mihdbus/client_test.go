package mihdbus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/clients"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/clock"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// "Every duration is counted from the message's arrival, less the time it was held."
func TestTimesCountFromArrival(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	feed, call := follow(t, f, dial(t, b, mihdbus.Options{}))
	f.deliver(call, snapshot(1))
	next(t, feed, 1)
	p := mark(1, 2)
	p.Held = durationpb.New(2 * time.Second)
	before := clock.Clock{}.Now()
	f.deliver(call, p)
	d := next(t, feed, 2)
	after := clock.Clock{}.Now()
	if at := d.Event.At.Add(3 * time.Second); at.Before(before) || after.Before(at) {
		t.Errorf("an event of 1 s, held for 2 s, is of %v; it came between %v and %v", d.Event.At, before, after)
	}
}

// "Only what the owner of the broker's name sends is heeded."
func TestForgedSignals(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	c := dial(t, b, mihdbus.Options{})
	feed, call := follow(t, f, c)
	f.deliver(call, snapshot(1))
	next(t, feed, 1)
	forger, err := busconn.Open(t.Context(), b.Address, busconn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer forger.Close()
	forged := fake{T: t, Conn: forger}
	forged.deliver(call, mark(1, 66))
	forged.say(call.Sender, "StreamEnded", f.args(call)[0], dbusapi.ErrorAccessDenied, "forged")
	if err := forger.Emit(call.Sender, "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", dbusapi.Name, f.Name(), forger.Name()); err != nil {
		t.Fatal(err)
	}
	if _, err := forger.Bus(t.Context(), "GetId"); err != nil { // the bus has passed them on
		t.Fatal(err)
	}
	f.deliver(call, mark(1, 2))
	next(t, feed, 2)
}

// "A message that cannot be read is counted and skipped"; of a kind that is not known it is
// passed over as if it were not there.
func TestWhatIsNotKnown(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	c := dial(t, b, mihdbus.Options{})
	feed, call := follow(t, f, c)
	f.deliver(call, snapshot(1))
	next(t, feed, 1)
	v := dbus.MakeVariant
	newer := variant.Encode(mark(1, 2))
	event := newer["event"].Value().(variant.Dict)
	delete(event, "resumed_from_suspend")
	event["link_sideways"] = v(variant.Dict{"degrees": v(90)})
	f.say(call.Sender, "Delivery", f.args(call)[0], newer)
	f.deliver(call, mark(2, 3))
	if d := next(t, feed, 3); d.Previous != 1 {
		t.Errorf("follows %d, want 1", d.Previous)
	}
	f.say(call.Sender, "Delivery", f.args(call)[0], variant.Dict{"previous": v("three")})
	f.deliver(call, mark(4, 5)) // 4 could not be read: what follows shows that it is missing
	again := make(chan *busconn.Call, 1)
	go func() {
		f.take("CloseStream")
		again <- f.take("Subscribe")
	}()
	go func() {
		call := <-again
		_ = f.Reply(call)
		f.deliver(call, snapshot(6))
	}()
	buf := make([]mihf.Delivery, 1)
	if _, err := feed.Next(buf); err != nil || buf[0].Kind != mihf.DeliverGap {
		t.Errorf("%+v, %v; want a gap", buf[0], err)
	}
	next(t, feed, 6)
	if n := c.Skipped(); n != 2 {
		t.Errorf("%d skipped, want 2", n)
	}
}

// "A subscription whose reader is further behind ends with mihf.ErrSlow, behind what it
// had", and comes back where it was.
func TestReaderThatIsBehind(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	c := dial(t, b, mihdbus.Options{Queue: 4})
	feed, call := follow(t, f, c)
	f.deliver(call, snapshot(1))
	for n := uint64(2); n < 10; n++ {
		f.deliver(call, mark(n-1, n))
	}
	if _, err := f.Call(t.Context(), call.Sender, "/", "org.freedesktop.DBus.Peer.Ping"); err == nil { // behind them; clients have no objects
		t.Fatal("a client answers calls")
	}
	for n := uint64(1); n <= 4; n++ {
		next(t, feed, n)
	}
	go func() {
		f.take("CloseStream")
		again := f.take("Subscribe")
		_ = f.Reply(again)
		if after := f.args(again)[1].(variant.Dict)["after_sequence"].Value(); after != uint64(4) {
			t.Errorf("resumes behind %v, want 4", after)
		}
		f.deliver(again, mark(4, 5))
	}()
	next(t, feed, 5)
}

// open returns a client that follows, and has been given a snapshot, and is attached.
func open(t *testing.T) (*daemons.MessageBus, *fake, *mihdbus.Client, mihf.Feed, mihf.Attachment) {
	t.Helper()
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	c := dial(t, b, mihdbus.Options{})
	feed, call := follow(t, f, c)
	at, err := c.Attach(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Close)
	f.deliver(call, snapshot(1))
	next(t, feed, 1)
	return b, f, c, feed, at
}

// "The loss of the broker ends what is open"; a subscription comes back to the next one.
func TestBrokerLeaves(t *testing.T) {
	b, f, c, feed, at := open(t)
	f.stop()
	if _, err := at.Next(make([]mihf.Delivery, 1)); !errors.Is(err, mihf.ErrClosed) || errors.Is(err, clients.ErrClientClosed) {
		t.Errorf("the attachment: %v", err)
	}
	<-at.Done()
	if _, err := c.Snapshot(within(t)); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("a bus without a broker: %v", err)
	}
	f = serve(t, b, nil)
	go func() {
		again := f.take("Subscribe")
		_ = f.Reply(again)
		f.deliver(again, mark(1, 2))
	}()
	next(t, feed, 2)
}

// "The loss of the bus ends what is open", and a subscription comes back.
func TestBusIsLost(t *testing.T) {
	b, f, _, feed, at := open(t)
	b.Kill()
	<-at.Done()
	if err := at.Err(); !errors.Is(err, mihf.ErrClosed) {
		t.Error(err)
	}
	if err := at.Update(mihf.FlowUpdate{Flow: flow}); !errors.Is(err, mihf.ErrClosed) {
		t.Error(err)
	}
	b.Restart()
	f = serve(t, b, nil)
	go func() {
		again := f.take("Subscribe")
		_ = f.Reply(again)
		f.deliver(again, mark(1, 2))
	}()
	next(t, feed, 2)
}

// What is not there, or does not answer, is mihf.ErrClosed, and says what was tried.
func TestNoAnswer(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	c := dial(t, b, mihdbus.Options{})
	if _, err := c.Status(within(t)); !errors.Is(err, mihf.ErrClosed) || !strings.Contains(err.Error(), "no broker") {
		t.Errorf("no broker: %v", err)
	}
	f := serve(t, b, nil)
	if _, err := c.Status(within(t)); !errors.Is(err, mihf.ErrClosed) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
	f.take("Status")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	away, err := mihdbus.Dial("unix:path=/nonexistent/bus", mihdbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = away.Close() }()
	for what, err := range map[string]error{
		"Snapshot": second(away.Snapshot(within(t))), "Attach": second(away.Attach(within(t))), "Follow": second(away.Follow(within(t), mihf.SubscribeRequest{})),
		"Record": second(away.Record(within(t), nil)),
	} {
		if !errors.Is(err, mihf.ErrClosed) || !strings.Contains(err.Error(), "/nonexistent/bus") {
			t.Errorf("%s without a bus: %v", what, err)
		}
	}
	if _, err := mihdbus.Dial("tcp:host=x", mihdbus.Options{}); err == nil {
		t.Error("an address of another kind was taken")
	}
}

func second[T any](_ T, err error) error { return err }

// Close ends what is open, and everything asked afterwards, with clients.ErrClientClosed.
func TestClose(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	c := dial(t, b, mihdbus.Options{})
	feed, call := follow(t, f, c)
	f.deliver(call, snapshot(1))
	next(t, feed, 1)
	at, err := c.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	for _, feed := range []mihf.Feed{feed, at} {
		go func() { ended <- second(feed.Next(make([]mihf.Delivery, 1))) }()
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, clients.ErrClientClosed) {
			t.Errorf("a feed: %v", err)
		}
	}
	for what, err := range map[string]error{
		"Snapshot": second(c.Snapshot(t.Context())), "Attach": second(c.Attach(t.Context())), "Follow": second(c.Follow(t.Context(), mihf.SubscribeRequest{})),
	} {
		if !errors.Is(err, clients.ErrClientClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// "" is the system bus and, where there is no broker on it, the session bus.
func TestDefaultAddress(t *testing.T) {
	system, session := daemons.Bus(t, daemons.BusConfig{}), daemons.Bus(t, daemons.BusConfig{})
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", system.Address)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", session.Address)
	status := func(version string) map[string]func(*busconn.Call) []any {
		return map[string]func(*busconn.Call) []any{"Status": func(*busconn.Call) []any {
			return []any{variant.Encode(&mihv1.StatusResponse{Version: version, BootId: "0000b007"})}
		}}
	}
	serve(t, session, status("session"))
	for _, want := range []string{"session", "system"} {
		if want == "system" {
			serve(t, system, status("system"))
		}
		c, err := mihdbus.Dial("", mihdbus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if st, err := c.Status(within(t)); err != nil || st.Version != want {
			t.Errorf("%+v, %v; want the %s bus's", st, err, want)
		}
		_ = c.Close()
	}
}

// A recording ends with the count of what was missed, also at its own end.
func TestRecord(t *testing.T) {
	b := daemons.Bus(t, daemons.BusConfig{})
	f := serve(t, b, nil)
	c := dial(t, b, mihdbus.Options{})
	observation := func(sensor string) variant.Dict {
		return variant.Encode(&mihv1.RecordResponse{Item: &mihv1.RecordResponse_Observation{Observation: &mihv1.Observation{
			Age: durationpb.New(1), Sensor: sensor, Kind: &mihv1.Observation_Scan{Scan: &mihv1.Scan{Scanning: true}},
		}}})
	}
	go func() {
		call := f.take("Record")
		_ = f.Reply(call)
		f.say(call.Sender, "Delivery", f.args(call)[0], observation("a"))
		f.say(call.Sender, "Delivery", f.args(call)[0], variant.Dict{"observation": dbus.MakeVariant("x")}) // cannot be read
		f.say(call.Sender, "Delivery", f.args(call)[0], observation("b"))
		f.take("CloseStream")
		f.say(call.Sender, "Delivery", f.args(call)[0], observation("on its way"))
		f.say(call.Sender, "Delivery", f.args(call)[0], variant.Encode(&mihv1.RecordResponse{Item: &mihv1.RecordResponse_Lost{Lost: 7}}))
		f.say(call.Sender, "StreamEnded", f.args(call)[0], "", "")
	}()
	var got []string
	enough := errors.New("enough")
	lost, err := c.Record(within(t), func(o *mihf.Observation) error {
		if got = append(got, o.Sensor); len(got) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || lost != 8 || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v, %d lost, %v", got, lost, err)
	}
	go func() {
		call := f.take("Record")
		_ = f.Reply(call)
		f.say(call.Sender, "StreamEnded", f.args(call)[0], dbusapi.ErrorAccessDenied, "you lack the role administer")
	}()
	if _, err := c.Record(within(t), nil); !errors.Is(err, mihf.ErrPermission) || !strings.Contains(err.Error(), "administer") {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		call := f.take("Record")
		_ = f.Reply(call)
		f.say(call.Sender, "Delivery", f.args(call)[0], observation("a"))
		f.take("CloseStream") // and says nothing
	}()
	if lost, err := c.Record(ctx, func(*mihf.Observation) error { cancel(); return nil }); err != nil || lost != 0 {
		t.Errorf("without a last word: %d, %v", lost, err)
	}
}
