package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
)

const (
	subscribers = 100
	fanoutEvery = 100 * time.Microsecond // 10,000 events/s
	warmUp      = 3000                   // events that fill the rings
	wlan        = mihf.LinkID("wifi-00000001")
)

// Fanout is in process: one publisher, 100 subscribers, 10,000 events/s.
type Fanout struct {
	CallbackP99     float64 `json:"callback_p99_us"`  // Broker.Handle
	GoroutineP99    float64 `json:"goroutine_p99_us"` // Broker.Subscribe, a goroutine each
	BareP99         float64 `json:"bare_p99_us"`      // a goroutine and a buffered channel each
	RatioP99        float64 `json:"ratio_p99"`        // goroutine to bare
	Deliveries      float64 `json:"deliveries_per_s"` // callbacks, published without a pause
	Allocs          float64 `json:"allocs_per_event"` // callbacks and goroutines
	CallbackP50     float64 `json:"callback_p50_us"`
	GoroutineP50    float64 `json:"goroutine_p50_us"`
	BareP50         float64 `json:"bare_p50_us"`
	Missed          int     `json:"missed"` // deliveries that did not come
	EventsPerRound  int     `json:"events_per_round"`
	SubscriberCount int     `json:"subscribers"`
	Rounds          int     `json:"rounds"`
}

// way is one way to bring an event to the subscribers.
type way struct {
	publish func(i int)
	settle  func() // waits until all have everything
	close   func()
	sample  *sample
}

// sample holds when each event was published and how long it took to each subscriber.
type sample struct {
	published []int64
	took      [][]int64 // by subscriber
	done      sync.WaitGroup
}

func newSample(events, subscribers int) *sample {
	s := &sample{published: make([]int64, events), took: make([][]int64, subscribers)}
	for i := range s.took {
		s.took[i] = make([]int64, 0, events)
	}
	return s
}

// add notes that a subscriber has event i of the round.
func (s *sample) add(subscriber int, i uint64) {
	s.took[subscriber] = append(s.took[subscriber], stamp()-s.published[i])
}

func (s *sample) all() (out []int64, missed int) {
	for _, t := range s.took {
		out = append(out, t...)
		missed += len(s.published) - len(t)
	}
	return out, missed
}

func fanout(ctx context.Context, o *Options) (Fanout, error) {
	f := Fanout{EventsPerRound: o.Events, SubscriberCount: subscribers, Rounds: o.Rounds}
	var p50, p99 [3][]float64
	var rates []float64
	mallocs, events := uint64(0), 0
	for r := range o.Rounds {
		for k := range 3 {
			k := (k + r) % 3 // nobody is always first
			w, err := []func(context.Context, int) (*way, error){callbacks, goroutines, channels}[k](ctx, o.Events)
			if err != nil {
				return f, err
			}
			n, err := w.run(ctx, o.Events)
			if err != nil {
				return f, err
			}
			took, missed := w.sample.all()
			p50[k], p99[k] = append(p50[k], quantile(took, 0.5)), append(p99[k], quantile(took, 0.99))
			if f.Missed += missed; k < 2 {
				mallocs, events = mallocs+n, events+o.Events
			}
		}
		rate, err := withoutPause(ctx, o.Flood)
		if err != nil {
			return f, err
		}
		rates = append(rates, rate)
	}
	f.CallbackP50, f.GoroutineP50, f.BareP50 = round(median(p50[0]), 1), round(median(p50[1]), 1), round(median(p50[2]), 1)
	f.CallbackP99, f.GoroutineP99, f.BareP99 = round(median(p99[0]), 1), round(median(p99[1]), 1), round(median(p99[2]), 1)
	f.RatioP99 = round(ratios(p99[1], p99[2]), 3)
	f.Deliveries = round(median(rates), 0)
	f.Allocs = round(float64(mallocs)/float64(events), 2) // the runtime makes a few in a second
	return f, nil
}

// run publishes a round and returns how many allocations were made meanwhile.
func (w *way) run(ctx context.Context, events int) (mallocs uint64, err error) {
	defer w.close()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = pace(ctx, events, fanoutEvery, func(i int) {
		w.sample.published[i] = stamp()
		w.publish(i)
	})
	w.settle()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, err
}

// started is a broker that runs.
type started struct {
	*broker.Broker
	end func()
}

// start runs a broker without sensors, whose rings have their size.
func start(ctx context.Context) (*started, error) {
	cfg := broker.Config{Engine: engine.Defaults(), Version: "bench", Access: users()}
	cfg.Engine.Boot, cfg.Engine.Node = 1, "bench"
	run, cancel := context.WithCancel(ctx)
	b := &started{Broker: broker.New(cfg)}
	var loop sync.WaitGroup
	loop.Go(func() { _ = b.Run(run) }) // returns nil
	b.end = func() { cancel(); loop.Wait() }
	for range warmUp {
		b.Observe(detected())
	}
	for {
		s, err := b.Snapshot(ctx, inproc)
		if err != nil {
			b.end()
			return nil, err
		}
		if s.Sequence == warmUp {
			return b, nil
		}
	}
}

var inproc = mihf.Caller{Front: "inproc", UID: mihf.Some(uint32(0))}

// users lets everyone see everything, and the user of the NATS fronts have flows.
func users() *access.Table {
	return access.New(0, access.Of(access.See, access.RegisterOwn, access.RegisterAny), access.Grant{NATSUsers: []string{natsUser}, AsUID: mihf.Some(uint32(65534))})
}

var heard = &mihf.Detected{PoA: "02:00:00:00:00:01"}

// detected gives one Link_Detected, which nothing conflates.
func detected() *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsDetected, Link: wlan, Detected: heard}
}

// observe publishes the events of a round; o is used again.
func observe(b *started) func(int) {
	o := detected()
	return func(int) {
		o.At = b.Now()
		b.Observe(o)
	}
}

// callbacks are 100 handlers in the broker's loop.
func callbacks(ctx context.Context, events int) (*way, error) {
	b, err := start(ctx)
	if err != nil {
		return nil, err
	}
	s := newSample(events, subscribers)
	s.done.Add(1)
	for i := range subscribers {
		if _, err := b.Handle(ctx, inproc, mihf.SubscribeRequest{}, func(d *mihf.Delivery) {
			s.add(i, d.Event.Sequence-warmUp-1)
			if i == subscribers-1 && len(s.took[i]) == events {
				s.done.Done()
			}
		}); err != nil {
			return nil, err
		}
	}
	return &way{publish: observe(b), settle: s.done.Wait, close: b.end, sample: s}, nil
}

// goroutines are 100 subscriptions with a goroutine each.
func goroutines(ctx context.Context, events int) (*way, error) {
	b, err := start(ctx)
	if err != nil {
		return nil, err
	}
	s := newSample(events, subscribers)
	var ready sync.WaitGroup
	for i := range subscribers {
		feed, err := b.Subscribe(ctx, inproc, mihf.SubscribeRequest{})
		if err != nil {
			return nil, err
		}
		ready.Add(1)
		s.done.Go(func() { s.read(i, feed, ready.Done) })
	}
	ready.Wait()
	return &way{publish: observe(b), settle: s.done.Wait, close: b.end, sample: s}, nil
}

// read takes a round's events from a feed; ready is called when it has the snapshot.
func (s *sample) read(subscriber int, feed mihf.Feed, ready func()) {
	buf := make([]mihf.Delivery, 8)
	var first, last uint64
	for last == 0 || last < first+uint64(len(s.published)) {
		n, err := feed.Next(buf)
		if err != nil {
			return // what did not come is counted
		}
		for i := range buf[:n] {
			last = buf[i].Sequence()
			switch buf[i].Kind {
			case mihf.DeliverSnapshot:
				first = last
				ready()
			case mihf.DeliverEvent:
				s.add(subscriber, last-first-1)
			default:
			}
		}
	}
	feed.Close()
}

// channels are what one would write without a broker: a goroutine and a buffered channel
// for each subscriber, and a publisher that sends to all of them what they would get from
// Feed.Next.
func channels(_ context.Context, events int) (*way, error) {
	s := newSample(events, subscribers)
	to := make([]chan mihf.Delivery, subscribers)
	for i := range to {
		to[i] = make(chan mihf.Delivery, 256)
		s.done.Go(func() {
			for d := range to[i] {
				s.add(i, d.Event.Sequence)
			}
		})
	}
	d := mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: 1, Kind: mihf.LinkDetected, Link: wlan, Detected: heard}}
	publish := func(i int) {
		d.Event.Sequence = uint64(i)
		for _, c := range to {
			c <- d
		}
	}
	settle := sync.OnceFunc(func() {
		for _, c := range to {
			close(c)
		}
		s.done.Wait()
	})
	return &way{publish: publish, settle: settle, close: settle, sample: s}, nil
}

// withoutPause returns the deliveries a second to 100 handlers, published as fast as the
// broker takes them.
func withoutPause(ctx context.Context, flood int) (float64, error) {
	b, err := start(ctx)
	if err != nil {
		return 0, err
	}
	defer b.end()
	var got atomic.Int64
	done := make(chan struct{})
	for range subscribers {
		if _, err := b.Handle(ctx, inproc, mihf.SubscribeRequest{}, func(*mihf.Delivery) {
			if got.Add(1) == int64(flood*subscribers) {
				close(done)
			}
		}); err != nil {
			return 0, err
		}
	}
	publish := observe(b)
	begin := time.Now()
	for i := range flood {
		publish(i)
	}
	select {
	case <-done:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(10 * time.Second):
		return 0, fmt.Errorf("%d of %d deliveries came", got.Load(), flood*subscribers)
	}
	return float64(flood*subscribers) / time.Since(begin).Seconds(), nil
}
