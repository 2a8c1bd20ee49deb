package broker

import (
	"context"
	"slices"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

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

// Record calls write for each observation that comes in, until ctx ends, the broker ends,
// or write fails. It returns how many came in and were not written: those that a slow
// writer missed, and after an error those that still waited.
func (b *Broker) Record(ctx context.Context, who mihf.Caller, write func(*mihf.Observation) error) (lost uint64, err error) {
	if err := b.require("record", who, access.Administer); err != nil {
		return 0, err
	}
	if err := b.admit(who.Identity()); err != nil {
		return 0, err
	}
	defer b.leave(who.Identity())
	t := &tap{queue: make(chan mihf.Observation, b.cfg.Inputs)}
	if err := b.do(ctx, func(mihf.Time) { b.taps = append(b.taps, t) }); err != nil {
		return 0, err
	}
	err = t.follow(ctx, b.stopped, write)
	_ = b.doAnyway(func(mihf.Time) { // an ended loop offers nothing more
		b.taps = slices.DeleteFunc(b.taps, func(x *tap) bool { return x == t })
	})
	for len(t.queue) > 0 && err == nil {
		o := <-t.queue
		err = write(&o)
	}
	lost = t.lost + uint64(len(t.queue))
	if err != nil {
		lost++ // the one that could not be written
	}
	return lost, err
}

// follow writes what comes until there is a reason to stop.
func (t *tap) follow(ctx context.Context, stopped <-chan struct{}, write func(*mihf.Observation) error) error {
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
