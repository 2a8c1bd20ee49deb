package nl80211

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netns"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
)

// Name is the sensor's name.
const Name = "nl80211"

// Options of a [Sensor]. The zero Options sense the daemon's own namespace.
type Options struct {
	Clock clock.Clock
	Log   *slog.Logger // nil discards
	Seed  uint64       // of the jitter between tries

	// Netns is an open network namespace to sense, and Namespace its name in ids. Not
	// above 0: the daemon's own, whose name is "". The caller closes it after Run.
	Netns     netns.NsHandle
	Namespace string

	// Link returns the id of the link with an ifindex, and false as long as it has none:
	// the sensor of links says it, so that both speak of one link. nil: the id is made from
	// the permanent hardware address here, and links that are gone are said to be.
	Link func(index int) (mihf.LinkID, bool)

	// Near is the signal, in dBm, below which it is read often; 0: -65.
	Near float64
	// PollFar and PollNear are the times between two readings of the signal; 0: 1 s and
	// 100 ms.
	PollFar, PollNear time.Duration
	// SetCQM sets a signal threshold in the driver, at Near. There is one for an
	// interface, and who sets it last wins: another program's is lost.
	SetCQM bool
	// BufferBytes is the receive buffer of the watch socket; 0: 256 KiB. It doubles after
	// an overflow, up to 8 MiB.
	BufferBytes int
	// Suspended returns how long the machine was suspended since boot; nil: clock.Suspended.
	Suspended func() time.Duration
}

const (
	defaultNear     = -65
	defaultPollFar  = time.Second
	defaultPollNear = 100 * time.Millisecond
	defaultBuffer   = 256 << 10
	maxBuffer       = 8 << 20
	reconcile       = 30 * time.Second // between two complete looks
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Near == 0 {
		o.Near = defaultNear
	}
	if o.PollFar <= 0 {
		o.PollFar = defaultPollFar
	}
	if o.PollNear <= 0 {
		o.PollNear = defaultPollNear
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = defaultBuffer
	}
	if o.Suspended == nil {
		o.Suspended = clock.Suspended
	}
	return o
}

// counters count since New.
type counters struct {
	messages, overflows, unheard, resyncs, torn, refused, rejected, undetected atomic.Uint64
}

// Sensor senses the Wi-Fi interfaces of one network namespace.
type Sensor struct {
	opt       Options
	count     counters
	buffer    int // of the watch socket; of Run's goroutine
	dial      func() (conn, error)
	own       func(index int) mihf.LinkID // ids where Options.Link is nil
	malformed *sensors.Malformed
}

var _ sensors.Sensor = (*Sensor)(nil)

// New returns a sensor that is not yet running.
func New(opt Options) *Sensor {
	s := &Sensor{opt: opt.withDefaults()}
	s.malformed = sensors.NewMalformed(s.opt.Log)
	s.buffer = s.opt.BufferBytes
	s.dial = func() (conn, error) {
		ns := 0
		if s.opt.Netns > 0 {
			ns = int(s.opt.Netns)
		}
		c, err := genetlink.Dial(&netlink.Config{NetNS: ns})
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	s.own = func(index int) mihf.LinkID { return ownID(s.opt.Netns, s.opt.Namespace, index) }
	return s
}

// Name returns "nl80211".
func (s *Sensor) Name() string { return Name }

// Counters returns what was counted since New.
func (s *Sensor) Counters() []mihf.CounterValue {
	c := &s.count
	return []mihf.CounterValue{
		{Name: "mihf_nl80211_messages_total", Value: c.messages.Load()},
		{Name: "mihf_nl80211_malformed_messages_total", Value: s.malformed.Count()},
		{Name: "mihf_nl80211_overflows_total", Value: c.overflows.Load()},
		{Name: "mihf_nl80211_unheard_bursts_total", Value: c.unheard.Load()},
		{Name: "mihf_nl80211_resyncs_total", Value: c.resyncs.Load()},
		{Name: "mihf_nl80211_interrupted_dumps_total", Value: c.torn.Load()},
		{Name: "mihf_nl80211_refused_readings_total", Value: c.refused.Load()},
		{Name: "mihf_nl80211_rejected_values_total", Value: c.rejected.Load()},
		{Name: "mihf_nl80211_undetected_total", Value: c.undetected.Load()},
	}
}

func (s *Sensor) config() config {
	return config{
		near: s.opt.Near, pollFar: s.opt.PollFar, pollNear: s.opt.PollNear, reconcile: reconcile,
		setCQM: s.opt.SetCQM, count: &s.count,
	}
}

// identify returns the id of the link with an ifindex; "": not known yet.
func (s *Sensor) identify(index int) mihf.LinkID {
	if s.opt.Link == nil {
		return s.own(index)
	}
	id, ok := s.opt.Link(index)
	if !ok {
		return ""
	}
	return id
}

// Run senses until ctx ends, and then returns nil.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	retry := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { s.awaitFamily(ctx, retry) })

	cfg := s.config()
	st, again := newState(&cfg, s.opt.Link == nil), false
	r := sensors.Redial{Sensor: Name, Clock: s.opt.Clock, Log: s.opt.Log, Seed: s.opt.Seed, Retry: retry}
	return r.Run(ctx, emit, func(ctx context.Context, report sensors.Report) error {
		for {
			ses := &session{sensor: s, state: st, emit: emit, report: report, lost: again}
			err := ses.run(ctx)
			again = again || ses.started // what happens until the next session is lost
			if !errors.Is(err, errOverflow) {
				return err
			}
			s.count.overflows.Add(1)
			s.buffer = min(2*s.buffer, maxBuffer)
		}
	})
}
