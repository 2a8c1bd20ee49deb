package nl80211

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"mihf.dev/sensors"
)

// errOverflow says that the kernel had messages that the socket could not hold.
var errOverflow = errors.New("messages were lost: the socket's buffer was full")

// maxWaiting bounds the messages that wait for the loop; beyond it all is read anew.
const maxWaiting = 1024

// inbox is where the reader leaves what it heard for the loop.
type inbox struct {
	wake chan struct{} // 1 slot

	mu     sync.Mutex // guards all following fields
	events []event
	lost   bool
	err    error // that ended the reader
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) change(f func()) {
	b.mu.Lock()
	f()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *inbox) add(e event) {
	b.change(func() {
		if len(b.events) == maxWaiting {
			b.lost = true
			return
		}
		b.events = append(b.events, e)
	})
}

// take returns what was heard, and whether more was heard than could wait.
func (b *inbox) take() (events []event, lost bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events, lost = b.events, b.lost
	b.events, b.lost = nil, false
	return events, lost, b.err
}

// read reads the socket of messages until it fails or is closed.
func (s *Sensor) read(c conn, box *inbox) {
	for {
		list, _, err := c.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			box.change(func() { box.err = errOverflow })
			return
		case err != nil:
			box.change(func() { box.err = err })
			return
		}
		for _, m := range list {
			s.count.messages.Add(1)
			err := sensors.Guard(func() error {
				e, err := decodeEvent(m.Header.Command, m.Data)
				if err == nil {
					box.add(e)
				}
				return err
			})
			if err != nil {
				s.malformed.Note(err)
			}
		}
	}
}
