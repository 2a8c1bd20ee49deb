package link

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// Direction names one line of a link, or both.
type Direction uint8

// Directions.
const (
	Upward   Direction = 1 << iota // near to far
	Downward                       // far to near
	Both     = Upward | Downward
)

// Link is both directions with the goroutines that wait for them. Its methods may be called by
// any goroutine.
type Link struct {
	clock    clock.Clock
	up, down *direction
}

// direction is a line in real time.
type direction struct {
	clock clock.Clock
	wake  chan struct{} // of one slot: look at the line again
	write func(Packet)  // gives a packet out; called by the direction's own goroutine

	mu   sync.Mutex // guards line
	line *Line
}

func newLink(up, down Conditions, seed uint64) (*Link, error) {
	for _, c := range []Conditions{up, down} {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	one := func(c Conditions, seed uint64) *direction {
		return &direction{wake: make(chan struct{}, 1), line: NewLine(c, seed)}
	}
	return &Link{up: one(up, 2*seed), down: one(down, 2*seed+1)}, nil
}

// Stats returns the counts of one direction.
func (l *Link) Stats(d Direction) Stats {
	dir := l.direction(d)
	dir.mu.Lock()
	defer dir.mu.Unlock()
	return dir.line.Stats(l.clock.Now())
}

// direction returns one of the two; Both is the programmer's error.
func (l *Link) direction(d Direction) *direction {
	switch d {
	case Upward:
		return l.up
	case Downward:
		return l.down
	default:
		panic("link: one direction is wanted")
	}
}

// Watch has f told the fate of every packet of a direction (see [Line.Watch]). f is quick and calls no
// method of the link. Call it before packets pass.
func (l *Link) Watch(d Direction, f func(now mihf.Time, p *Packet, fate Fate)) {
	dir := l.direction(d)
	dir.mu.Lock()
	defer dir.mu.Unlock()
	dir.line.Watch = f
}

// Change changes the conditions of one or both directions at once. It panics if they do not pass
// [Conditions.Check] then.
func (l *Link) Change(d Direction, f func(*Conditions)) {
	l.change(func(up, down *Conditions) {
		if d&Upward != 0 {
			f(up)
		}
		if d&Downward != 0 {
			f(down)
		}
	})
}

func (l *Link) change(f func(up, down *Conditions)) {
	l.up.mu.Lock()
	l.down.mu.Lock()
	up, down := l.up.line.Conditions(), l.down.line.Conditions()
	f(&up, &down)
	now := l.clock.Now()
	l.up.line.Set(now, up)
	l.down.line.Set(now, down)
	l.down.mu.Unlock()
	l.up.mu.Unlock()
	l.up.look()
	l.down.look()
}

// Play changes the link by a schedule that starts now. It returns when the schedule or ctx ends.
func (l *Link) Play(ctx context.Context, s Schedule) {
	start := l.clock.Now()
	for _, step := range s {
		if d := start.Add(step.At).Sub(l.clock.Now()); d > 0 {
			t := time.NewTimer(l.clock.Real(d))
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
		l.change(step.Change)
	}
}

// run gives out what comes out of both lines until ctx ends.
func (l *Link) run(ctx context.Context, g *errgroup.Group) {
	for _, d := range []*direction{l.up, l.down} {
		g.Go(func() error {
			d.run(ctx)
			return nil
		})
	}
}

// push puts a packet on the line. It waits for nothing.
func (d *direction) push(p Packet) {
	d.mu.Lock()
	before := d.line.Next()
	d.line.Push(d.clock.Now(), p)
	sooner := d.line.Next() != before
	d.mu.Unlock()
	if sooner {
		d.look()
	}
}

func (d *direction) look() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run is the only goroutine that calls write.
func (d *direction) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var out []Packet
	for {
		d.mu.Lock()
		now := d.clock.Now()
		out = d.line.Advance(now, out[:0])
		next := d.line.Next()
		d.mu.Unlock()
		for i := range out {
			d.write(out[i])
			out[i] = Packet{}
		}
		if next.Due(d.clock.Now()) {
			continue
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(d.clock.Real(next.Sub(d.clock.Now())))
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-timer.C:
		}
	}
}
