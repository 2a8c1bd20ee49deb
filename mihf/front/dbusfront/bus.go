package dbusfront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
)

// bus is one connection to the bus, from the name's acquisition to its loss.
type bus struct {
	s      *Server
	conn   *busconn.Conn
	ctx    context.Context // of everything on this connection
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup
	dirty  chan struct{} // full when properties may have changed

	registrants registrants

	mu        sync.Mutex // guards the following
	peers     map[string]*peer
	users     map[uint32]*holder
	strangers holder // those of whom the bus was not asked yet
	waiting   int    // octets of the calls that wait
	ended     bool   // no more tasks
}

// Why a connection ended.
var (
	errLost = errors.New("the bus was lost")
	errName = errors.New("the name was taken away")
)

// join connects and gets the name.
func (s *Server) join(ctx context.Context, address string) (*bus, error) {
	b := &bus{s: s, dirty: make(chan struct{}, 1), peers: map[string]*peer{}, users: map[uint32]*holder{}}
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	joining, done := context.WithTimeout(ctx, joinTimeout)
	defer done()
	var err error
	b.conn, err = busconn.Open(joining, address, busconn.Options{
		Call: b.call, Signal: b.signal, Heed: ofBus, Unread: s.unread, SendBuffer: sendBuffer, Dial: s.o.Dial,
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(b.ctx, b.conn.Close) //nolint:contextcheck // the connection outlives the joining
	if err = b.own(joining); err != nil {
		b.end(err)
		return nil, err
	}
	return b, nil
}

// own listens for connections that end, and gets the name.
func (b *bus) own(ctx context.Context) error {
	const rule = "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'"
	if _, err := b.conn.Bus(ctx, "AddMatch", rule); err != nil {
		return fmt.Errorf("listening on the bus: %w", err)
	}
	got, err := b.conn.Bus(ctx, "RequestName", dbusapi.Name, uint32(dbus.NameFlagDoNotQueue))
	if errors.Is(dbusapi.FromReply(err), mihf.ErrPermission) {
		return nameError(errDenied, "install dev.mihf.MIHF1.conf in /usr/share/dbus-1/system.d, or set dbus.bus")
	}
	if err != nil {
		return fmt.Errorf("requesting the name: %w", err)
	}
	if n, _ := got[0].(uint32); dbus.RequestNameReply(n) != dbus.RequestNameReplyPrimaryOwner {
		return nameError(errOwned, "another mihfd runs on this bus")
	}
	return nil
}

// run serves until ctx ends, the bus is lost, or the name is. It returns why.
func (b *bus) run(ctx context.Context) error {
	b.spawn(b.broadcast)
	b.spawn(b.mirror)
	var why error
	select {
	case <-ctx.Done():
		b.lastWords() //nolint:contextcheck // ctx has ended
	case <-b.conn.Done():
		why = errLost
	case <-b.ctx.Done():
		why = context.Cause(b.ctx) //nolint:contextcheck // the connection's own
	}
	b.end(why)
	return why
}

// lastWords gives attachments and streams the time to deliver what the broker still says.
func (b *bus) lastWords() {
	grace, done := context.WithTimeout(b.ctx, b.s.o.Grace)
	defer done()
	for _, p := range b.everybody() {
		p.lastWords(grace)
	}
	_ = b.conn.Room(grace) // what is not taken by now is not
}

func (b *bus) everybody() []*peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]*peer, 0, len(b.peers))
	for _, p := range b.peers {
		out = append(out, p)
	}
	return out
}

// end closes the connection and waits for all that ran on it.
func (b *bus) end(why error) {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.cancel(why)
	b.conn.Close()
	b.tasks.Wait()
}

// spawn runs f until the connection ends, unless it has.
func (b *bus) spawn(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.tasks.Go(f)
	}
}

// ofBus tells the bus itself from others.
func ofBus(sender string) bool { return sender == "org.freedesktop.DBus" }

// signal is what the bus itself says; by the goroutine that reads.
func (b *bus) signal(s *dbus.Signal) {
	switch s.Name {
	case "org.freedesktop.DBus.NameOwnerChanged":
		var name, old, owner string
		if dbus.Store(s.Body, &name, &old, &owner) == nil && owner == "" && strings.HasPrefix(name, ":") {
			b.gone(name)
		}
	case "org.freedesktop.DBus.NameLost":
		var name string
		if dbus.Store(s.Body, &name) == nil && name == dbusapi.Name {
			b.cancel(errName)
		}
	}
}

// call takes a method call; by the goroutine that reads.
func (b *bus) call(c *busconn.Call) {
	b.s.counts.calls.Add(1)
	if text := b.admit(c); text != "" {
		b.s.counts.refused.Add(1)
		_ = b.conn.Refuse(c, dbusapi.ErrorLimitsExceeded, text) // one who cannot be answered will time out
	}
}

// admit gives a call to its sender's queue; otherwise it says why not.
func (b *bus) admit(c *busconn.Call) (refusal string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return "the broker ends"
	}
	p := b.peers[c.Sender]
	if p == nil {
		if len(b.peers) >= b.s.o.MaxSenders && !b.forgetOne(nil) {
			return fmt.Sprintf("%d connections use the broker; no more can", b.s.o.MaxSenders)
		}
		p = newPeer(b, c.Sender)
		b.peers[c.Sender] = p
		b.strangers.peers++
	}
	if why := p.full(c.Size()); why != "" {
		return why
	}
	p.queue = append(p.queue, c)
	p.charge(1, c.Size())
	if !p.working {
		p.working = true
		b.tasks.Go(p.work)
	}
	return ""
}

// gone ends what belongs to a connection that left the bus.
func (b *bus) gone(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.peers[name]; p != nil {
		b.drop(p, errGone)
	}
}

// sendBuffer bounds what the kernel holds for the bus: some six signals. A bus passes on one
// message after another, so a hint waits for all of them.
const sendBuffer = 8 << 10

// post waits until the bus takes more and lets write send something. It fails only where
// ctx ends or the bus is lost.
func (b *bus) post(ctx context.Context, what string, write func() error) error {
	if err := b.conn.Room(ctx); err != nil {
		return err
	}
	return b.postFirst(ctx, what, write)
}

// postFirst does the same, but what goes to all does not go before it.
func (b *bus) postFirst(ctx context.Context, what string, write func() error) error {
	for {
		err := write()
		switch {
		case err == nil || errors.Is(err, net.ErrClosed):
			return err
		case !errors.Is(err, busconn.ErrBusy): // much is kept, or another one was quicker
			b.s.counts.encodeErrors.Add(1)
			b.s.log.Error("message not sent", "member", what, "error", err)
			return nil // a receiver sees by the order that it is missing
		}
		if err := b.conn.Room(ctx); err != nil {
			return err
		}
	}
}

// emit sends a signal. args are asked for when the bus takes it, since they may tell ages.
func (b *bus) emit(ctx context.Context, dest string, path dbus.ObjectPath, iface, member string, args func() []any) error {
	return b.post(ctx, member, b.signalling(dest, path, iface, member, args))
}

// emitFirst is emit for what is urgent.
func (b *bus) emitFirst(ctx context.Context, dest string, path dbus.ObjectPath, iface, member string, args func() []any) error {
	return b.postFirst(ctx, member, b.signalling(dest, path, iface, member, args))
}

func (b *bus) signalling(dest string, path dbus.ObjectPath, iface, member string, args func() []any) func() error {
	return func() error {
		err := b.conn.Emit(dest, path, iface, member, args()...)
		if err == nil {
			b.s.counts.signals.Add(1)
		}
		return err
	}
}

// these are arguments that do not change with time.
func these(args ...any) func() []any { return func() []any { return args } }

// touch says that properties may have changed.
func (b *bus) touch() {
	select {
	case b.dirty <- struct{}{}:
	default:
	}
}
