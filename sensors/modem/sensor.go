package modem

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
)

// Name is the sensor's name.
const Name = "modem"

// Options of a [Sensor].
type Options struct {
	Clock clock.Clock
	Log   *slog.Logger // nil discards
	Seed  uint64       // of the jitter between tries

	// Address finds the bus that ModemManager is on; nil: the system bus.
	Address func() (string, error)
	// Link returns the id of the link with an ifindex, and false as long as it has none: the
	// sensor of links says it, so that both speak of one link. nil: each modem is a link of
	// its own.
	Link func(index int) (mihf.LinkID, bool)
	// Interface returns the ifindex of a network interface, and false where there is none;
	// nil: those of the namespace that Run is called in.
	Interface func(name string) (index int, ok bool)

	// Poll is the time between two readings of the signal that ModemManager is asked for, in
	// whole seconds; 0: 5 s. Negative: it is not asked for any.
	Poll time.Duration
	// ThresholdDB is the change of the signal that modems are asked to report by themselves,
	// where they can; not above 0: they are not asked.
	ThresholdDB int
	// NeverPoll names modems, by equipment id, device id or device, whose signal is not asked
	// for in any way.
	NeverPoll []string
	// NoCells leaves out the question for the serving cell.
	NoCells bool

	// Suspended returns how long the machine was suspended since boot; nil: clock.Suspended.
	Suspended func() time.Duration
}

const (
	defaultPoll = 5 * time.Second
	reconcile   = 30 * time.Second // between two complete readings
)

// counters count since New.
type counters struct {
	signals, overflows, resyncs, calls, unanswered, refused, rejected atomic.Uint64
}

// bus is what the sensor needs of a connection to a message bus.
type bus interface {
	Call(ctx context.Context, dest string, path dbus.ObjectPath, method string, args ...any) ([]any, error)
	Bus(ctx context.Context, method string, args ...any) ([]any, error)
	Done() <-chan struct{}
	Close()
}

// Sensor senses the modems of a ModemManager.
type Sensor struct {
	opt       Options
	count     counters
	malformed *sensors.Malformed
	dial      func(ctx context.Context, o busconn.Options) (bus, error)
}

var _ sensors.Sensor = (*Sensor)(nil)

// New returns a sensor that is not yet running.
func New(opt Options) *Sensor {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Poll == 0 {
		opt.Poll = defaultPoll
	}
	if opt.Address == nil {
		opt.Address = busconn.SystemAddress
	}
	if opt.Interface == nil {
		opt.Interface = interfaceIndex
	}
	if opt.Suspended == nil {
		opt.Suspended = clock.Suspended
	}
	s := &Sensor{opt: opt, malformed: sensors.NewMalformed(opt.Log)}
	s.dial = s.connect
	return s
}

// maxAnswer is the largest answer that is read; all modems with all that they have are some
// ten kilobytes each.
const maxAnswer = 1 << 20

func (s *Sensor) connect(ctx context.Context, o busconn.Options) (bus, error) {
	address, err := s.opt.Address()
	if err != nil {
		return nil, err
	}
	o.MaxMessage = maxAnswer
	c, err := busconn.Open(ctx, address, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func interfaceIndex(name string) (int, bool) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, false
	}
	return i.Index, true
}

// Name returns "modem".
func (s *Sensor) Name() string { return Name }

// Counters returns what was counted since New.
func (s *Sensor) Counters() []mihf.CounterValue {
	c := &s.count
	return []mihf.CounterValue{
		{Name: "mihf_modem_signals_total", Value: c.signals.Load()},
		{Name: "mihf_modem_malformed_messages_total", Value: s.malformed.Count()},
		{Name: "mihf_modem_overflows_total", Value: c.overflows.Load()},
		{Name: "mihf_modem_resyncs_total", Value: c.resyncs.Load()},
		{Name: "mihf_modem_calls_total", Value: c.calls.Load()},
		{Name: "mihf_modem_unanswered_calls_total", Value: c.unanswered.Load()},
		{Name: "mihf_modem_refused_calls_total", Value: c.refused.Load()},
		{Name: "mihf_modem_rejected_values_total", Value: c.rejected.Load()},
	}
}

func (s *Sensor) config() *config {
	return &config{
		poll: max(s.opt.Poll, 0), threshold: uint32(max(s.opt.ThresholdDB, 0)), never: s.opt.NeverPoll,
		cells: !s.opt.NoCells, reconcile: reconcile, count: &s.count,
	}
}

// Run senses until ctx ends, and then returns nil.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	st, again := newState(s.config()), false
	r := sensors.Redial{Sensor: Name, Clock: s.opt.Clock, Log: s.opt.Log, Seed: s.opt.Seed}
	return r.Run(ctx, emit, func(ctx context.Context, report sensors.Report) error {
		ses := &session{sensor: s, state: st, emit: emit, report: report, lost: again}
		err := ses.run(ctx)
		again = again || ses.started // what happens until the next session is lost
		return err
	})
}
