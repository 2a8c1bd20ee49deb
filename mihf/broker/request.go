package broker

import (
	"context"
	"sync/atomic"

	"mihf.dev/mihf"
)

// request is a call that waits for the loop.
type request struct {
	f     func(now mihf.Time)
	taken atomic.Bool // by the loop, or back by who asked
	done  chan struct{}
}

// do runs f in the loop and waits for it. It fails with mihf.ErrClosed once Run has ended,
// and with ctx's reason if that ends first; f then does not run.
func (b *Broker) do(ctx context.Context, f func(now mihf.Time)) error {
	return b.ask(f, ctx.Done(), func() error { return context.Cause(ctx) })
}

// doAnyway is do for what must be done although its caller's context has ended.
func (b *Broker) doAnyway(f func(now mihf.Time)) error { return b.ask(f, nil, nil) }

func (b *Broker) ask(f func(now mihf.Time), ended <-chan struct{}, why func() error) error {
	r := &request{f: f, done: make(chan struct{})}
	select {
	case b.requests <- r:
	case <-b.stopped:
		return mihf.ErrClosed
	case <-ended:
		return why()
	}
	b.turn.wake()
	select {
	case <-r.done:
		return nil
	case <-b.stopped:
		return r.given(mihf.ErrClosed)
	case <-ended:
		return r.given(why())
	}
}

// given takes the request back and returns why, unless the loop has begun with it.
func (r *request) given(why error) error {
	if r.taken.CompareAndSwap(false, true) {
		return why
	}
	<-r.done
	return nil
}

// answer does the requests that wait. What is due is done and published before each.
func (b *Broker) answer() {
	for range len(b.requests) {
		r := <-b.requests
		if !r.taken.CompareAndSwap(false, true) {
			continue
		}
		now := b.Now()
		b.advance(now)
		b.publish()
		r.f(now)
		close(r.done)
		b.publish()
	}
	b.arm()
}
