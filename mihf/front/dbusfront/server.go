package dbusfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/service"
	"mihf.dev/proto/variant"
)

// Options say how to serve. Fields that are zero mean the default that they name.
type Options struct {
	Broker front.Broker
	// Address returns where the bus is now. Its error says why there is none.
	Address func() (string, error)
	Logger  *slog.Logger // nil: discard
	// Self is as whom the front itself asks the broker: one who may see everything. The
	// default is the process's own user.
	Self mihf.Caller
	// Public tells whether everybody has the role to see; nil: everybody has. Where not, no
	// signal is sent to all.
	Public func() bool

	// Dial makes a connection to the bus's socket; nil: package net's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	MaxSenders     int           // connections that are known at once; 1024
	MaxConnections int           // of one user, of those; 256
	MaxCalls       int           // of one user that wait; 256
	MaxStreams     int           // of one connection; 64
	Grace          time.Duration // for the broker's last words at the end of Run; 1 s
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Self == (mihf.Caller{}) {
		o.Self = mihf.Caller{Front: "dbus", UID: mihf.Some(uint32(os.Geteuid())), PID: os.Getpid()} //nolint:gosec // a uid has 32 bits
	}
	if o.Public == nil {
		o.Public = func() bool { return true }
	}
	if o.MaxSenders <= 0 {
		o.MaxSenders = 1024
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 256
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = 256
	}
	if o.MaxStreams <= 0 {
		o.MaxStreams = 64
	}
	if o.Grace <= 0 {
		o.Grace = time.Second
	}
}

// Pauses between tries.
const (
	firstPause  = 50 * time.Millisecond
	maxPause    = 2 * time.Second  // where the bus is not there
	deniedPause = 30 * time.Second // where it does not let us have the name
	joinTimeout = 2 * time.Second
)

// maxAtOnce bounds the calls that are done at once, of all senders: each has its arguments
// decoded, which may take many times the octets that they came in.
const maxAtOnce = 32

// Errors of the name.
var (
	errDenied = errors.New("the bus's policy does not let this user own the name")
	errOwned  = errors.New("another process owns the name")
)

// Server is the D-Bus front. See the package comment.
type Server struct {
	o       Options
	log     *slog.Logger
	ready   chan struct{}
	turn    chan struct{} // room for one in it lets a call be done
	named   sync.Map      // methods that a malformed call was logged of
	dicts   *encoded.Forms[variant.Dict]
	service service.Service

	counts struct {
		joined, calls, refused, malformed, signals, encodeErrors, panics, oversized atomic.Uint64
	}

	mu        sync.Mutex // guards the following
	condition mihf.SensorCondition
}

// Counts are what a server has done since New.
type Counts struct {
	Joined       uint64 // times that it got its name on a bus
	Calls        uint64 // of methods
	Refused      uint64 // calls beyond a limit
	Malformed    uint64 // calls of what is not there, or that made no sense
	Signals      uint64 // sent
	EncodeErrors uint64 // messages that could not be sent for what they hold
	Panics       uint64 // calls that ended in a panic
	Oversized    uint64 // messages that were too large to be read
}

// New returns a server that does nothing until Run.
func New(o Options) (*Server, error) {
	if o.Broker == nil || o.Address == nil {
		return nil, errors.New("D-Bus front: a broker and an address are needed")
	}
	o.setDefaults()
	s := &Server{o: o, log: o.Logger, ready: make(chan struct{}), turn: make(chan struct{}, maxAtOnce)}
	s.dicts = encoded.NewForms(o.Broker.Node(), o.Broker.Now, dictOfEvent)
	s.service = service.Of(o.Broker, s.dicts)
	s.condition = mihf.SensorCondition{Sensor: "dbus", Condition: mihf.ConditionStarting}
	return s, nil
}

// String names the task.
func (s *Server) String() string { return "dbus" }

// Ready is closed when the server is on the bus, or it is known why not.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Condition says whether the server is on the bus and, if not, what would help.
func (s *Server) Condition() mihf.SensorCondition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.condition
}

// Counts returns what the server has done.
func (s *Server) Counts() Counts {
	c := &s.counts
	return Counts{
		Joined: c.joined.Load(), Calls: c.calls.Load(), Refused: c.refused.Load(), Malformed: c.malformed.Load(),
		Signals: c.signals.Load(), EncodeErrors: c.encodeErrors.Load(), Panics: c.panics.Load(), Oversized: c.oversized.Load(),
	}
}

// Run serves until ctx ends and returns nil then. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	ready := sync.OnceFunc(func() { close(s.ready) })
	defer ready()
	pause := firstPause
	for ctx.Err() == nil {
		joined, err := s.serve(ctx, ready)
		if ctx.Err() != nil {
			break
		}
		s.state(ctx, conditionOf(err), err.Error())
		ready()
		switch {
		case joined:
			pause = firstPause
		case errors.Is(err, errDenied):
			pause = deniedPause
		}
		sleep(ctx, pause)
		if pause = 2 * pause; pause > maxPause {
			pause = maxPause
		}
	}
	s.state(ctx, mihf.ConditionStopped, "")
	return nil
}

// serve is one connection to the bus. It tells whether it got the name, and why it ended.
func (s *Server) serve(ctx context.Context, ready func()) (joined bool, err error) {
	address, err := s.o.Address()
	if err != nil {
		return false, err
	}
	bus, err := s.join(ctx, address)
	if err != nil {
		return false, err
	}
	s.counts.joined.Add(1)
	s.state(ctx, mihf.ConditionOK, "on "+address)
	ready()
	return true, bus.run(ctx)
}

func conditionOf(err error) mihf.Condition {
	if errors.Is(err, errDenied) {
		return mihf.ConditionDenied
	}
	return mihf.ConditionUnavailable
}

// state keeps the condition, and logs it where it is another one.
func (s *Server) state(ctx context.Context, c mihf.Condition, text string) {
	s.mu.Lock()
	changed := s.condition.Condition != c || s.condition.Text != text
	s.condition.Condition, s.condition.Text = c, text
	s.mu.Unlock()
	if !changed {
		return
	}
	level := slog.LevelInfo
	if c == mihf.ConditionDenied {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "message bus", "condition", c.String(), "text", text)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// nameError is why the name was not got.
func nameError(err error, hint string) error { return fmt.Errorf("%w; %s", err, hint) }

// ErrNoBus is what Options.Address returns, wrapped, where no bus is there.
var ErrNoBus = busconn.ErrNoBus
