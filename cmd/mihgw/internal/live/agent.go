package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/transports/tcpadjust/kernel"
)

// Broker is what the agent needs of one; every [clients.Client] is one.
type Broker interface {
	Follow(ctx context.Context, req mihf.SubscribeRequest) (mihf.Feed, error)
	Snapshot(ctx context.Context) (*mihf.Snapshot, error)
	Attach(ctx context.Context) (mihf.Attachment, error)
}

// Kernel is what the agent needs of a [kernel.Actuator].
type Kernel interface {
	Sockets(keep func(*kernel.Socket) bool) ([]kernel.Socket, error)
	Apply(orders []kernel.Order) ([]kernel.Result, error)
}

// Config says what the agent may do.
type Config struct {
	Links  []string // names; empty: all
	UIDs   []uint32 // owners of sockets; empty: all
	Adjust bool     // windows by link characteristics
	Freeze bool     // downloads before a forecast loss
	DryRun bool

	Clock  clock.Clock
	Logger *slog.Logger
	Report func(Action) // each thing that is done, or would be; nil: none
}

// Action is one thing done to a connection.
type Action struct {
	Link   string         `json:"link,omitempty"`
	What   string         `json:"what"` // recover, unreachable, adjust, take back, unpace, freeze, close the window, thaw, restore
	Local  netip.AddrPort `json:"local,omitzero"`
	Remote netip.AddrPort `json:"remote,omitzero"`
	Cwnd   uint32         `json:"cwnd,omitempty"` // segments, where it was set
	Why    string         `json:"why,omitempty"`  // where nothing was done
	Dry    bool           `json:"dry,omitempty"`
}

// look is how often windows are noted, and watch how often a raise is looked after.
const (
	look  = time.Second
	watch = 50 * time.Millisecond
)

// Agent acts for one host. See the package comment.
type Agent struct {
	cfg     Config
	broker  Broker
	kernel  Kernel
	journal *Journal

	keeper   kernel.Keeper
	links    map[mihf.LinkID]*attached
	raised   map[uint64]*raise
	requests chan func(context.Context) // of flows, to the agent's goroutine
}

// New returns an agent that does nothing until Run.
func New(cfg Config, b Broker, k Kernel, j *Journal) *Agent {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Agent{
		cfg: cfg, broker: b, kernel: k, journal: j,
		links: map[mihf.LinkID]*attached{}, raised: map[uint64]*raise{}, requests: make(chan func(context.Context), 64),
	}
}

// Run puts back what a run before has left, and acts until ctx ends or the broker's
// events can't be had any more.
func (a *Agent) Run(ctx context.Context) (err error) {
	a.restore()
	defer a.restore()
	ctx, stop := context.WithCancel(ctx)
	feed, err := a.broker.Follow(ctx, mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.PathUsable)})
	if err != nil {
		stop()
		return fmt.Errorf("follow the broker: %w", err)
	}
	events := make(chan mihf.Event)
	ended := make(chan error, 1)
	go func() { ended <- read(ctx, feed, events) }()
	defer func() {
		stop()
		feed.Close()
		if e := <-ended; err == nil && !errors.Is(e, context.Canceled) {
			err = e
		}
		err = errors.Join(err, a.leave())
	}()
	return a.loop(ctx, events, ended)
}

// read passes events on.
func read(ctx context.Context, feed mihf.Feed, events chan<- mihf.Event) error {
	var buf [16]mihf.Delivery
	for {
		n, err := feed.Next(buf[:])
		if err != nil {
			return err
		}
		for _, d := range buf[:n] {
			if d.Kind != mihf.DeliverEvent {
				continue
			}
			select {
			case events <- d.Event:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func (a *Agent) loop(ctx context.Context, events <-chan mihf.Event, ended chan error) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	a.observe(ctx)
	for {
		var soon <-chan time.Time
		if len(a.raised) > 0 {
			soon = time.After(watch)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			ended <- err // for Run, which waits for it
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("the broker's events: %w", err)
		case e := <-events:
			if e.Path != nil && e.Kind == mihf.PathUsable {
				a.usable(ctx, &e)
			}
		case f := <-a.requests:
			f(ctx)
		case <-tick.C:
			a.observe(ctx)
		case <-soon:
			a.lookAfter()
		}
	}
}

// observe reads the links, and notes the windows of the connections on them.
func (a *Agent) observe(ctx context.Context) {
	s, err := a.broker.Snapshot(ctx)
	if err != nil {
		a.cfg.Logger.Warn("links are not known", "error", err)
		return
	}
	a.follow(ctx, s)
	all, err := a.sockets(func(netip.Addr) bool { return true })
	if err != nil {
		a.cfg.Logger.Warn("connections are not known", "error", err)
		return
	}
	a.keeper.Note(all)
	a.tell(all)
	a.forgetGone()
}

// forgetGone takes connections that have ended out of the journal.
func (a *Agent) forgetGone() {
	if len(a.journal.had) == 0 {
		return
	}
	there := map[uint64]bool{}
	_, err := a.kernel.Sockets(func(s *kernel.Socket) bool {
		there[s.Cookie] = true
		return false
	})
	if err != nil {
		a.cfg.Logger.Warn("connections are not known", "error", err)
		return
	}
	if err := a.journal.keep(there); err != nil {
		a.cfg.Logger.Warn("the journal is not up to date", "error", err)
	}
}

// sockets returns the connections that the agent may touch, whose local address is kept.
func (a *Agent) sockets(keep func(netip.Addr) bool) ([]kernel.Socket, error) {
	return a.kernel.Sockets(func(s *kernel.Socket) bool {
		local := s.Local.Addr()
		return !local.IsLoopback() && keep(local) && a.linkOf(local) != nil &&
			(len(a.cfg.UIDs) == 0 || slices.Contains(a.cfg.UIDs, s.UID))
	})
}

// linkOf returns the link that has the address now, among those that are named.
func (a *Agent) linkOf(addr netip.Addr) *attached {
	for _, l := range a.links {
		if l.has(addr) {
			return l
		}
	}
	return nil
}

// usable has the connections of a path go on.
func (a *Agent) usable(ctx context.Context, e *mihf.Event) {
	s, err := a.broker.Snapshot(ctx)
	if err != nil {
		a.cfg.Logger.Warn("the path's link is not known", "error", err)
		return
	}
	a.follow(ctx, s)
	l := a.links[e.Link]
	if l == nil {
		return
	}
	all, err := a.sockets(func(addr netip.Addr) bool { return l.has(addr) && addr.Is6() == e.Path.IPv6 })
	if err != nil {
		a.cfg.Logger.Warn("connections are not known", "error", err)
		return
	}
	a.putBack(l, all)
	a.recover(l, all)
	if a.cfg.Adjust && e.Path.LCI != nil {
		a.adjust(l, all, e.Path.LCI)
	}
}

// recover sends what gets stalled connections going.
func (a *Agent) recover(l *attached, all []kernel.Socket) {
	a.apply("recover", l.name, all, a.keeper.Recover(all))
	for i := range all {
		s := &all[i]
		if !receives(s) {
			continue
		}
		act := Action{Link: l.name, What: "unreachable", Local: s.Local, Remote: s.Remote}
		if a.report(act); a.cfg.DryRun {
			continue
		}
		if err := kernel.Unreachable(s.Local, s.Remote, s.RcvNxt); err != nil {
			a.cfg.Logger.Warn("a sender was not told", "error", err)
		}
	}
}

// apply carries orders out, of connections in the same order, and says so.
func (a *Agent) apply(what, link string, all []kernel.Socket, orders []kernel.Order) []kernel.Result {
	if len(orders) == 0 {
		return nil
	}
	by := map[uint64]*kernel.Socket{}
	for i := range all {
		by[all[i].Cookie] = &all[i]
	}
	for _, o := range orders {
		act := Action{Link: link, What: what, Cwnd: o.Cwnd}
		if s := by[o.Cookie]; s != nil {
			act.Local, act.Remote = s.Local, s.Remote
		}
		a.report(act)
	}
	if a.cfg.DryRun {
		return nil
	}
	results, err := a.kernel.Apply(orders)
	if err != nil {
		a.cfg.Logger.Error("connections were not changed", "what", what, "error", err)
	}
	for _, r := range results {
		for _, why := range r.Refused {
			a.cfg.Logger.Warn("the kernel refused", "what", what, "connection", by[r.Cookie], "why", why)
		}
	}
	return results
}

func (a *Agent) report(act Action) {
	act.Dry = a.cfg.DryRun
	if a.cfg.Report != nil {
		a.cfg.Report(act)
	}
}

// restore puts back all that the journal has.
func (a *Agent) restore() { a.giveBack("", nil, a.journal.Restore()) }

// putBack gives connections what they had before they were changed for an earlier path.
func (a *Agent) putBack(l *attached, all []kernel.Socket) {
	var orders []kernel.Order
	for i := range all {
		if o, ok := a.journal.Had(all[i].Cookie); ok {
			orders = append(orders, o)
		}
	}
	a.giveBack(l.name, all, orders)
}

func (a *Agent) giveBack(link string, all []kernel.Socket, orders []kernel.Order) {
	if len(orders) == 0 || a.cfg.DryRun {
		return
	}
	var done []uint64
	for _, r := range a.apply("restore", link, all, orders) {
		if r.Done { // others are gone, or were not reached: see forgetGone
			done = append(done, r.Cookie)
		}
	}
	if err := a.journal.Forget(done...); err != nil {
		a.cfg.Logger.Warn("the journal is not up to date", "error", err)
	}
}
