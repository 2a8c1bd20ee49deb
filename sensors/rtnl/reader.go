package rtnl

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"mihf.dev/sensors"
)

// errOverflow says that the kernel had messages that the socket could not hold.
var errOverflow = errors.New("messages were lost: the socket's buffer was full")

// inbox is where the reader leaves what it heard for the loop. It is bounded: reasons to
// look are merged.
type inbox struct {
	wake chan struct{} // 1 slot

	mu    sync.Mutex // guards all following fields
	hints hints
	err   error // that ended the reader
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *inbox) add(h hint) {
	b.mu.Lock()
	b.hints.add(h)
	b.mu.Unlock()
	b.poke()
}

func (b *inbox) fail(err error) {
	b.mu.Lock()
	b.err = err
	b.mu.Unlock()
	b.poke()
}

func (b *inbox) take() (hints, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hints
	b.hints = hints{}
	return h, b.err
}

// read reads the watch socket until it fails or is closed. It is the only reader of c.
func (s *Sensor) read(c *conn, box *inbox) {
	for {
		if s.opt.BeforeRead != nil {
			s.opt.BeforeRead()
		}
		b, from, err := c.receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			box.fail(errOverflow)
			return
		case errors.Is(err, errTruncated):
			s.malformed.Note(err)
			box.add(hint{all: true})
			continue
		case err != nil:
			box.fail(err)
			return
		case from != 0:
			continue // not the kernel
		}
		if err := messages(b, func(m message) error { s.hear(m, box); return nil }); err != nil {
			s.malformed.Note(err)
		}
	}
}

func (s *Sensor) hear(m message, box *inbox) {
	s.count.messages.Add(1)
	err := sensors.Guard(func() error {
		h, err := decodeHint(m.typ, m.data, s.watch.Load())
		if err == nil && h != (hint{}) {
			box.add(h)
		}
		return err
	})
	if err != nil {
		s.malformed.Note(err)
	}
}
