package mihdbus

import (
	"sync"
	"sync/atomic"

	"mihf.dev/mihf"
	"mihf.dev/proto/variant"
)

// received is a message as it came.
type received struct {
	at       mihf.Time // of its arrival
	previous uint64    // of a hint's signal
	heldNs   int64
	gap      bool // dict is a mih.v1.Gap
	dict     variant.Dict
}

// inbox is what came and was not read yet, bounded, and why nothing more comes. One
// goroutine reads it; any may end it.
type inbox struct {
	queue   chan received
	done    chan struct{} // closed when nothing more comes
	dropped atomic.Uint64
	lossy   bool // what does not fit is counted; else it ends the inbox

	once  sync.Once
	err   error // set before done is closed
	local bool  // its own user ended it: what waits is of no use
}

func newInbox(size int) *inbox {
	return &inbox{queue: make(chan received, size), done: make(chan struct{})}
}

// put adds what came; by the goroutine that reads the bus.
func (b *inbox) put(r received) {
	select {
	case <-b.done:
		return
	default:
	}
	select {
	case b.queue <- r:
	default:
		if b.dropped.Add(1); !b.lossy {
			b.end(errBehind(cap(b.queue)))
		}
	}
}

// end says that nothing more comes, for the first reason given.
func (b *inbox) end(why error) {
	b.once.Do(func() {
		b.err = why
		close(b.done)
	})
}

// close ends the inbox by its own user.
func (b *inbox) close(why error) {
	b.once.Do(func() {
		b.err, b.local = why, true
		close(b.done)
	})
}

// get waits for the next one. After the end it gives what came before, unless the user
// ended it.
func (b *inbox) get() (received, error) {
	select {
	case <-b.done:
		if b.local {
			return received{}, b.err
		}
	default:
	}
	select {
	case r := <-b.queue:
		return r, nil
	default:
	}
	select {
	case r := <-b.queue:
		return r, nil
	case <-b.done:
	}
	if b.local {
		return received{}, b.err
	}
	select { // what came between
	case r := <-b.queue:
		return r, nil
	default:
		return received{}, b.err
	}
}

// why returns the reason of the end; nil while there is none.
func (b *inbox) why() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}
