package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/godbus/dbus/v5"

	"mihf.dev/clients"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/cmd/mihctl/internal/privatebus"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front/dbusfront"
	"mihf.dev/proto/dbusapi"
	"mihf.dev/proto/variant"
)

// overDBus is a client on a private bus, and a bare signal with the same body on it.
func overDBus(ctx context.Context, dir string) (*scene, error) {
	bus, err := privatebus.Start(ctx, dir)
	if err != nil {
		return nil, err
	}
	body := []any{uint64(9_998), int64(20_000), variant.Encode(lateFreeze())}
	bare, err := newBareDBus(bus.Address, body)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bare signal: %w", err), bus.Close())
	}
	size, err := dbusSize(body)
	if err != nil {
		return nil, errors.Join(err, bare.close(), bus.Close())
	}
	join := func(ctx context.Context, b *started, tasks *sync.WaitGroup) (clients.Client, error) {
		if err := serveDBus(ctx, b, bus.Address, tasks); err != nil {
			return nil, err
		}
		return mihdbus.Dial(bus.Address, mihdbus.Options{})
	}
	return &scene{bytes: size, bare: bare, join: join, end: bus.Close}, nil
}

// bareSignal is the name of the signal.
var bareSignal = dbusapi.FlowInterface + "." + dbusapi.HintSignal(mihf.HintFreeze)

func freezePath() dbus.ObjectPath { return dbusapi.FlowPath(mihf.FlowID(lateFreeze().GetFlow())) }

// dbusSize returns the octets of the signal as it is sent.
func dbusSize(body []any) (int, error) {
	m := dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(freezePath()), dbus.FieldInterface: dbus.MakeVariant(dbusapi.FlowInterface),
		dbus.FieldMember: dbus.MakeVariant("Freeze"), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}}
	var b bytes.Buffer
	err := m.EncodeTo(&b, binary.LittleEndian)
	return b.Len(), err
}

// serveDBus serves a broker on a bus until ctx ends.
func serveDBus(ctx context.Context, b *started, address string, tasks *sync.WaitGroup) error {
	s, err := dbusfront.New(dbusfront.Options{Broker: b, Self: inproc, Address: func() (string, error) { return address, nil }})
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	tasks.Go(func() { failed <- s.Run(ctx) })
	select {
	case <-s.Ready():
	case err := <-failed:
		return fmt.Errorf("the front ended before it was ready: %w", err)
	}
	if c := s.Condition(); c.Condition != mihf.ConditionOK {
		return fmt.Errorf("the front is not on the bus: %v, %s", c.Condition, c.Text)
	}
	return nil
}

// hostDBus is the front on a private bus, a process of its own.
var hostDBus = host{
	serve: func(ctx context.Context, b *started, dir string, tasks *sync.WaitGroup) (string, error) {
		bus, err := privatebus.Start(ctx, dir)
		if err != nil {
			return "", err
		}
		context.AfterFunc(ctx, func() { _ = bus.Close() })
		return bus.Address, serveDBus(ctx, b, bus.Address, tasks)
	},
	dial: func(where string) (clients.Client, error) { return mihdbus.Dial(where, mihdbus.Options{}) },
}

// bareDBus is a connection that emits a signal, and one that takes it in order.
type bareDBus struct {
	*arrivals
	pub, sub *dbus.Conn
	body     []any
	tasks    sync.WaitGroup
}

func newBareDBus(address string, body []any) (*bareDBus, error) {
	x := &bareDBus{arrivals: newArrivals(), body: body}
	if err := x.connect(address); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *bareDBus) connect(address string) (err error) {
	if x.pub, err = dbus.Connect(address); err != nil {
		return fmt.Errorf("emitter: %w", err)
	}
	if x.sub, err = dbus.Connect(address, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler())); err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	if err = x.sub.AddMatchSignal(dbus.WithMatchSender(x.pub.Names()[0])); err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	came := make(chan *dbus.Signal, 64)
	x.sub.Signal(came)
	x.tasks.Go(func() {
		for s := range came { // closed with the connection
			if s.Name == bareSignal {
				x.add()
			}
		}
	})
	return nil
}

func (x *bareDBus) send() error { return x.pub.Emit(freezePath(), bareSignal, x.body...) }

func (x *bareDBus) between() {}

func (x *bareDBus) close() error {
	for _, c := range []*dbus.Conn{x.sub, x.pub} {
		if c != nil {
			_ = c.Close() // the bus may be gone
		}
	}
	x.tasks.Wait()
	return nil
}
