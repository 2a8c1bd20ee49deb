package broker

import "sync"

// ending is how a feed or attachment ends: once, for one reason.
type ending struct {
	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

func newEnding() ending { return ending{done: make(chan struct{})} }

// finish ends it for the first reason given; true if this was the first.
func (e *ending) finish(why error) (first bool) {
	e.once.Do(func() {
		e.err = why
		close(e.done)
		first = true
	})
	return first
}

// Done is closed when it has ended.
func (e *ending) Done() <-chan struct{} { return e.done }

// Err says why it ended; nil while it has not.
func (e *ending) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}
