package sensors

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// Times between two tries.
const (
	RetryDenied      = 5 * time.Minute
	RetryUnavailable = time.Minute
	backoffMin       = 100 * time.Millisecond
	backoffMax       = 30 * time.Second
	// healthyAfter is how long a session must have worked for the back-off to start anew.
	healthyAfter = 10 * time.Second
)

// Report tells the condition that a session has reached. It is called by the goroutine
// that runs the session.
type Report func(c mihf.Condition, text string)

// Session is one try of a sensor: it connects, reports mihf.ConditionOK when it works,
// goes on until ctx ends or something fails, and has cleaned up when it returns.
type Session func(ctx context.Context, report Report) error

// Redial runs a sensor's sessions one after the other. A missing permission is tried
// again after [RetryDenied], what is not there after [RetryUnavailable]; every other
// error backs off from 0.1 s, doubling up to 30 s, each wait between half and all of it.
type Redial struct {
	Sensor string
	Clock  clock.Clock
	Log    *slog.Logger // nil discards
	// Seed decides the jitter.
	Seed uint64
	// Retry, where it is not nil, ends a wait by a receive: try now.
	Retry <-chan struct{}

	emit    Emit
	fold    *Fold
	last    mihf.SensorCondition
	okSince mihf.Time // of this session; zero: it has not worked yet
}

// Run runs sessions until ctx ends, and then returns nil. It emits the sensor's
// condition when it changes, first of all mihf.ConditionStarting.
func (r *Redial) Run(ctx context.Context, emit Emit, session Session) error {
	r.emit = emit
	r.fold = NewFold(r.Log)
	r.last = mihf.SensorCondition{Sensor: r.Sensor, Condition: mihf.ConditionStopped}
	rng := rand.New(rand.NewPCG(r.Seed, 0x6d696866))
	backoff := backoffMin
	r.report(ctx, mihf.ConditionStarting, "")
	for !over(ctx) {
		err := r.try(ctx, session)
		if over(ctx) {
			break
		}
		now := r.Clock.Now()
		r.fold.Failed(now, err)
		if !r.okSince.IsZero() && now.Sub(r.okSince) >= healthyAfter {
			backoff = backoffMin
		}
		c := Classify(err)
		r.report(ctx, c, describe(err))
		var wait time.Duration
		switch c {
		case mihf.ConditionDenied:
			wait = RetryDenied
		case mihf.ConditionUnavailable:
			wait = RetryUnavailable
		default:
			wait = backoff/2 + time.Duration(rng.Int64N(int64(backoff/2)+1))
			backoff = min(2*backoff, backoffMax)
		}
		r.wait(ctx, wait)
	}
	return nil
}

func over(ctx context.Context) bool { return ctx.Err() != nil }

func (r *Redial) try(ctx context.Context, session Session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.okSince = 0
	err := Guard(func() error {
		return session(ctx, func(c mihf.Condition, text string) { r.report(ctx, c, text) })
	})
	if err == nil {
		err = errors.New("the session ended by itself")
	}
	return err
}

func (r *Redial) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-r.Retry:
	}
}

// report emits the condition if it is another one than before.
func (r *Redial) report(ctx context.Context, c mihf.Condition, text string) {
	now := r.Clock.Now()
	if c == mihf.ConditionOK {
		r.fold.Recovered()
		if r.okSince.IsZero() {
			r.okSince = now
		}
	}
	next := mihf.SensorCondition{Sensor: r.Sensor, Condition: c, Text: text}
	if next == r.last || ctx.Err() != nil {
		return
	}
	r.last = next
	r.emit(&mihf.Observation{At: now, Sensor: r.Sensor, Kind: mihf.ObsCondition, Condition: &next})
}
