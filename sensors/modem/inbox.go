package modem

import (
	"sync"

	"github.com/godbus/dbus/v5"

	"mihf.dev/sensors"
)

// maxWaiting bounds the signals that wait for the loop; beyond it all is read anew.
const maxWaiting = 1024

// inbox is where the bus's reader leaves what it heard for the loop, and calls their answers.
type inbox struct {
	count     *counters
	malformed *sensors.Malformed
	wake      chan struct{} // 1 slot

	mu      sync.Mutex // guards all following fields
	owner   string     // of ModemManager's name, as told last; "": none
	told    bool       // that the owner changed
	events  []event
	answers []answer // as many as calls are under way at most
	lost    bool
}

func newInbox(count *counters, malformed *sensors.Malformed) *inbox {
	return &inbox{count: count, malformed: malformed, wake: make(chan struct{}, 1)}
}

func (b *inbox) change(f func()) {
	b.mu.Lock()
	f()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// heed tells whose signals are wanted. It is called by the bus's reader.
func (b *inbox) heed(sender string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sender == busName || (sender == b.owner && sender != "")
}

const busName = "org.freedesktop.DBus"

// signal takes a signal. It is called by the bus's reader, in the order of the bus.
func (b *inbox) signal(s *dbus.Signal) {
	b.count.signals.Add(1)
	err := sensors.Guard(func() error {
		if s.Sender == busName {
			return b.ofBus(s)
		}
		e, err := decodeEvent(s)
		if err == nil && e.kind != eventNone {
			b.change(func() {
				if len(b.events) == maxWaiting {
					b.lost = true
					return
				}
				b.events = append(b.events, e)
			})
		}
		return err
	})
	if err != nil {
		b.malformed.Note(err)
	}
}

// ofBus takes the bus's own word on who owns ModemManager's name. It is kept beside the
// signals, so that it is never lost.
func (b *inbox) ofBus(s *dbus.Signal) error {
	if s.Name != busName+".NameOwnerChanged" {
		return nil
	}
	var name, old, owner string
	if err := dbus.Store(s.Body, &name, &old, &owner); err != nil {
		return err
	}
	if name == service {
		b.change(func() { b.owner, b.told = owner, true })
	}
	return nil
}

// found takes the answer to the question for the owner, unless a change was told since.
func (b *inbox) found(owner string) {
	b.change(func() {
		if !b.told {
			b.owner = owner
		}
	})
}

func (b *inbox) answer(a answer) { b.change(func() { b.answers = append(b.answers, a) }) }

// mail is what came.
type mail struct {
	owner   string
	events  []event
	answers []answer
	lost    bool // more was heard than could wait
}

// take returns what came since the last call.
func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := mail{b.owner, b.events, b.answers, b.lost}
	b.events, b.answers, b.lost = nil, nil, false
	return t
}
