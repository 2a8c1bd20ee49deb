package busconn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
)

// CallTimeout is how long an answer is waited for.
const CallTimeout = 2 * time.Second

// MaxSend is the largest message that is sent, in octets. A bus ends the connection of who
// sends more than it takes: 32 MiB on a system bus.
const MaxSend = 16 << 20

// ErrTooLarge refuses a message above [MaxSend], or above [Options.MaxMessage].
var ErrTooLarge = errors.New("the message is too large")

// busName and busPath are the bus's own.
const (
	busName = "org.freedesktop.DBus"
	busPath = dbus.ObjectPath("/org/freedesktop/DBus")
)

// Options say what to do with what comes. The functions are called by one goroutine, in the
// order in which messages came, and must not wait.
type Options struct {
	Call   func(*Call)        // method calls of others; nil: they are refused
	Signal func(*dbus.Signal) // nil: nobody wants them
	// Heed tells whose signals are wanted; nil: everybody's. The others are not decoded.
	Heed func(sender string) bool
	// Unread is told why a message was not read: [ErrTooLarge], or it makes no sense. nil:
	// nobody wants to know.
	Unread func(why error)
	// MaxMessage is the largest message that is read, in octets. 0: 64 KiB.
	MaxMessage int
	// SendBuffer is how much the kernel keeps for a bus that is slow to read, in octets with
	// the kernel's own of each message: what is sent next waits for no more. 0: the kernel's
	// default.
	SendBuffer int
	// Dial makes a connection to a unix socket; nil: package net's. Tests connect as others.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Call is a method call of another connection.
type Call struct {
	Sender    string // its unique name
	Path      dbus.ObjectPath
	Interface string // "": any
	Member    string
	Signature string
	NoReply   bool // it wants no answer

	serial uint32
	whole  []byte // of which [Call.Args] are decoded
}

// Conn is a connection to a bus. See the package comment.
type Conn struct {
	bus    *dbus.Conn
	wire   *wire
	name   string
	serial atomic.Uint32
	done   chan struct{}
	once   sync.Once
	tasks  sync.WaitGroup
}

// transport is what godbus reads from and writes to.
type transport struct {
	io.Reader
	*wire
}

// Close is called by godbus when it gives up.
func (t transport) Close() error {
	t.end(net.ErrClosed)
	return nil
}

// Open connects to the bus at an address and says hello, within ctx.
func Open(ctx context.Context, address string, o Options) (*Conn, error) {
	if o.MaxMessage <= 0 {
		o.MaxMessage = 64 << 10
	}
	socket, err := dial(ctx, address, o.Dial)
	if err != nil {
		return nil, err
	}
	if s, ok := socket.(*net.UnixConn); ok && o.SendBuffer > 0 {
		if err := s.SetWriteBuffer(o.SendBuffer / 2); err != nil { // the kernel doubles it
			return nil, errors.Join(fmt.Errorf("bus at %s: %w", address, err), socket.Close())
		}
	}
	c := &Conn{wire: newWire(socket), done: make(chan struct{})}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.tasks.Go(func() { c.wire.flush(life) })
	in := c.frames(socket, &o)
	c.bus, err = dbus.NewConn(transport{in, c.wire},
		dbus.WithContext(life), dbus.WithSerialGenerator(c))
	if err != nil {
		end()
		c.wire.end(net.ErrClosed)
		c.tasks.Wait()
		return nil, fmt.Errorf("bus at %s: %w", address, err)
	}
	context.AfterFunc(c.bus.Context(), func() { //nolint:contextcheck // godbus's own: the bus is lost, or Close
		c.wire.end(net.ErrClosed)
		end()
		c.once.Do(func() { close(c.done) })
	})
	stop := context.AfterFunc(ctx, c.Close) // neither of the next two heeds a context
	if err = c.bus.Auth(nil); err == nil {
		err = c.hello(ctx)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("bus at %s: %w", address, err)
	}
	return c, nil
}

func dial(ctx context.Context, address string, dial func(context.Context, string, string) (net.Conn, error)) (net.Conn, error) {
	names, err := sockets(address)
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	var failed []error
	for _, name := range names {
		c, err := dial(ctx, "unix", name)
		if err == nil {
			return c, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("bus at %s: %w", address, errors.Join(failed...))
}

// hello gets the connection its name.
func (c *Conn) hello(ctx context.Context) error {
	err := make(chan error, 1)
	c.tasks.Go(func() { err <- c.bus.Hello() }) // ends when the connection does, at the latest
	select {
	case e := <-err:
		if e == nil {
			c.name = c.bus.Names()[0]
		}
		return e
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Name returns the connection's unique name.
func (c *Conn) Name() string { return c.name }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection; calls under way fail. It may be called more than once, also
// while a write is under way.
func (c *Conn) Close() {
	c.wire.end(net.ErrClosed) // first: godbus waits for writes
	_ = c.bus.Close()
	c.once.Do(func() { close(c.done) })
}

// GetSerial and RetireSerial give messages their numbers.
func (c *Conn) GetSerial() uint32 {
	for {
		if n := c.serial.Add(1); n != 0 {
			return n
		}
	}
}

// RetireSerial does nothing: a number comes back after 2^32 others.
func (c *Conn) RetireSerial(uint32) {}

// Call calls a method of another connection.
func (c *Conn) Call(ctx context.Context, dest string, path dbus.ObjectPath, method string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if err := c.wire.wait(ctx); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", method, dest, err)
	}
	call := c.bus.Object(dest, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...)
	switch {
	case call.Err == nil:
		return call.Body, nil
	case ctx.Err() != nil && errors.Is(call.Err, ctx.Err()):
		return nil, fmt.Errorf("%s of %s: %w", method, dest, context.Cause(ctx))
	case errors.Is(call.Err, dbus.ErrClosed) || errors.Is(call.Err, net.ErrClosed) || errors.Is(call.Err, io.EOF):
		return nil, fmt.Errorf("%s of %s: %w", method, dest, net.ErrClosed)
	}
	return nil, call.Err
}

// Bus calls a method of the bus itself.
func (c *Conn) Bus(ctx context.Context, method string, args ...any) ([]any, error) {
	return c.Call(ctx, busName, busPath, busName+"."+method, args...)
}

// Room waits until the bus has taken all that was written.
func (c *Conn) Room(ctx context.Context) error { return c.wire.wait(ctx) }

// Emit sends a signal, to one connection or, with "", to all who listen.
func (c *Conn) Emit(dest string, path dbus.ObjectPath, iface, member string, args ...any) error {
	return c.send(dest, dbus.TypeSignal, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
	}, args)
}

// Reply answers a call.
func (c *Conn) Reply(call *Call, args ...any) error {
	if call.NoReply {
		return nil
	}
	return c.send(call.Sender, dbus.TypeMethodReply, map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.serial)}, args)
}

// Refuse answers a call with an error.
func (c *Conn) Refuse(call *Call, name, text string) error {
	if call.NoReply {
		return nil
	}
	return c.send(call.Sender, dbus.TypeError, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(call.serial), dbus.FieldErrorName: dbus.MakeVariant(name),
	}, []any{text})
}

// send encodes and writes a message that nobody answers. godbus's own Send tells no error,
// and its Emit knows no destination.
func (c *Conn) send(dest string, typ dbus.Type, headers map[dbus.HeaderField]dbus.Variant, body []any) error {
	if dest != "" {
		headers[dbus.FieldDestination] = dbus.MakeVariant(dest)
	}
	if len(body) > 0 {
		headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	msg := &dbus.Message{Type: typ, Flags: dbus.FlagNoReplyExpected, Headers: headers, Body: body}
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, binary.LittleEndian); err != nil {
		return err
	}
	if b.Len() > MaxSend {
		return fmt.Errorf("%w: %d octets", ErrTooLarge, b.Len())
	}
	binary.LittleEndian.PutUint32(b.Bytes()[8:], c.GetSerial())
	_, err := c.wire.Write(b.Bytes())
	return err
}

// Names of the errors that calls are refused with here.
const (
	limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
	unknownObject  = "org.freedesktop.DBus.Error.UnknownObject"
)

// frames returns what reads the connection. It hands calls and signals over: godbus would
// start a goroutine for each, in any order.
func (c *Conn) frames(socket io.Reader, o *Options) *frames {
	handle, listen, heed, tell := o.Call, o.Signal, o.Heed, o.Unread
	if handle == nil {
		handle = func(call *Call) { _ = c.Refuse(call, unknownObject, "there are no objects here") } // as below
	}
	if heed == nil {
		heed = func(string) bool { return listen != nil }
	}
	return &frames{
		in: bufio.NewReaderSize(socket, 16<<10), limit: o.MaxMessage, signal: listen, heed: heed,
		call: func(m *message, whole []byte) {
			call := callOf(m)
			call.whole = bytes.Clone(whole)
			handle(call)
		},
		unread: func(m *message, why error) {
			if tell != nil {
				tell(why)
			}
			if m.typ == dbus.TypeMethodCall && m.text[fieldSender] != "" {
				_ = c.Refuse(callOf(m), limitsExceeded, why.Error()) // who cannot be answered will time out
			}
		},
	}
}

func callOf(m *message) *Call {
	return &Call{
		Sender: m.text[fieldSender], Path: dbus.ObjectPath(m.text[fieldPath]), Interface: m.text[fieldInterface], Member: m.text[fieldMember],
		Signature: m.text[fieldSignature], NoReply: m.flags&dbus.FlagNoReplyExpected != 0, serial: m.serial,
	}
}

// Size returns how many octets the call has.
func (c *Call) Size() int { return len(c.whole) }

// Args decodes the arguments. They may take many times the octets that they came in, and
// many times as long as it took to send them; it fails where they cannot be decoded, which
// the bus does not rule out.
func (c *Call) Args() ([]any, error) {
	msg, err := decode(c.whole)
	if err != nil {
		return nil, err
	}
	return msg.Body, nil
}

func signalOf(msg *dbus.Message) *dbus.Signal {
	s := &dbus.Signal{Body: msg.Body}
	s.Sender, _ = msg.Headers[dbus.FieldSender].Value().(string)
	s.Path, _ = msg.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	iface, _ := msg.Headers[dbus.FieldInterface].Value().(string)
	member, _ := msg.Headers[dbus.FieldMember].Value().(string)
	s.Name = iface + "." + member
	return s
}

// Tell calls a method and wants no answer.
func (c *Conn) Tell(dest string, path dbus.ObjectPath, iface, member string, args ...any) error {
	return c.send(dest, dbus.TypeMethodCall, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(path), dbus.FieldInterface: dbus.MakeVariant(iface), dbus.FieldMember: dbus.MakeVariant(member),
	}, args)
}
