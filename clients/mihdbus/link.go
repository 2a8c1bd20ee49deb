package mihdbus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
	"mihf.dev/proto/variant"
)

type message = proto.Message

// link is a connection to a bus on which there is a broker. It ends when either is lost.
type link struct {
	c     *Client
	conn  *busconn.Conn
	owner string // unique name of the broker; "" while it is not known

	mu      sync.Mutex // guards the following, and owner until connect returns
	streams map[uint64]*stream
	at      *attachment // nil: none
	ended   error
}

var (
	errLost   = fmt.Errorf("%w: the message bus was lost", mihf.ErrClosed)
	errLeft   = fmt.Errorf("%w: the broker left the message bus", mihf.ErrClosed)
	errAbsent = fmt.Errorf("%w: no broker is on the message bus", mihf.ErrClosed)
)

// connect finds a bus with a broker.
func (c *Client) connect(ctx context.Context) (*link, error) {
	var failed []error
	for _, address := range c.addresses {
		a, err := address()
		if err == nil {
			var l *link
			if l, err = c.connectTo(ctx, a); err == nil {
				return l, nil
			}
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func (c *Client) connectTo(ctx context.Context, address string) (*link, error) {
	within, cancel := context.WithTimeout(ctx, busconn.CallTimeout)
	defer cancel()
	l := &link{c: c, streams: map[uint64]*stream{}}
	var err error
	if l.conn, err = busconn.Open(within, address, busconn.Options{Signal: l.signal, Heed: l.heed, MaxMessage: maxMessage, Dial: c.o.Dial}); err != nil {
		return nil, err
	}
	if err = l.find(within); err != nil {
		l.conn.Close()
		return nil, err
	}
	forget := c.life.AfterEnd(l.close)
	go func() { // ends with the connection
		defer forget()
		<-l.conn.Done()
		l.fail(errLost)
	}()
	return l, nil
}

// find learns who owns the broker's name, and is told when that changes.
func (l *link) find(ctx context.Context) error {
	rule := "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" + dbusapi.Name + "'"
	if _, err := l.conn.Bus(ctx, "AddMatch", rule); err != nil {
		return err
	}
	got, err := l.conn.Bus(ctx, "GetNameOwner", dbusapi.Name)
	if remote, ok := errors.AsType[dbus.Error](err); ok && remote.Name == "org.freedesktop.DBus.Error.NameHasNoOwner" {
		return errAbsent
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner, _ = got[0].(string)
	return nil
}

func (l *link) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended == nil
}

// call calls a method of the broker.
func (l *link) call(ctx context.Context, method string, args ...any) ([]any, error) {
	body, err := l.conn.Call(ctx, l.owner, dbusapi.Root, dbusapi.BrokerInterface+"."+method, args...)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ended != nil {
			return nil, l.ended
		}
	}
	return body, err
}

// tell calls a method of the broker and wants no answer.
func (l *link) tell(method string, args ...any) error {
	return l.conn.Tell(l.owner, dbusapi.Root, dbusapi.BrokerInterface, method, args...)
}

// close ends the link by its client.
func (l *link) close() { l.fail(clients.ErrClientClosed) }

// fail ends the link, and what is open on it, for the first reason given: to close the
// connection for one looks like its loss to who waits for that.
func (l *link) fail(why error) {
	l.mu.Lock()
	if l.ended == nil {
		l.ended = why
	}
	why = l.ended
	streams, at := l.streams, l.at
	l.streams = map[uint64]*stream{}
	l.mu.Unlock()
	l.conn.Close()
	for _, s := range streams {
		s.end(why)
	}
	if at != nil {
		at.in.end(why)
	}
}

// signal takes what comes; by the goroutine that reads the bus.
func (l *link) signal(s *dbus.Signal) {
	if s.Sender == "org.freedesktop.DBus" {
		l.ownerChanged(s)
		return
	}
	l.mu.Lock()
	at := l.at
	l.mu.Unlock()
	switch s.Name {
	case dbusapi.BrokerInterface + "." + dbusapi.SignalDelivery:
		id, numbered := arg[uint64](s, 0)
		item, filled := arg[variant.Dict](s, 1)
		if to := l.stream(id); to != nil && numbered && filled {
			to.put(received{at: l.c.o.Clock.Now(), dict: item})
		}
	case dbusapi.BrokerInterface + "." + dbusapi.SignalStreamEnded:
		var id uint64
		var name, text string
		if dbus.Store(s.Body, &id, &name, &text) == nil {
			if to := l.drop(id); to != nil {
				to.end(endOf(name, text))
			}
		}
	default:
		if at != nil {
			at.signal(s)
		}
	}
}

// arg returns an argument of a signal. dbus.Store would copy what is in it.
func arg[T any](s *dbus.Signal, i int) (v T, ok bool) {
	if i < len(s.Body) {
		v, ok = s.Body[i].(T)
	}
	return v, ok
}

func (l *link) ownerChanged(s *dbus.Signal) {
	var name, old, owner string
	if s.Name != "org.freedesktop.DBus.NameOwnerChanged" || dbus.Store(s.Body, &name, &old, &owner) != nil || name != dbusapi.Name {
		return
	}
	l.mu.Lock()
	left := l.owner != "" && owner != l.owner
	l.mu.Unlock()
	if left {
		l.fail(errLeft)
	}
}

// heed tells whose signals are read: the bus's, and those of the name's owner. Any connection
// may send some.
func (l *link) heed(sender string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return sender == "org.freedesktop.DBus" || (l.owner != "" && sender == l.owner)
}

func (l *link) stream(id uint64) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[id]
}

// add makes a stream known before the broker is asked for it.
func (l *link) add(s *stream) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return l.ended
	}
	l.streams[s.id] = s
	return nil
}

// drop forgets a stream; nil: it was forgotten before.
func (l *link) drop(id uint64) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[id]
	delete(l.streams, id)
	return s
}

// read fills m from an answer that is one dictionary.
func read(body []any, m message) error {
	var dict variant.Dict
	if err := dbus.Store(body, &dict); err != nil {
		return fmt.Errorf("%w: an answer of another type: %w", mihf.ErrInvalid, err)
	}
	return variant.Decode(dict, m)
}
