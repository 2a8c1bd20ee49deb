package busconn

import (
	"context"
	"errors"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrBusy refuses a message because the bus does not read.
var ErrBusy = errors.New("the bus does not read")

// maxKept is how many octets are kept for a bus that does not read at once; or one message,
// where nothing else is.
const maxKept = 256 << 10

// wire writes whole messages to a socket and never waits: what the socket does not take is
// kept and written by flush.
type wire struct {
	conn net.Conn
	raw  rawConn // nil: the connection is not a socket of the kernel

	mu    sync.Mutex // guards the following
	kept  []byte
	room  chan struct{} // not nil while something is kept; closed when it is written
	ended error
	wake  chan struct{} // to flush; has room for one
}

type rawConn interface {
	Write(f func(fd uintptr) (done bool)) error
}

func newWire(c net.Conn) *wire {
	w := &wire{conn: c, wake: make(chan struct{}, 1)}
	if s, ok := c.(*net.UnixConn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			w.raw = raw
		}
	}
	return w
}

// Write takes one message whole, or none of it.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return 0, w.ended
	}
	n := 0
	if len(w.kept) == 0 {
		n = w.try(p)
	}
	if n == len(p) {
		return n, nil
	}
	if len(w.kept) > 0 && len(w.kept)+len(p) > maxKept {
		return 0, ErrBusy
	}
	if w.kept = append(w.kept, p[n:]...); w.room == nil {
		w.room = make(chan struct{})
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// try writes what the socket takes now. An error shows when flush meets it.
func (w *wire) try(p []byte) (n int) {
	if w.raw == nil {
		return 0
	}
	_ = w.raw.Write(func(fd uintptr) bool {
		n, _ = unix.SendmsgN(int(fd), p, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true
	})
	return max(n, 0)
}

// flush writes what is kept until the connection ends.
func (w *wire) flush(ctx context.Context) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		for {
			w.mu.Lock()
			part := w.kept
			w.mu.Unlock()
			if len(part) == 0 {
				break
			}
			n, err := w.conn.Write(part[:min(len(part), 64<<10)])
			if err != nil {
				w.end(err)
				return
			}
			w.written(n)
		}
	}
}

func (w *wire) written(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return
	}
	if w.kept = w.kept[n:]; len(w.kept) == 0 {
		w.kept = nil
		close(w.room)
		w.room = nil
	}
}

// end closes the connection. What is kept is lost.
func (w *wire) end(why error) {
	w.mu.Lock()
	if w.ended == nil {
		w.ended = why
	}
	w.kept = nil
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
	w.mu.Unlock()
	_ = w.conn.Close() // twice at most, and what it says changes nothing
}

// wait waits until nothing is kept.
func (w *wire) wait(ctx context.Context) error {
	for {
		w.mu.Lock()
		room, err := w.room, w.ended
		w.mu.Unlock()
		if room == nil || err != nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
