package dccpnet

import (
	"sync"
	"time"
)

// deadline is a moment at which waiting ends, which may be moved meanwhile.
type deadline struct {
	mu    sync.Mutex // guards the following
	timer *time.Timer
	over  chan struct{} // closed at the deadline
}

// wait returns a channel that is closed when the deadline has passed; nil: none is set.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// passed reports whether the deadline is over.
func (d *deadline) passed() bool {
	select {
	case <-d.wait():
		return true
	default:
		return false
	}
}

// set moves the deadline; the zero time removes it. Who waits by the old one has to be made
// to look again.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if t.IsZero() {
		d.over = nil
		return
	}
	over := make(chan struct{})
	d.over = over
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(over) })
		return
	}
	close(over)
}
