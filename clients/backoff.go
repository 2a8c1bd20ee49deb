package clients

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between tries.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 3 * time.Second
)

// Backoff gives the pauses between tries: doubling from 50 ms to 3 s, each shortened at
// random by up to a half, so that clients of one broker do not come back all at once. The
// zero Backoff is ready. It is used by one goroutine.
type Backoff struct{ next time.Duration }

// Pause returns the next pause.
func (b *Backoff) Pause() time.Duration {
	d := max(b.next, firstPause)
	b.next = min(2*d, maxPause)
	return d - rand.N(d/2+1)
}

// Reset starts again after a try that went well.
func (b *Backoff) Reset() { b.next = 0 }

// Wait waits for the next pause. It returns the context's cause if that ends first.
func (b *Backoff) Wait(ctx context.Context) error {
	timer := time.NewTimer(b.Pause())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
