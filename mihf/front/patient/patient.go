// Package patient makes a listener outlive what keeps it from accepting: no descriptors, no
// memory, a network that is down, a connection that was gone too soon.
//
// # Guarantees
//
//   - Such an error ends neither Accept nor, with it, the server: it is counted, and Accept
//     tries again after a pause of 5 ms, doubling to 250 ms.
//   - It is logged when it comes first, and then at most once a minute, with the count.
//   - Close ends a pause at once.
//   - An error of the listener itself (closed, no socket) ends Accept.
package patient

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Pauses between tries, and between two words of the log.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = 250 * time.Millisecond
	logEvery   = time.Minute
)

// Listener is a net.Listener that does not give up. One goroutine may be in Accept.
type Listener struct {
	net.Listener
	log      *slog.Logger
	failures *atomic.Uint64

	closed chan struct{}
	once   sync.Once

	logged   time.Time // of the newest word; Accept's
	unlogged uint64    // failures since
}

// New returns ln made patient. Each failure is added to failures.
func New(ln net.Listener, log *slog.Logger, failures *atomic.Uint64) *Listener {
	return &Listener{Listener: ln, log: log, failures: failures, closed: make(chan struct{})}
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		c, err := l.Listener.Accept()
		if err == nil || !passing(err) {
			return c, err
		}
		l.note(err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.closed:
			timer.Stop()
			return nil, net.ErrClosed
		}
	}
}

// Close closes the listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// passing reports whether an error of accept(2) says nothing against the listener itself.
func passing(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return false
	}
	switch errno {
	case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EFAULT:
		return false
	default:
		return true
	}
}

func (l *Listener) note(err error) {
	l.failures.Add(1)
	l.unlogged++
	if now := time.Now(); l.logged.IsZero() || now.Sub(l.logged) >= logEvery {
		l.log.Warn("connections wait, accepting them fails", "address", l.Addr().String(), "error", err, "failures", l.unlogged)
		l.logged, l.unlogged = now, 0
	}
}
