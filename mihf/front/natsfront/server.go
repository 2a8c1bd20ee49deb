package natsfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/broadcast"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/proto/natsproto"
)

// Options say how to serve. Fields that are zero mean the default that they name.
type Options struct {
	Broker front.Broker
	// Events are shared with other fronts, or hide points of attachment, as everything else then
	// does; nil: its own.
	Events *encoded.Events
	Logger *slog.Logger // nil: discard

	// One of the two is needed.
	Embedded *Embedded
	External *External

	// Reader is who reads what is published for all. It must see everything.
	Reader mihf.Caller
	// Grant says what a caller may hear.
	Grant func(mihf.Caller) Grant
	// Identity is the name of those of whom the server does not say who they are: all of an
	// external one that is not trusted, and those beyond a leaf node; "external".
	Identity string

	Lifetime    time.Duration // of a session without a heartbeat; natsproto.Lifetime
	MaxSessions int           // of one caller; 1024
	MaxQueued   int           // requests of one caller that wait; 1024
	Grace       time.Duration // for the last hints at the end of Run; 1 s
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Events == nil {
		o.Events = encoded.New(o.Broker.Node(), o.Broker.Now)
	}
	if o.Identity == "" {
		o.Identity = "external"
	}
	if o.Lifetime <= 0 {
		o.Lifetime = natsproto.Lifetime
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 1024
	}
	if o.MaxQueued <= 0 {
		o.MaxQueued = 1024
	}
	if o.Grace <= 0 {
		o.Grace = time.Second
	}
}

// Server is the NATS front. See the package comment.
type Server struct {
	o      Options
	broker front.Broker
	log    *slog.Logger
	node   mihf.NodeID
	own    *embedded // nil: an external server
	who    identity
	ready  chan struct{}
	back   chan struct{} // full when the server came back
	begun  chan struct{} // closed when the broker is being read
	first  sync.Once     // closes begun

	link atomic.Pointer[link] // set by Run before anything uses it
	boot atomic.Uint32        // of the broker's run; 0: not yet known

	mu        sync.Mutex // guards condition
	condition mihf.SensorCondition

	queue    *queue
	sessions sessions
	named    sync.Map // operations of which a malformed request was logged
	counts   struct {
		published, hints, dropped, encodeErrors, requests, refused, malformed, forged atomic.Uint64
		panics, connects, overflows, holes, lapsed                                    atomic.Uint64
	}
}

// Counts are what a server has done since New.
type Counts struct {
	Connected bool
	Connects  uint64 // how often the server was there, or back

	Published    uint64 // events and hints, to all
	Hints        uint64 // to sessions
	Dropped      uint64 // not published, since the server was away
	Holes        uint64 // times that all were told to read the state again
	EncodeErrors uint64

	Requests  uint64
	Refused   uint64 // by the broker or by a limit
	Malformed uint64 // requests that could not be read, or made no sense
	Forged    uint64 // requests of which the server did not say clearly who sent them
	Overflows uint64 // times that requests came faster than they could be queued
	Panics    uint64

	RefusedConnections uint64 // beyond a user's share, or without a name while many were

	Sessions int
	Lapsed   uint64 // sessions that were not heard of any more
}

// New returns a server that does nothing until Run.
func New(o Options) (*Server, error) {
	if o.Broker == nil || o.Grant == nil || (o.Embedded == nil) == (o.External == nil) {
		return nil, errors.New("NATS front: a broker, grants, and either an embedded or an external server are needed")
	}
	o.setDefaults()
	s := &Server{o: o, broker: o.Broker, log: o.Logger, node: o.Broker.Node(), ready: make(chan struct{}), back: make(chan struct{}, 1), begun: make(chan struct{})}
	s.who = identity{other: o.Identity}
	s.state(mihf.ConditionStarting, notYet)
	s.queue = newQueue(o.MaxQueued)
	s.sessions.open, s.sessions.owned = map[sessionKey]*session{}, map[string]int{}
	if o.Embedded == nil {
		s.who.trust = o.External.TrustRequestInfo
		return s, nil
	}
	var err error
	if s.own, err = newEmbedded(o.Embedded, s.node, o.Grant, o.Logger); err != nil {
		return nil, err
	}
	s.who.trust, s.who.account, s.who.nkeys = true, usersAccount, s.own.gate.Load().keys
	return s, nil
}

// String names the task.
func (s *Server) String() string { return "nats" }

// Ready is closed when the embedded server accepts connections, or did not start; with an
// external one at once, whether that is there or not.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// InProcessConn connects to the embedded server without a listener; see
// nats.InProcessServer. It may be called once the server is ready.
func (s *Server) InProcessConn() (net.Conn, error) {
	if s.own == nil {
		return nil, errors.New("NATS front: no server is embedded")
	}
	return s.own.server.Load().InProcessConn()
}

// Addr returns where the embedded server listens; nil: nowhere. It may be called once the
// server is ready.
func (s *Server) Addr() net.Addr {
	if s.own == nil || s.own.o.Listen == "" {
		return nil
	}
	return s.own.server.Load().Addr()
}

// Counts returns what the server has done.
func (s *Server) Counts() Counts {
	c := &s.counts
	n := Counts{
		Connects: c.connects.Load(), Published: c.published.Load(), Hints: c.hints.Load(), Dropped: c.dropped.Load(), Holes: c.holes.Load(),
		EncodeErrors: c.encodeErrors.Load(), Requests: c.requests.Load(), Refused: c.refused.Load(), Malformed: c.malformed.Load(),
		Forged: c.forged.Load(), Overflows: c.overflows.Load(), Panics: c.panics.Load(), Sessions: s.sessions.count(), Lapsed: c.lapsed.Load(),
	}
	if l := s.link.Load(); l != nil {
		n.Connected = l.pub.IsConnected()
	}
	if s.own != nil {
		n.RefusedConnections = s.own.gate.Load().refused.Load()
	}
	return n
}

// workers is how many requests are done at once.
const workers = 4

// Run serves until ctx ends and returns nil then. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	ready := sync.OnceFunc(func() { close(s.ready) })
	if s.own != nil {
		if !s.start(ctx, ready) {
			return nil
		}
		defer s.own.stop()
	}
	// Feeds and sessions outlive ctx: the broker ends them when it has said its last.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var reading, serving sync.WaitGroup
	s.sessions.life, s.sessions.readers = life, &reading
	if err := s.join(); err != nil {
		return err
	}
	defer func() { s.link.Load().close() }()
	for range workers {
		serving.Go(func() { s.queue.serve(s.do) })
	}
	serving.Go(func() { s.present(ctx) })
	serving.Go(func() { s.rejoin(ctx) })
	if s.own != nil && s.own.o.Listen != "" {
		serving.Go(func() { s.own.guard(ctx) })
	}
	reading.Go(func() { s.broadcast(life) })
	s.await(ctx)
	ready()
	<-ctx.Done()
	s.finish(&reading, end)
	s.queue.close()
	serving.Wait()
	return nil
}

// start starts the embedded server, again and again until it runs, or ctx ends (false): its
// address may be taken. Nobody waits for it longer than the first try takes.
func (s *Server) start(ctx context.Context, ready func()) bool {
	for tries := 0; ; tries++ {
		err := s.own.start()
		if err == nil {
			return true
		}
		s.trouble(mihf.ConditionUnavailable, err)
		ready()
		timer := time.NewTimer(delay(tries))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// Regrant has the embedded server's users heed what [Options.Grant] says now: the connections
// of those for whom that is another thing end, and come back with it. It may be called at any
// time.
func (s *Server) Regrant() {
	if s.own == nil {
		return
	}
	if n := s.own.gate.Load().regrant(); n > 0 {
		s.log.Info("NATS users may do another thing than before: their connections were ended, and may come back", "connections", n)
	}
}

// await waits until requests reach us and all that comes is published, where the server is
// our own.
func (s *Server) await(ctx context.Context) {
	if s.own == nil {
		return
	}
	select {
	case <-s.begun:
	case <-ctx.Done():
	}
	if err := s.svc().FlushTimeout(startTimeout); err != nil {
		s.log.Warn("the embedded NATS server is slow to take us", "error", err)
	}
}

// finish waits for what the broker still says, and sends it off.
func (s *Server) finish(reading *sync.WaitGroup, end context.CancelFunc) {
	s.sessions.close()
	said := make(chan struct{})
	go func() { reading.Wait(); close(said) }()
	timer := time.NewTimer(s.o.Grace)
	defer timer.Stop()
	select {
	case <-said:
	case <-timer.C:
	}
	end()
	<-said
	s.sync(natsproto.TypeEnd)
	if !s.pub().IsConnected() {
		return
	}
	err := s.pub().FlushTimeout(s.o.Grace)
	if d := s.link.Load().direct; err == nil && d != nil {
		err = d.flush(s.o.Grace)
	}
	if err != nil {
		s.log.Warn("the last messages may not have reached the NATS server", "error", err)
	}
}

// broadcast publishes what the broker publishes.
func (s *Server) broadcast(life context.Context) {
	defer s.first.Do(func() { close(s.begun) }) // nobody is to wait for a broker that has ended
	if err := broadcast.Run(life, s.broker, s.o.Reader, s.send); err != nil && !errors.Is(err, mihf.ErrClosed) {
		s.log.Error("nothing is published over NATS any more", "error", err)
	}
}

// present says again and again that the node is there, and tells all to read the state
// again when the server, or a leaf node's link to the cluster, is back.
func (s *Server) present(ctx context.Context) {
	ticker := time.NewTicker(natsproto.AliveEvery)
	defer ticker.Stop()
	var leaf <-chan time.Time
	if s.own != nil && s.own.o.Leaf != nil {
		looks := time.NewTicker(leafEvery)
		defer looks.Stop()
		leaf = looks.C
	}
	history := s.history()
	kept := history == nil
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.back:
			if s.counts.connects.Load() > 1 || s.counts.dropped.Load() > 0 {
				s.hole() // what was on its way when the connection ended is lost, and nobody says so
			}
			kept = history == nil
		case <-leaf:
			rejoined, linked := s.own.lookAtLeaf()
			if rejoined {
				s.hole()
			}
			s.tellLeaf(linked)
		case <-ticker.C:
			s.sync(natsproto.TypeAlive)
		}
		if !kept && s.pub().IsConnected() {
			kept = s.keepHistory(ctx, history)
		}
	}
}

// leafAway is the condition's text while no cluster is reached.
const leafAway = "no cluster of nats.leaf is reached; what it would hear is told again when it is"

// tellLeaf says in the condition whether a cluster is reached.
func (s *Server) tellLeaf(linked bool) {
	switch c := s.Condition(); {
	case !linked && c.Condition == mihf.ConditionOK:
		s.trouble(mihf.ConditionDegraded, errors.New(leafAway))
	case linked && c.Text == leafAway:
		s.state(mihf.ConditionOK, "")
		s.log.Info("a cluster of nats.leaf is reached")
	}
}

// keepHistory begins to keep events; false: it has to be tried again.
func (s *Server) keepHistory(ctx context.Context, h *History) bool {
	var err error
	if s.own != nil {
		err = s.own.keepHistory(h)
	}
	if err == nil {
		err = keepHistory(ctx, s.svc(), s.node, h)
	}
	switch {
	case err == nil:
		s.state(mihf.ConditionOK, "")
	case ctx.Err() == nil:
		s.trouble(mihf.ConditionDegraded, fmt.Errorf("no history is kept: %w", err))
	}
	return err == nil
}

func (s *Server) history() *History {
	if s.own != nil {
		return s.o.Embedded.History
	}
	return s.o.External.History
}
