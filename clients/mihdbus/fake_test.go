package mihdbus_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patient = 20 * time.Second // only a failure takes so long
	flow    = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
)

// fake owns the broker's name and answers as the test wants.
type fake struct {
	*testing.T
	*busconn.Conn
	calls chan *busconn.Call // that the test answers by itself
	auto  map[string]func(*busconn.Call) []any
	stop  func()
}

// serve makes a fake broker on a bus. Calls of methods that are not in auto go to the test.
// args are a call's.
func (f *fake) args(call *busconn.Call) []any {
	f.Helper()
	args, err := call.Args()
	if err != nil {
		f.Fatal(err)
	}
	return args
}

func serve(t *testing.T, b *daemons.MessageBus, auto map[string]func(*busconn.Call) []any) *fake {
	t.Helper()
	f := &fake{T: t, calls: make(chan *busconn.Call, 100), auto: auto}
	incoming := make(chan *busconn.Call, 100)
	var err error
	if f.Conn, err = busconn.Open(t.Context(), b.Address, busconn.Options{Call: func(c *busconn.Call) { incoming <- c }}); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			select {
			case c := <-incoming:
				if answer := f.auto[c.Member]; answer != nil {
					_ = f.Reply(c, answer(c)...)
				} else {
					f.calls <- c
				}
			case <-f.Done():
				return
			}
		}
	})
	f.stop = func() { f.Close(); serving.Wait() }
	t.Cleanup(f.stop)
	if _, err := f.Bus(t.Context(), "RequestName", dbusapi.Name, uint32(dbus.NameFlagDoNotQueue)); err != nil {
		t.Fatal(err)
	}
	return f
}

// take returns the next call for the test, which must be of the method.
func (f *fake) take(method string) *busconn.Call {
	f.Helper()
	select {
	case c := <-f.calls:
		if c.Member != method {
			f.Fatalf("%s was called, want %s", c.Member, method)
		}
		return c
	case <-time.After(patient):
		f.Fatalf("%s was not called", method)
		return nil
	}
}

// deliver sends one delivery of a stream.
func (f *fake) deliver(to *busconn.Call, p *mihv1.SubscribeResponse) {
	f.Helper()
	f.say(to.Sender, "Delivery", f.args(to)[0], variant.Encode(p))
}

func (f *fake) say(to, member string, args ...any) {
	f.Helper()
	if err := f.Emit(to, dbusapi.Root, dbusapi.BrokerInterface, member, args...); err != nil {
		f.Fatal(err)
	}
}

// snapshot and mark are deliveries.
func snapshot(sequence uint64) *mihv1.SubscribeResponse {
	return &mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Snapshot{Snapshot: &mihv1.Snapshot{Sequence: sequence, BootId: "0000b007"}}}
}

func mark(previous, sequence uint64) *mihv1.SubscribeResponse {
	return &mihv1.SubscribeResponse{Previous: previous, Item: &mihv1.SubscribeResponse_Event{Event: &mihv1.Event{
		Sequence: sequence, BootId: "0000b007", Age: durationpb.New(time.Second),
		Kind: &mihv1.Event_ResumedFromSuspend{ResumedFromSuspend: &mihv1.ResumedFromSuspend{Suspended: durationpb.New(time.Duration(sequence))}},
	}}}
}

func dial(t *testing.T, b *daemons.MessageBus, o mihdbus.Options) *mihdbus.Client {
	t.Helper()
	c, err := mihdbus.Dial(b.Address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// follow subscribes while the test plays the broker.
func follow(t *testing.T, f *fake, c *mihdbus.Client) (mihf.Feed, *busconn.Call) {
	t.Helper()
	type result struct {
		feed mihf.Feed
		err  error
	}
	got := make(chan result, 1)
	go func() {
		feed, err := c.Follow(t.Context(), mihf.SubscribeRequest{})
		got <- result{feed, err}
	}()
	call := f.take("Subscribe")
	if err := f.Reply(call); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(r.feed.Close)
	return r.feed, call
}

// next reads one delivery, which must have the sequence.
func next(t *testing.T, feed mihf.Feed, sequence uint64) *mihf.Delivery {
	t.Helper()
	buf := make([]mihf.Delivery, 1)
	if _, err := feed.Next(buf); err != nil {
		t.Fatalf("in the place of %d: %v", sequence, err)
	}
	if buf[0].Sequence() != sequence {
		t.Fatalf("%+v in the place of %d", buf[0], sequence)
	}
	return &buf[0]
}

// within returns a context that ends when only a failure is left.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	return ctx
}
