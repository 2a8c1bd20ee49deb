package rtnl

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netns"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
)

// Name is the sensor's name.
const Name = "rtnl"

// Options of a [Sensor]. The zero Options sense the daemon's own namespace.
type Options struct {
	Clock clock.Clock
	Log   *slog.Logger // nil discards
	Seed  uint64       // of the jitter between tries

	// Netns is an open network namespace to sense, and Namespace its name in facts and
	// ids. Not above 0: the daemon's own, whose name is "". The caller closes it after Run.
	Netns     netns.NsHandle
	Namespace string
	// Sysfs is where the namespace's devices are; "": /sys/class/net, and none for
	// another namespace.
	Sysfs string

	// ProbeIPv4 and ProbeIPv6 are the public addresses by which the kernel is asked for
	// its way to the outside. No packet is sent there. Invalid: addresses of a root name
	// server.
	ProbeIPv4, ProbeIPv6 netip.Addr
	// Mark and UID are what the kernel is asked with (policy rules by fwmark and user);
	// 0 and unknown: without a mark, as the daemon's own user.
	Mark uint32
	UID  mihf.Opt[uint32]

	// Settle is how old a new virtual link must be to be published; 0: 0.5 s, negative:
	// at once.
	Settle time.Duration
	// Reconcile is the time between two complete readings; 0: 30 s, the most there may be.
	Reconcile time.Duration
	// BufferBytes is the receive buffer of the watch socket; 0: 1 MiB. It doubles after an
	// overflow, up to 32 MiB. Without CAP_NET_ADMIN the kernel gives at most
	// net.core.rmem_max.
	BufferBytes int
	// Suspended returns how long the machine was suspended since boot; nil: clock.Suspended.
	Suspended func() time.Duration
	// BeforeRead is called before each read of the watch socket; a test holds the reader
	// up with it. nil: nothing.
	BeforeRead func()
}

const (
	defaultSettle    = 500 * time.Millisecond
	defaultReconcile = 30 * time.Second
	defaultBuffer    = 1 << 20
	maxBuffer        = 32 << 20
)

func (o Options) withDefaults() Options {
	if o.Netns <= 0 && o.Sysfs == "" {
		o.Sysfs = "/sys/class/net"
	}
	if !o.ProbeIPv4.Is4() {
		o.ProbeIPv4 = netip.AddrFrom4([4]byte{198, 41, 0, 4}) // a.root-servers.net
	}
	if !o.ProbeIPv6.Is6() {
		o.ProbeIPv6 = netip.MustParseAddr("2001:503:ba3e::2:30")
	}
	switch {
	case o.Settle == 0:
		o.Settle = defaultSettle
	case o.Settle < 0:
		o.Settle = 0
	}
	if o.Reconcile <= 0 || o.Reconcile > defaultReconcile {
		o.Reconcile = defaultReconcile
	}
	if o.Suspended == nil {
		o.Suspended = clock.Suspended
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = defaultBuffer
	}
	return o
}

// counters count since New.
type counters struct {
	messages, overflows, resyncs, interrupted, drift, dumps, unwatched atomic.Uint64
}

// Sensor senses one network namespace.
type Sensor struct {
	opt       Options
	count     counters
	watch     atomic.Pointer[watchSet]
	poke      chan struct{} // 1 slot: the watched set is another one
	links     directory
	malformed *sensors.Malformed
}

var _ sensors.Sensor = (*Sensor)(nil)

// New returns a sensor that is not yet running.
func New(opt Options) *Sensor {
	s := &Sensor{opt: opt.withDefaults(), poke: make(chan struct{}, 1)}
	if s.opt.Log == nil {
		s.opt.Log = slog.New(slog.DiscardHandler)
	}
	s.malformed = sensors.NewMalformed(s.opt.Log)
	s.Watch(nil)
	return s
}

// Name returns "rtnl".
func (s *Sensor) Name() string { return Name }

// Watch replaces the set of peers whose route is observed. The first [MaxPeers], in the
// order of addresses, are watched; the others are counted. It may be called by any
// goroutine, before and while the sensor runs; the routes follow within 20 ms.
func (s *Sensor) Watch(peers []netip.Addr) {
	w, left := newWatchSet(peers, s.opt.ProbeIPv4, s.opt.ProbeIPv6)
	s.count.unwatched.Add(uint64(left))
	s.watch.Store(w)
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Counters returns what was counted since New.
func (s *Sensor) Counters() []mihf.CounterValue {
	c := &s.count
	return []mihf.CounterValue{
		{Name: "mihf_rtnl_messages_total", Value: c.messages.Load()},
		{Name: "mihf_rtnl_malformed_messages_total", Value: s.malformed.Count()},
		{Name: "mihf_rtnl_overflows_total", Value: c.overflows.Load()},
		{Name: "mihf_rtnl_resyncs_total", Value: c.resyncs.Load()},
		{Name: "mihf_rtnl_interrupted_dumps_total", Value: c.interrupted.Load()},
		{Name: "mihf_rtnl_route_dumps_total", Value: c.dumps.Load()},
		{Name: "mihf_rtnl_drift_observations_total", Value: c.drift.Load()},
		{Name: "mihf_rtnl_unwatched_peers_total", Value: c.unwatched.Load()},
	}
}

// Run senses until ctx ends, and then returns nil.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	s.links.clear()
	emit = s.links.around(emit)
	st := newState(s.opt.Namespace, s.opt.Settle, sysfs(s.opt.Sysfs).device)
	buffer, again := s.opt.BufferBytes, false
	r := sensors.Redial{Sensor: Name, Clock: s.opt.Clock, Log: s.opt.Log, Seed: s.opt.Seed}
	return r.Run(ctx, emit, func(ctx context.Context, report sensors.Report) error {
		for {
			ses := &session{sensor: s, state: st, emit: emit, report: report, lost: again, buffer: buffer}
			err := ses.run(ctx)
			again = again || st.started // what happens until the next session is lost
			if !errors.Is(err, errOverflow) {
				return err
			}
			s.count.overflows.Add(1)
			buffer = min(2*buffer, maxBuffer)
		}
	})
}
