package broker

import (
	"context"
	"slices"
	"sync/atomic"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// handler is a subscription that runs in the loop.
type handler struct {
	filter *route.Filter
	f      func(*mihf.Delivery)
	last   uint64
	gone   atomic.Bool
}

// Handle calls f in the loop (so perhaps within somebody's Observe) for each event and hint
// that req passes, until cancel. f must not block, and must neither keep nor change what it
// is given. There is no snapshot and no resuming, so After, Boot and Present mean nothing,
// and nothing is conflated. Cancel may be called by any goroutine, by f too, and more than
// once: no call of f begins after it, but one may be under way.
func (b *Broker) Handle(ctx context.Context, who mihf.Caller, req mihf.SubscribeRequest, f func(*mihf.Delivery)) (cancel func(), err error) {
	filter, err := b.filter("handle", who, &req)
	if err != nil {
		return nil, err
	}
	h := &handler{filter: filter, f: f}
	err = b.do(ctx, func(mihf.Time) {
		h.last = b.engine.Sequence()
		b.dropHandlers()
		b.handlers = append(b.handlers, h)
	})
	if err != nil {
		return nil, err
	}
	return func() { h.gone.Store(true) }, nil
}

func (b *Broker) dropHandlers() {
	b.handlers = slices.DeleteFunc(b.handlers, func(h *handler) bool { return h.gone.Load() })
}

// handle gives the items to the handlers.
func (b *Broker) handle(items []queue.Item) {
	if len(b.handlers) == 0 {
		return
	}
	anyGone := false
	d := &b.handed
	for i := range items {
		it := &items[i]
		if it.IsHint {
			d.Kind, d.Hint = mihf.DeliverHint, it.Hint
		} else {
			d.Kind, d.Event = mihf.DeliverEvent, it.Event
		}
		for _, h := range b.handlers {
			switch {
			case h.gone.Load():
				anyGone = true
			case it.IsHint && h.filter.Hint(&it.Hint), !it.IsHint && h.filter.Event(&it.Event):
				d.Previous, h.last = h.last, it.Sequence
				h.f(d)
			}
		}
	}
	if anyGone {
		b.dropHandlers()
	}
}
