package broker

import (
	"context"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// Snapshot returns the state that the caller may see.
func (b *Broker) Snapshot(ctx context.Context, who mihf.Caller) (*mihf.Snapshot, error) {
	var s *mihf.Snapshot
	err := b.do(ctx, func(now mihf.Time) { s = b.engine.Snapshot(now, b.sees(who)) })
	return s, err
}

// Parameters returns the state of one link.
func (b *Broker) Parameters(ctx context.Context, _ mihf.Caller, link mihf.LinkID) (s mihf.LinkStatus, err error) {
	stopped := b.do(ctx, func(now mihf.Time) { s, err = b.engine.LinkStatus(now, link) })
	if stopped != nil {
		return s, stopped
	}
	return s, err
}

// ConfigureThresholds applies all items to a link or none.
func (b *Broker) ConfigureThresholds(ctx context.Context, who mihf.Caller, link mihf.LinkID, items []mihf.ThresholdConfig) error {
	if err := b.cfg.Access.Command(who); err != nil {
		b.counts.refused.Add(1)
		return err
	}
	var err error
	if stopped := b.do(ctx, func(now mihf.Time) { err = b.engine.ConfigureThresholds(now, link, items) }); stopped != nil {
		return stopped
	}
	return err
}

// Explain tells why a prediction was announced. Flows of other owners are left out of it
// unless the caller may see them.
func (b *Broker) Explain(ctx context.Context, who mihf.Caller, id mihf.PredictionID) (x *mihf.Explanation, err error) {
	see := b.sees(who)
	stopped := b.do(ctx, func(mihf.Time) {
		if x, err = b.engine.Explain(id); err != nil {
			return
		}
		shown := x.Decisions[:0]
		for _, d := range x.Decisions {
			s := b.sessions[d.Flow]
			if d.Flow == "" || b.cfg.Access.Any(who) || (s != nil && see(s.owner)) {
				shown = append(shown, d)
			}
		}
		x.Decisions = shown
	})
	if stopped != nil {
		return nil, stopped
	}
	return x, err
}

// Status returns counts and conditions.
func (b *Broker) Status(ctx context.Context, _ mihf.Caller) (mihf.Status, error) {
	var s mihf.Status
	err := b.do(ctx, func(now mihf.Time) {
		links, flows := b.engine.Counts()
		refused := b.engine.Refused()
		s = mihf.Status{
			Version: b.cfg.Version, Node: b.Node(), Boot: b.Boot(), Uptime: now.Sub(b.started), Sequence: b.engine.Sequence(),
			Links: links, Flows: flows, Sensors: append([]mihf.SensorCondition(nil), b.engine.Sensors()...),
		}
		b.mu.RLock()
		s.Subscribers = len(b.feeds) + len(b.attached)
		b.mu.RUnlock()
		s.Counters = []mihf.CounterValue{
			{Name: "mihf_broker_observations_total", Value: b.counts.observations.Load()},
			{Name: "mihf_broker_events_total", Value: b.counts.events.Load()},
			{Name: "mihf_broker_hints_total", Value: b.counts.hints.Load()},
			{Name: "mihf_broker_slow_subscribers_total", Value: b.counts.slow.Load()},
			{Name: "mihf_broker_refused_requests_total", Value: b.counts.refused.Load()},
			{Name: "mihf_engine_refused_links_total", Value: refused.Links},
			{Name: "mihf_engine_refused_sensors_total", Value: refused.Sensors},
		}
	})
	return s, err
}

// handler is a subscription that runs in the loop.
type handler struct {
	filter *route.Filter
	f      func(*mihf.Delivery)
	last   uint64
}

// Handle calls f in the loop for each event and hint that req passes, until cancel. f must
// not block and not keep what it is given. There is no snapshot and no resuming, and
// nothing is conflated.
func (b *Broker) Handle(ctx context.Context, who mihf.Caller, req mihf.SubscribeRequest, f func(*mihf.Delivery)) (cancel func(), err error) {
	filter, err := route.NewFilter(&req, who, &b.cfg.Access)
	if err != nil {
		return nil, err
	}
	h := &handler{filter: filter, f: f}
	err = b.do(ctx, func(mihf.Time) {
		h.last = b.engine.Sequence()
		b.handlers = append(b.handlers[:len(b.handlers):len(b.handlers)], h)
	})
	if err != nil {
		return nil, err
	}
	return func() {
		_ = b.do(context.Background(), func(mihf.Time) { b.handlers = drop(b.handlers, h) }) // ended brokers call nobody
	}, nil
}

func (b *Broker) handle(items []queue.Item) {
	if len(b.handlers) == 0 {
		return
	}
	var d mihf.Delivery
	for i := range items {
		it := &items[i]
		d.Kind = mihf.DeliverEvent
		if it.IsHint {
			d.Kind, d.Hint = mihf.DeliverHint, it.Hint
		} else {
			d.Event = it.Event
		}
		for _, h := range b.handlers {
			if it.IsHint && h.filter.Hint(&it.Hint) || !it.IsHint && h.filter.Event(&it.Event) {
				d.Previous, h.last = h.last, it.Sequence
				h.f(&d)
			}
		}
	}
}

// tap is a recorder's bounded queue of observations.
type tap struct {
	queue chan mihf.Observation
	lost  uint64 // the loop's, until the tap is removed
}

func (t *tap) offer(o *mihf.Observation) {
	select {
	case t.queue <- *o:
	default:
		t.lost++
	}
}

// Record calls write for each observation that comes in, until ctx ends or write fails. It
// returns how many a slow writer missed.
func (b *Broker) Record(ctx context.Context, who mihf.Caller, write func(*mihf.Observation) error) (lost uint64, err error) {
	if err := b.cfg.Access.Administer(who); err != nil {
		b.counts.refused.Add(1)
		return 0, err
	}
	t := &tap{queue: make(chan mihf.Observation, b.cfg.Inputs)}
	if err := b.do(ctx, func(mihf.Time) { b.taps = append(b.taps, t) }); err != nil {
		return 0, err
	}
	err = t.drain(ctx, b.stopped, write)
	_ = b.do(context.Background(), func(mihf.Time) { b.taps = drop(b.taps, t) }) // an ended loop offers nothing more
	return t.lost, err
}

func (t *tap) drain(ctx context.Context, stopped <-chan struct{}, write func(*mihf.Observation) error) error {
	for {
		select {
		case o := <-t.queue:
			if err := write(&o); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-stopped:
			return nil
		}
	}
}

func drop[T comparable](list []T, x T) []T {
	out := make([]T, 0, len(list))
	for _, y := range list {
		if y != x {
			out = append(out, y)
		}
	}
	return out
}
