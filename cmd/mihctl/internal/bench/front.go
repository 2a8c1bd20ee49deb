package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"mihf.dev/clients"
)

// Front is a Freeze that is due, on its way through a front to a client, one each
// millisecond: from Observe of the loss to the hint in the client's hands.
type Front struct {
	OursP50  float64 `json:"ours_p50_us"`
	BareP50  float64 `json:"bare_p50_us"` // a message of the same size, without a broker
	OursP99  float64 `json:"ours_p99_us"`
	BareP99  float64 `json:"bare_p99_us"`
	RatioP50 float64 `json:"ratio_p50"`
	Bytes    int     `json:"message_bytes"`
	Messages int     `json:"messages_per_round"`
	Rounds   int     `json:"rounds"`
	Missed   int     `json:"missed"`
}

const messageEvery = time.Millisecond

// scene is what a front's comparison needs.
type scene struct {
	bytes int // of a message
	bare  exchange
	// join serves the broker until ctx ends and connects a client to it.
	join func(ctx context.Context, b *started, tasks *sync.WaitGroup) (clients.Client, error)
	// end takes down what both ways used; nil: nothing.
	end func() error
}

// stage makes a scene. What it needs of the file system is in dir.
type stage func(ctx context.Context, dir string) (*scene, error)

// over measures a front.
func over(ctx context.Context, o *Options, open stage) (f *Front, err error) {
	dir, err := os.MkdirTemp("", "mihf-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, s.bare.close())
		if s.end != nil {
			err = errors.Join(err, s.end())
		}
	}()
	ours, err := newFreezes(ctx, s.join)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	f = &Front{Bytes: s.bytes, Messages: o.Messages, Rounds: o.Rounds}
	return f, f.measure(ctx, o, s.bare, ours)
}

// exchange is one way to bring messages to a client.
type exchange interface {
	// send sends a message, whose time was noted before.
	send() error
	// between is called half-way between two messages.
	between()
	// settle waits until the client has what was sent in the round, and returns how long
	// each took.
	settle(sent []int64) []int64
	close() error
}

// measure lets bare and ours alternate.
func (f *Front) measure(ctx context.Context, o *Options, bare, ours exchange) error {
	var p50, p99 [2][]float64
	for _, x := range []exchange{bare, ours} { // not counted: everything is made once
		if _, err := exchanged(ctx, x, 200); err != nil {
			return err
		}
	}
	for r := range o.Rounds {
		var took [2][]int64
		for k := range 2 {
			k := (k + r) % 2
			var err error
			if took[k], err = exchanged(ctx, []exchange{bare, ours}[k], o.Messages); err != nil {
				return err
			}
			f.Missed += o.Messages - len(took[k])
		}
		if len(took[0]) == 0 || len(took[1]) == 0 {
			continue // there is nothing to compare
		}
		for k := range 2 {
			p50[k], p99[k] = append(p50[k], quantile(took[k], 0.5)), append(p99[k], quantile(took[k], 0.99))
		}
	}
	if len(p50[0]) == 0 {
		return fmt.Errorf("no round was whole: %d messages are missing", f.Missed)
	}
	f.BareP50, f.OursP50 = round(median(p50[0]), 1), round(median(p50[1]), 1)
	f.BareP99, f.OursP99 = round(median(p99[0]), 1), round(median(p99[1]), 1)
	f.RatioP50 = round(ratios(p50[1], p50[0]), 3)
	return nil
}

// exchanged does one round.
func exchanged(ctx context.Context, x exchange, messages int) ([]int64, error) {
	sent := make([]int64, messages)
	var failed error
	err := pace(ctx, 2*messages, messageEvery/2, func(i int) {
		if i%2 == 1 {
			x.between()
			return
		}
		sent[i/2] = stamp()
		if err := x.send(); err != nil && failed == nil {
			failed = err
		}
	})
	if err == nil {
		err = failed
	}
	return x.settle(sent), err
}

// arrivals are the times at which a client had the messages of the round.
type arrivals struct {
	mu   sync.Mutex // guards at
	at   []int64
	more chan struct{} // full after an arrival
}

func newArrivals() *arrivals { return &arrivals{more: make(chan struct{}, 1)} }

func (a *arrivals) add() {
	now := stamp()
	a.mu.Lock()
	a.at = append(a.at, now)
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// settle waits for as many arrivals as were sent, at most a second, and starts anew.
func (a *arrivals) settle(sent []int64) []int64 {
	limit := time.After(time.Second)
	for {
		a.mu.Lock()
		if n := len(a.at); n >= len(sent) {
			took := make([]int64, len(sent))
			for i := range took {
				took[i] = a.at[i] - sent[i]
			}
			a.at = a.at[:0]
			a.mu.Unlock()
			return took
		}
		a.mu.Unlock()
		select {
		case <-a.more:
		case <-limit:
			return nil // which one is missing isn't known, so none counts
		}
	}
}
