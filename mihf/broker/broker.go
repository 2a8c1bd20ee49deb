package broker

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/queue"
)

// Config holds what a broker is made of. Fields that are zero mean the default that they
// name.
type Config struct {
	Engine engine.Config // Boot must be set
	Access *access.Table // nil: everyone has access.Default
	Clock  clock.Clock   // zero: boot time
	Logger *slog.Logger  // nil: discard
	// WatchPeers is told the peers whose routes matter, from the loop: it must not block.
	WatchPeers func([]netip.Addr)
	// WatchFlows is told the 5-tuples whose transports' state matters, likewise.
	WatchFlows func([]mihf.Endpoints)
	Version    string

	Inputs         int // observations that may wait for the loop; 1024
	Replay         int // events kept for resuming; queue.DefaultKept
	Hints          int // hints kept for resuming; queue.DefaultHints
	Reports        int // reports and detections kept; queue.DefaultLoose
	MaxSubscribers int // subscriptions, attachments and recorders together; 4096
	// MaxSubscribersPerUser bounds those of one identity; 1024.
	MaxSubscribersPerUser int
	// MaxUnreadBytesPerUser bounds the snapshots that one identity's subscriptions have not
	// read; those of all may have four times as much. 32 MiB.
	MaxUnreadBytesPerUser int
	MaxFlows              int // of one user; where a link is lost, the hints to all of its flows come at once; 1024
	Mailbox               int // hints that may wait for an attachment, and 8 more for each flow; 1024
}

func (c *Config) setDefaults() {
	for _, d := range []struct {
		v *int
		n int
	}{{&c.Inputs, 1024}, {&c.MaxSubscribers, 4096}, {&c.MaxFlows, 1024}, {&c.Mailbox, 1024}, {&c.MaxSubscribersPerUser, 1024}, {&c.MaxUnreadBytesPerUser, 32 << 20}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
	if c.Access == nil {
		c.Access = access.New(0, access.Default)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Broker is a media-independent handover function: see the package comment. Its methods
// may be called by any goroutine.
type Broker struct {
	cfg      Config
	inputs   chan mihf.Observation
	requests chan *request
	turn     sleeper       // who has it owns the loop's state
	rang     atomic.Bool   // the timer fired or Run's context ended, and nobody looked since
	stopped  chan struct{} // closed when Run has ended
	started  mihf.Time

	log       *queue.Log
	published atomic.Uint64 // the log's last sequence
	closing   atomic.Bool   // nothing more will be published
	shares    shares
	access    atomic.Pointer[access.Table]
	audit     audit

	_  line
	mu sync.RWMutex // guards log: the loop writes, feeds read
	_  line

	// Owned by the loop, which is who has the turn.
	engine    *engine.Engine
	due       mihf.Time // when the engine wants to be woken; zero: never
	timer     *time.Timer
	armed     mihf.Time        // what the timer is set for; zero: it is not
	input     mihf.Observation // the one being taken
	handed    mihf.Delivery    // what handlers are given
	sessions  map[mihf.FlowID]*session
	owned     map[uint32]int // flows of each user
	attached  map[*attachment]struct{}
	hinted    []*attachment // to be woken
	feeds     []*feed       // with some that have ended
	handlers  []*handler
	taps      []*tap
	unchecked int // items published since overrun feeds were looked for

	counts counts
}

// line keeps what many readers write to off the cache lines of what all of them read.
type line [64]byte

// counts are shown in Status.
type counts struct {
	observations, events, hints, slow, refused atomic.Uint64
}

// New returns a broker that does nothing until Run.
func New(cfg Config) *Broker {
	cfg.setDefaults()
	b := &Broker{
		cfg: cfg, inputs: make(chan mihf.Observation, cfg.Inputs), requests: make(chan *request, 64),
		turn:    newSleeper(),
		stopped: make(chan struct{}), log: queue.NewLog(queue.Sizes{Kept: cfg.Replay, Hints: cfg.Hints, Loose: cfg.Reports}),
		engine: engine.New(cfg.Engine), sessions: map[mihf.FlowID]*session{}, owned: map[uint32]int{}, attached: map[*attachment]struct{}{},
		started: cfg.Clock.Now(),
	}
	b.access.Store(cfg.Access)
	b.shares.set(&cfg)
	return b
}

// Now returns the broker's time.
func (b *Broker) Now() mihf.Time { return b.cfg.Clock.Now() }

// Node returns the host's name.
func (b *Broker) Node() mihf.NodeID { return b.cfg.Engine.Node }

// Boot returns the id of this run.
func (b *Broker) Boot() mihf.BootID { return b.cfg.Engine.Boot }

// Observe publishes an observation. It copies o, and waits while the loop is
// [Config.Inputs] observations behind; after Run has ended it does nothing. Where the loop
// is asleep, the caller does its work instead of waking it: what comes of the observation,
// handlers too, then happens within Observe. So call it without a lock that a handler
// takes.
func (b *Broker) Observe(o *mihf.Observation) {
	select {
	case b.inputs <- *o:
	default:
		select {
		case b.inputs <- *o:
		case <-b.stopped:
			return
		}
	}
	if b.turn.catch() {
		defer b.turn.rest(b.waiting)
		b.step()
	}
}

// maxBatch bounds the inputs taken before what came of them is published.
const maxBatch = 32

// Run is the loop. It owns the engine until ctx ends, and returns nil. It may be called
// once.
func (b *Broker) Run(ctx context.Context) error {
	b.timer = time.AfterFunc(0, b.ring)
	defer b.timer.Stop()
	stop := context.AfterFunc(ctx, b.ring)
	defer stop()
	defer b.stop()
	for ctx.Err() == nil {
		b.step()
		b.answer()
		b.watchPeers()
		b.turn.sleep(b.waiting)
	}
	return nil
}

func (b *Broker) ring() {
	b.rang.Store(true)
	b.turn.wake()
}

// waiting reports whether there is something to do.
func (b *Broker) waiting() bool { return len(b.inputs) > 0 || len(b.requests) > 0 || b.rang.Load() }

// step does what is due and takes the inputs that wait, at most [maxBatch].
func (b *Broker) step() {
	if b.rang.Load() {
		b.rang.Store(false)
		b.armed = 0
	}
	now := b.Now()
	b.advance(now)
	for range maxBatch {
		select {
		case b.input = <-b.inputs:
			if now.Before(b.input.At) { // nothing is observed before it was
				now = b.Now()
			}
			b.takeInput(now)
			continue
		default:
		}
		break
	}
	b.publish()
	b.arm()
}

func (b *Broker) takeInput(now mihf.Time) {
	b.counts.observations.Add(1)
	for _, t := range b.taps {
		t.offer(&b.input)
	}
	b.engine.Observe(now, &b.input)
	if b.input.Kind == mihf.ObsResume {
		b.armed = 0 // timers stood still meanwhile
	}
}

// advance does what became due, before anything newer is taken (the loop may have been
// held up).
func (b *Broker) advance(now mihf.Time) {
	if b.due.Due(now) {
		b.engine.Advance(now)
		b.due = b.engine.Next()
	}
}

// arm sets the timer if the deadline has changed.
func (b *Broker) arm() {
	b.due = b.engine.Next()
	if b.due == b.armed {
		return
	}
	b.armed = b.due
	if b.due == 0 {
		b.timer.Stop()
		return
	}
	b.timer.Reset(b.cfg.Clock.Real(max(b.due.Sub(b.Now()), 0)))
}

func (b *Broker) watchPeers() {
	peers, changed := b.engine.Peers()
	if !changed {
		return
	}
	if b.cfg.WatchPeers != nil {
		b.cfg.WatchPeers(peers)
	}
	if b.cfg.WatchFlows != nil {
		b.cfg.WatchFlows(b.engine.Tuples())
	}
}

// fewFeeds is up to how many feeds are woken before the attachments that have hints: who is
// woken last runs first on the processor that wakes. With more the waking takes too long.
const fewFeeds = 8

// publish hands out what came out of the engine: hints to the attachments of their flows
// first, for they are urgent; then all to the log's readers and to the handlers.
func (b *Broker) publish() {
	items := b.engine.Out()
	if len(items) == 0 {
		return
	}
	for i := range items {
		if items[i].IsHint {
			b.post(&items[i].Hint)
		}
	}
	last := len(b.feeds) <= fewFeeds
	if !last {
		b.wakeHinted()
	}
	b.mu.Lock()
	for i := range items {
		if it := &items[i]; it.IsHint {
			b.log.AppendHint(&it.Hint)
		} else {
			b.counts.events.Add(1)
			b.log.AppendEvent(&it.Event)
		}
	}
	b.mu.Unlock()
	b.published.Store(items[len(items)-1].Sequence)
	if b.unchecked += len(items); b.unchecked >= b.log.Room()/16 {
		b.unchecked = 0
		b.endOverrun()
	}
	b.serveFeeds()
	if last {
		b.wakeHinted()
	}
	b.handle(items)
}

// stop thaws the flows and lets the feeds end once they have read what is left.
func (b *Broker) stop() {
	b.engine.Shutdown(b.Now())
	b.publish()
	b.closing.Store(true)
	b.serveFeeds()
	for a := range b.attached {
		a.wait.wake()
	}
	close(b.stopped)
}
