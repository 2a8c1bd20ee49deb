package liveview

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// How often things happen.
const (
	drawEvery = 100 * time.Millisecond // at most
	pollEvery = 250 * time.Millisecond
	tickEvery = time.Second // ages grow
)

// errQuit ends the view because the user wants it.
var errQuit = errors.New("quit")

// Run shows the broker's state on out until ctx ends or the user quits, and returns nil
// then. It fails where the subscription is refused or out cannot be written.
func Run(ctx context.Context, c clients.Client, out *os.File) error {
	return run(ctx, c, os.Stdin, out)
}

// kinds are the events that are shown: changes, and not each new value.
var kinds = func() (s mihf.KindSet) {
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		if k != mihf.LinkParametersReport && k != mihf.LinkDetected {
			s |= mihf.Kinds(k)
		}
	}
	return s
}()

func run(ctx context.Context, c clients.Client, in, out *os.File) error {
	feed, err := follow(ctx, c)
	if err != nil {
		return err
	}
	defer feed.Close()
	if !term.IsTerminal(int(out.Fd())) {
		return quiet(ctx, lines(feed, out))
	}
	return quiet(ctx, full(ctx, c, feed, in, out))
}

// follow subscribes to events and hints, and to events alone where no hints may be seen.
func follow(ctx context.Context, c clients.Client) (mihf.Feed, error) {
	feed, err := c.Follow(ctx, mihf.SubscribeRequest{Hints: true, Kinds: kinds})
	if errors.Is(err, mihf.ErrPermission) {
		feed, err = c.Follow(ctx, mihf.SubscribeRequest{Kinds: kinds})
	}
	if err != nil {
		return nil, fmt.Errorf("follow the broker: %w", err)
	}
	return feed, nil
}

// quiet returns nil for an end that was wanted.
func quiet(ctx context.Context, err error) error {
	if errors.Is(err, errQuit) || ctx.Err() != nil {
		err = nil
	}
	return err
}

// lines prints change lines.
func lines(feed mihf.Feed, out *os.File) error {
	var now clock.Clock
	changes := show.Changes{Time: wallTime(now, "15:04:05.000")}
	buf := make([]mihf.Delivery, 64)
	for {
		n, err := feed.Next(buf)
		if err != nil {
			return err
		}
		for i := range buf[:n] {
			if _, err := fmt.Fprintln(out, changes.Line(&buf[i])); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
	}
}

func wallTime(c clock.Clock, layout string) func(mihf.Time) string {
	return func(t mihf.Time) string { return c.Wall(t).Format(layout) }
}

// full draws the whole screen.
func full(ctx context.Context, c clients.Client, feed mihf.Feed, in, out *os.File) error {
	scr, err := openScreen(in, out)
	if err != nil {
		return err
	}
	defer scr.close()
	g, ctx := errgroup.WithContext(ctx)
	wall := wallTime(clock.Boot(), "15:04:05")
	v := newViewer(scr.resized, func(s *state) error { return scr.show(s, clock.Boot().Now(), wall) })
	g.Go(func() error { return v.follow(ctx, feed) })
	g.Go(func() error { return v.ask(ctx, c) })
	g.Go(func() error { return scr.readKeys(ctx) })
	g.Go(func() error {
		defer feed.Close() // its reader waits without the context
		defer scr.wake()
		return v.loop(ctx)
	})
	return g.Wait()
}

// polled is the answer to a request for the state.
type polled struct {
	snapshot *mihf.Snapshot
	err      error
}

// viewer joins what comes in and draws it. Its loop owns the state.
type viewer struct {
	deliveries chan mihf.Delivery
	polled     chan polled
	poll       chan struct{} // asks for the state out of turn
	resized    <-chan os.Signal
	draw       func(*state) error // in the loop
	state      state
}

func newViewer(resized <-chan os.Signal, draw func(*state) error) *viewer {
	return &viewer{
		deliveries: make(chan mihf.Delivery, 256), polled: make(chan polled, 1), poll: make(chan struct{}, 1), resized: resized, draw: draw,
	}
}

// follow passes deliveries on. It waits for the loop, so that nothing queues up here.
func (v *viewer) follow(ctx context.Context, feed mihf.Feed) error {
	buf := make([]mihf.Delivery, 64)
	for {
		n, err := feed.Next(buf)
		if err != nil {
			return err
		}
		for i := range buf[:n] {
			select {
			case v.deliveries <- buf[i]:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// ask asks for the state, in turn and when it is told to, at most as often as is drawn.
func (v *viewer) ask(ctx context.Context, c clients.Client) error {
	turn := time.NewTicker(pollEvery)
	defer turn.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		pause.Reset(drawEvery)
		limit, cancel := context.WithTimeout(ctx, 3*time.Second)
		snap, err := c.Snapshot(limit)
		cancel()
		select {
		case v.polled <- polled{snap, err}:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-turn.C:
		case <-v.poll:
		case <-ctx.Done():
			return nil
		}
	}
}

// loop owns the state. It draws at most every drawEvery.
func (v *viewer) loop(ctx context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	draw := time.NewTimer(0)
	defer draw.Stop()
	armed := true
	for {
		changed := true
		select {
		case <-ctx.Done():
			return nil
		case d := <-v.deliveries:
			v.state.take(&d)
			v.askNow()
		case p := <-v.polled:
			v.take(p)
		case <-v.resized:
		case <-tick.C:
		case <-draw.C:
			changed, armed = false, false
			if err := v.draw(&v.state); err != nil {
				return err
			}
		}
		if changed && !armed {
			armed = true
			draw.Reset(drawEvery)
		}
	}
}

func (v *viewer) askNow() {
	select {
	case v.poll <- struct{}{}:
	default:
	}
}

func (v *viewer) take(p polled) {
	if p.err != nil {
		v.state.problem = "no answer from the daemon: " + p.err.Error()
		return
	}
	v.state.update(p.snapshot)
}
