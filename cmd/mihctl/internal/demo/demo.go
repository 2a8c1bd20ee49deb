package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"mihf.dev/clients"
	"mihf.dev/clients/attach"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/clients/mihnats"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/cmd/mihctl/internal/privatebus"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/recording/walk"
	"mihf.dev/sensors"
	"mihf.dev/sensors/replay"
)

// Speeds, in trace seconds a second.
const (
	DefaultSpeed = 2.5 // the walk takes 23 s
	MaxSpeed     = 50
)

var link = walk.Link

// kinds are the events that the timeline shows.
var kinds = mihf.Kinds(
	mihf.LinkUp, mihf.LinkDown, mihf.LinkGoingDown, mihf.LinkEventRollback, mihf.PredictionExpired,
	mihf.LinkHandoverImminent, mihf.LinkHandoverComplete, mihf.PathUsable, mihf.PathLost,
)

// errDone ends the run when the recording is over.
var errDone = errors.New("the recording is over")

// Run plays the walk, shows each entry of the timeline as it happens, and returns what came
// of it. It fails where a part fails or ctx ends.
func Run(ctx context.Context, speed float64, shown func(*Entry)) (*Report, error) {
	dir, err := os.MkdirTemp("", "mihf-demo-")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // sockets and what configures them
	truth, err := losses()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	bus, err := privatebus.Start(ctx, dir)
	if err == nil {
		defer func() { _ = bus.Close() }() // nothing is lost with it
	} else if !errors.Is(err, privatebus.ErrAbsent) {
		return nil, fmt.Errorf("demo: %w", cmp.Or(context.Cause(ctx), err))
	}
	clk := clock.Scaled(speed)
	s := &stage{
		dir: dir, bus: bus,
		clock: clk, player: &player{clock: clk, begin: make(chan mihf.Time, 1), ended: make(chan error, 1)},
		truth: truth, notes: make(chan Entry, 256), shown: shown,
		report: &Report{Recording: "walk", Speed: speed, Flow: Flow{RTTMs: millis(rtt), Direction: mihf.DirectionReceive.String()}, NoDBus: err},
	}
	g, running := errgroup.WithContext(ctx)
	if err := s.assemble(running, g); err != nil {
		return nil, fmt.Errorf("demo: %w", cmp.Or(context.Cause(ctx), err))
	}
	err = g.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("demo: %w", context.Cause(ctx))
	case !errors.Is(err, errDone):
		return nil, fmt.Errorf("demo: %w", err)
	}
	s.report.fill(s.start)
	return s.report, nil
}

// losses returns what the recording tells.
func losses() ([]mihf.Observation, error) {
	var all []mihf.Observation
	p := replay.NewPlayer(walk.Open(), 1)
	var o mihf.Observation
	for {
		if _, ok := p.Next(&o); !ok {
			return all, p.Err()
		}
		if o.Kind == mihf.ObsTruth {
			all = append(all, o)
		}
	}
}

// stage is the run. Its loop owns the report.
type stage struct {
	dir    string
	bus    *privatebus.Bus // nil: there is none
	clock  clock.Clock
	player *player
	truth  []mihf.Observation // times from 1
	notes  chan Entry
	shown  func(*Entry)
	start  mihf.Time // of the recording
	report *Report

	waiting []Entry // see hold
}

// player is the sensor: it waits until the client is there, then plays the walk.
type player struct {
	clock clock.Clock
	begin chan mihf.Time
	ended chan error
}

// Name is that of the sensor that it stands for.
func (p *player) Name() string { return replay.Name }

// Run waits, plays and tells the end.
func (p *player) Run(ctx context.Context, emit sensors.Emit) error {
	select {
	case start := <-p.begin:
		s := replay.New(walk.Open(), p.clock, start)
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx, emit) }()
		select {
		case <-s.Ended():
			p.ended <- s.Err()
			return <-done
		case err := <-done:
			return err
		}
	case <-ctx.Done():
		return nil
	}
}

// assemble starts the daemon, the clients and the loop in the group.
func (s *stage) assemble(ctx context.Context, g *errgroup.Group) error {
	c := config.Defaults()
	c.Node.Name, c.DBus.Bus = "demo", config.NoBus
	if s.bus != nil {
		c.DBus.Bus = s.bus.Address
	}
	secret := rand.Text()
	c.NATS.Server, c.NATS.Users = config.NATSEmbedded, filepath.Join(s.dir, "users")
	if err := os.WriteFile(c.NATS.Users, []byte(natsUser+":"+secret+"\n"), 0o600); err != nil {
		return err
	}
	c.Access.Grants = []config.Grant{{NATSUsers: []string{natsUser}, AsUID: new(uint32(os.Getuid()))}}                                             //nolint:gosec // a uid has 32 bits
	a, err := wiring.Assemble(&c, wiring.Options{Socket: filepath.Join(s.dir, "mihfd.sock"), Clock: s.clock, Sensors: []sensors.Sensor{s.player}}) //nolint:contextcheck // it starts nothing
	if err != nil {
		return err
	}
	joined, err := s.join(a, secret)
	if err != nil {
		return err
	}
	g.Go(func() error { return daemon.Serve(ctx, nil, nil, a.Tasks...) })
	for _, j := range joined {
		g.Go(func() error { return j.flow.Run(ctx) })
		g.Go(func() error {
			<-ctx.Done() // when play has ended; before, the flow would be at its end too early
			return j.client.Close()
		})
	}
	g.Go(func() error { return s.play(ctx, joined) })
	return nil
}

// natsUser is who the client is to the embedded server.
const natsUser = "demo"

// joined is a front's client with a flow.
type joined struct {
	front  string
	client clients.Client
	flow   *attach.Flow
}

// join makes a client of each front, gRPC's first.
func (s *stage) join(a *wiring.Assembly, secret string) (all []joined, err error) {
	client, err := mihgrpc.Dial("unix://"+a.Socket, mihgrpc.Options{Clock: s.clock})
	if err != nil {
		return nil, err
	}
	all = append(all, s.joined("grpc", client))
	over, err := mihnats.Dial("", mihnats.Options{Node: "demo", User: natsUser, Password: secret, InProcess: a.NATS, Clock: s.clock})
	if err != nil {
		return nil, err
	}
	all = append(all, s.joined("nats", over))
	if s.bus != nil {
		client, err := mihdbus.Dial(s.bus.Address, mihdbus.Options{Clock: s.clock})
		if err != nil {
			return nil, err
		}
		all = append(all, s.joined("dbus", client))
	}
	return all, nil
}

func (s *stage) joined(front string, client clients.Client) joined {
	s.report.fronts = append(s.report.fronts, front)
	t := &transport{front: front, clock: s.clock, note: s.notes}
	return joined{front, client, attach.New(t, client, attach.Options{Spec: spec(), Clock: s.clock})}
}

// spec is the client's flow: data comes in, and it lives while its address does.
func spec() mihf.FlowSpec {
	return mihf.FlowSpec{
		Link: link, RTT: rtt, Direction: mihf.DirectionReceive,
		Tuples: []mihf.Endpoints{{Protocol: 6, Local: netip.AddrPortFrom(walk.IPv4.Addr(), 40000), Remote: netip.MustParseAddrPort("198.51.100.7:443")}},
	}
}

// play subscribes, waits for the flows, begins, and notes what happens until the end.
func (s *stage) play(ctx context.Context, all []joined) error {
	feed, err := all[0].client.Follow(ctx, mihf.SubscribeRequest{Kinds: kinds})
	if err != nil {
		return err
	}
	defer feed.Close()
	for _, j := range all {
		select {
		case <-j.flow.Ready():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.report.Flow.LeadMs = millis(all[0].flow.Registration().Lead)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.follow(ctx, feed) })
	g.Go(func() error { return s.loop(ctx) })
	stop := context.AfterFunc(ctx, feed.Close) // its reader waits without this context
	defer stop()
	return g.Wait()
}

// follow notes the events. They keep their order, which their times, counted back from
// each one's arrival, show to within the time on the way only.
func (s *stage) follow(ctx context.Context, feed mihf.Feed) error {
	last := mihf.Time(0)
	buf := make([]mihf.Delivery, 16)
	for {
		n, err := feed.Next(buf)
		if err != nil {
			return err
		}
		for _, d := range buf[:n] {
			if d.Kind != mihf.DeliverEvent {
				continue
			}
			ev := d.Event
			last = max(last, ev.At)
			select {
			case s.notes <- Entry{From: "event", Kind: ev.Kind.String(), Text: show.Event(&ev), at: last, event: &ev}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// settle is the real time that the last messages have to arrive.
const settle = 200 * time.Millisecond

// hold is the real time that an entry waits for those that happened before it and come on
// another way.
const hold = 50 * time.Millisecond

// loop begins the recording and owns the report until it is over.
func (s *stage) loop(ctx context.Context) error {
	show := time.NewTicker(hold / 2)
	defer show.Stop()
	s.start = s.clock.Now()
	s.player.begin <- s.start
	told := time.NewTimer(time.Hour)
	defer told.Stop()
	s.next(told)
	var over <-chan time.Time
	for {
		select {
		case e := <-s.notes:
			s.add(e)
		case <-show.C:
			s.show(s.clock.Now().Add(-time.Duration(float64(hold) * s.report.Speed)))
		case <-told.C:
			s.tell()
			s.next(told)
		case err := <-s.player.ended:
			if err != nil {
				return err
			}
			over = time.After(settle)
		case <-over:
			s.show(s.clock.Now())
			return errDone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next arms the timer for what the recording tells next.
func (s *stage) next(t *time.Timer) {
	if len(s.truth) > 0 {
		t.Reset(s.clock.Real(s.truthAt().Sub(s.clock.Now())))
	}
}

func (s *stage) truthAt() mihf.Time { return s.start.Add(time.Duration(s.truth[0].At - 1)) }

// tell notes what the recording tells.
func (s *stage) tell() {
	o := s.truth[0]
	o.At = s.truthAt()
	s.truth = s.truth[1:]
	s.add(Entry{From: "truth", Kind: show.Text(o.Truth.Kind), Text: "the last frame: nothing comes through any more", at: o.At, truth: &o})
}

func (s *stage) add(e Entry) {
	e.TimeS = seconds(e.at.Sub(s.start))
	s.waiting = append(s.waiting, e)
}

// show passes on what happened before a moment, in order.
func (s *stage) show(before mihf.Time) {
	slices.SortStableFunc(s.waiting, byTime)
	n := 0
	for n < len(s.waiting) && s.waiting[n].at.Before(before) {
		s.shown(&s.waiting[n])
		n++
	}
	s.report.Timeline = append(s.report.Timeline, s.waiting[:n]...)
	s.waiting = slices.Delete(s.waiting, 0, n)
}
