package broker

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// Config holds what a broker is made of. Fields that are zero mean the default that they
// name.
type Config struct {
	Engine engine.Config // Boot must be set
	Access route.Access
	Clock  clock.Clock  // zero: boot time
	Logger *slog.Logger // nil: discard
	// WatchPeers is told the peers whose routes matter, from the loop: it must not block.
	WatchPeers func([]netip.Addr)
	Version    string

	Inputs         int // observations that may wait for the loop; 1024
	Replay         int // events and hints kept for resuming; queue.DefaultKept
	Reports        int // reports and detections kept; queue.DefaultLoose
	MaxSubscribers int // subscriptions and attachments together; 4096
	MaxFlows       int // of one attachment; 4096
	Mailbox        int // hints that may wait for an attachment; 1024
}

func (c *Config) setDefaults() {
	for _, d := range []struct {
		v *int
		n int
	}{{&c.Inputs, 1024}, {&c.MaxSubscribers, 4096}, {&c.MaxFlows, 4096}, {&c.Mailbox, 1024}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
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
	requests chan func(now mihf.Time)
	stopped  chan struct{} // closed when Run has ended
	started  mihf.Time

	mu      sync.RWMutex // guards the following
	news    *sync.Cond   // on mu's read side: the log grew, or a feed ended
	log     *queue.Log
	feeds   map[*feed]struct{}
	closing bool

	// Owned by the loop.
	engine   *engine.Engine
	sessions map[mihf.FlowID]*session
	attached map[*attachment]struct{}
	handlers []*handler
	taps     []*tap
	sinceGC  int // items appended since overrun cursors were looked for
	ids      idSource

	counts counts
}

// counts are shown in Status.
type counts struct {
	observations, events, hints, slow, refused, handled atomic.Uint64
}

// New returns a broker that does nothing until Run.
func New(cfg Config) *Broker {
	cfg.setDefaults()
	b := &Broker{
		cfg: cfg, inputs: make(chan mihf.Observation, cfg.Inputs), requests: make(chan func(mihf.Time)),
		stopped: make(chan struct{}), log: queue.NewLog(cfg.Replay, cfg.Reports), feeds: map[*feed]struct{}{},
		engine: engine.New(cfg.Engine), sessions: map[mihf.FlowID]*session{}, attached: map[*attachment]struct{}{},
		started: cfg.Clock.Now(), ids: newIDSource(),
	}
	b.news = sync.NewCond(b.mu.RLocker())
	return b
}

// Now returns the broker's time.
func (b *Broker) Now() mihf.Time { return b.cfg.Clock.Now() }

// Node returns the host's name.
func (b *Broker) Node() mihf.NodeID { return b.cfg.Engine.Node }

// Boot returns the id of this run.
func (b *Broker) Boot() mihf.BootID { return b.cfg.Engine.Boot }

// Observe publishes an observation. It copies o, and waits while the loop is
// [Config.Inputs] observations behind; after Run has ended it does nothing.
func (b *Broker) Observe(o *mihf.Observation) {
	select {
	case b.inputs <- *o:
	case <-b.stopped:
	}
}

// maxBatch bounds the inputs taken before what came of them is published.
const maxBatch = 32

// Run is the loop. It owns the engine until ctx ends, and returns nil. It may be called
// once.
func (b *Broker) Run(ctx context.Context) error {
	defer b.stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-b.inputs:
			b.takeInputs(&o)
		case f := <-b.requests:
			b.takeRequest(f)
		case <-timer.C:
		}
		now := b.Now()
		b.engine.Advance(now)
		b.publish()
		b.watchPeers()
		b.arm(timer, now)
	}
}

func (b *Broker) takeInputs(o *mihf.Observation) {
	for n := 1; ; n++ {
		b.counts.observations.Add(1)
		for _, t := range b.taps {
			t.offer(o)
		}
		b.engine.Observe(b.Now(), o)
		if n == maxBatch {
			return
		}
		select {
		case *o = <-b.inputs:
		default:
			return
		}
	}
}

func (b *Broker) takeRequest(f func(mihf.Time)) {
	now := b.Now()
	b.engine.Advance(now) // a snapshot shows nothing that is overdue
	b.publish()
	f(now)
}

func (b *Broker) arm(timer *time.Timer, now mihf.Time) {
	wait := time.Hour
	if next := b.engine.Next(); next != 0 {
		wait = b.cfg.Clock.Real(max(next.Sub(now), 0))
	}
	timer.Reset(wait)
}

func (b *Broker) watchPeers() {
	if b.cfg.WatchPeers == nil {
		return
	}
	if peers, changed := b.engine.Peers(); changed {
		b.cfg.WatchPeers(peers)
	}
}

// publish moves what came out of the engine into the log and wakes its readers.
func (b *Broker) publish() {
	items := b.engine.Out()
	if len(items) == 0 {
		return
	}
	b.mu.Lock()
	for i := range items {
		b.append(&items[i])
	}
	b.sinceGC += len(items)
	if b.sinceGC >= overrunCheck {
		b.sinceGC = 0
		b.endOverrun()
	}
	b.mu.Unlock()
	for i := range items {
		if items[i].IsHint {
			if s := b.sessions[items[i].Hint.Flow]; s != nil {
				s.to.wakeUp()
			}
		}
	}
	b.news.Broadcast()
	b.handle(items)
}

func (b *Broker) append(it *queue.Item) {
	if !it.IsHint {
		b.counts.events.Add(1)
		b.log.AppendEvent(&it.Event)
		return
	}
	b.counts.hints.Add(1)
	place := b.log.AppendHint(&it.Hint)
	if s := b.sessions[it.Hint.Flow]; s != nil {
		s.epoch, s.made = it.Hint.Epoch, it.Hint.At
		s.to.push(place)
	}
}

// stop thaws the flows and ends the feeds once they have read what is left.
func (b *Broker) stop() {
	b.engine.Shutdown(b.Now())
	b.publish()
	b.mu.Lock()
	b.closing = true
	for a := range b.attached {
		a.wakeUp()
	}
	b.mu.Unlock()
	b.news.Broadcast()
	close(b.stopped)
}

// do runs f in the loop and waits for it. It fails with mihf.ErrClosed once Run has ended.
func (b *Broker) do(ctx context.Context, f func(now mihf.Time)) error {
	done := make(chan struct{})
	select {
	case b.requests <- func(now mihf.Time) { f(now); close(done) }:
		<-done
		return nil
	case <-b.stopped:
		return mihf.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
