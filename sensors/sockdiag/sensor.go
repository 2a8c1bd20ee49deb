package sockdiag

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
)

// Name is the sensor's name.
const Name = "sock_diag"

var unknown mihf.Opt[time.Duration]

// Options of a [Sensor].
type Options struct {
	Clock clock.Clock
	Log   *slog.Logger // nil discards
	Seed  uint64       // of the jitter between tries

	// Netns is an open network namespace to sense; not above 0: the daemon's own. The
	// caller closes it after Run.
	Netns netns.NsHandle
	// Addresses returns the links' addresses, "" for one that several links have. What it returns
	// is not changed after. nil: no link's addresses are known.
	Addresses func() map[netip.Addr]mihf.LinkID
	// Link returns the link with an ifindex; nil: none is known.
	Link func(index int) (mihf.LinkID, bool)

	// Poll is the time between two readings; 0: 0.5 s. While much data moves it is two fifths of that.
	Poll time.Duration
	// RegisteredOnly has only watched flows read.
	RegisteredOnly bool
}

const (
	defaultPoll    = 500 * time.Millisecond
	soonest        = 100 * time.Millisecond // after a reading, for a flow that is watched anew
	rests          = 50                     // times as long as a reading took
	longestRest    = 10 * time.Second
	requestTimeout = 5 * time.Second
	// messageBuffer holds every datagram of a dump: the kernel uses 32 KiB at most.
	messageBuffer = 64 << 10
)

// counters count since New.
type counters struct {
	readings, sockets, rejected, unwatched, heldBack, forgotten atomic.Uint64
}

// Sensor senses the TCP flows of one network namespace.
type Sensor struct {
	opt       Options
	count     counters
	watch     atomic.Pointer[watchSet]
	poke      chan struct{} // 1 slot: the watched set is another one
	malformed *sensors.Malformed
}

var _ sensors.Sensor = (*Sensor)(nil)

// New returns a sensor that is not yet running.
func New(opt Options) *Sensor {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Poll <= 0 {
		opt.Poll = defaultPoll
	}
	if opt.Addresses == nil {
		opt.Addresses = func() map[netip.Addr]mihf.LinkID { return nil }
	}
	s := &Sensor{opt: opt, poke: make(chan struct{}, 1), malformed: sensors.NewMalformed(opt.Log)}
	s.watch.Store(&watchSet{})
	return s
}

// Name returns "sock_diag".
func (s *Sensor) Name() string { return Name }

// Watch replaces the set of flows that are read wherever they are and always told of; what a tuple
// leaves open matches, but for its peer's address. The first [MaxWatched] are watched; the others are
// counted. It may be called by any goroutine, before and while the sensor runs.
func (s *Sensor) Watch(tuples []mihf.Endpoints) {
	w, left := newWatchSet(tuples)
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
		{Name: "mihf_sock_diag_readings_total", Value: c.readings.Load()},
		{Name: "mihf_sock_diag_sockets_total", Value: c.sockets.Load()},
		{Name: "mihf_sock_diag_malformed_messages_total", Value: s.malformed.Count()},
		{Name: "mihf_sock_diag_rejected_values_total", Value: c.rejected.Load()},
		{Name: "mihf_sock_diag_unwatched_flows_total", Value: c.unwatched.Load()},
		{Name: "mihf_sock_diag_held_back_readings_total", Value: c.heldBack.Load()},
		{Name: "mihf_sock_diag_forgotten_sockets_total", Value: c.forgotten.Load()},
	}
}

// Run senses until ctx ends, and then returns nil.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	r := sensors.Redial{Sensor: Name, Clock: s.opt.Clock, Log: s.opt.Log, Seed: s.opt.Seed}
	return r.Run(ctx, emit, func(ctx context.Context, report sensors.Report) error {
		conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, &netlink.Config{NetNS: max(0, int(s.opt.Netns)), MessageBufferSize: messageBuffer})
		if err != nil {
			return fmt.Errorf("open sock_diag socket: %w", err)
		}
		defer func() { _ = conn.Close() }() // nothing is under way
		ses := &session{sensor: s, conn: conn, state: newState(), watched: &watchSet{}}
		return ses.run(ctx, emit, report)
	})
}
