package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	stalledEvery = 10 * time.Millisecond // 100 events/s
	// Options.Filling events go before, faster: they fill what the connection of the
	// one that stopped reading holds, so that its stream is blocked. The first ones after
	// them do not count either.
	fillEvery = 2 * time.Millisecond
	settling  = 20
)

// Stalled is one gRPC subscriber among many that stopped reading: what the others, in another
// process than the broker's, notice.
type Stalled struct {
	WithP99    float64 `json:"with_p99_us"`    // median of the others' p99
	WithoutP99 float64 `json:"without_p99_us"` // the same without it
	RatioP99   float64 `json:"ratio_p99"`
	WorstP99   float64 `json:"worst_p99_us"` // of any other in any round with it
	Missed     int     `json:"missed"`
	Neighbours int     `json:"neighbours"`
	Rounds     int     `json:"rounds"`
}

// stalled lets rounds with and without it alternate.
func stalled(ctx context.Context, o *Options) (*Stalled, error) {
	r := &Stalled{Neighbours: o.Neighbours, Rounds: o.Rounds}
	var p99 [2][]float64
	for i := range o.Rounds {
		for k := range 2 {
			with := (k+i)%2 == 1
			each, missed, err := crowd(ctx, o, with)
			if err != nil {
				return nil, err
			}
			r.Missed += missed
			if with {
				p99[1] = append(p99[1], median(each))
				for _, v := range each {
					r.WorstP99 = max(r.WorstP99, round(v, 1))
				}
			} else {
				p99[0] = append(p99[0], median(each))
			}
		}
	}
	r.WithoutP99, r.WithP99 = round(median(p99[0]), 1), round(median(p99[1]), 1)
	r.RatioP99 = round(ratios(p99[1], p99[0]), 3)
	return r, nil
}

// crowd returns each neighbour's p99 in one round.
func crowd(ctx context.Context, o *Options, withStalled bool) (p99 []float64, missed int, err error) {
	dir, err := os.MkdirTemp("", "mihf-bench-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	b, err := start(ctx)
	if err != nil {
		cancel()
		return nil, 0, err
	}
	var tasks sync.WaitGroup
	defer func() {
		cancel()
		b.end()
		tasks.Wait()
	}()
	socket := filepath.Join(dir, "mihfd.sock")
	if err := serve(ctx, b, socket, &tasks); err != nil {
		return nil, 0, err
	}
	if withStalled {
		c, _, err := follow(ctx, socket) // who never reads
		if err != nil {
			return nil, 0, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	filling, events := o.Filling, settling+o.Messages/10 // 2 s a round
	published := make([]int64, filling+events)
	observed := observe(b)
	at, err := o.heardBy(ctx, socket, len(published), func() error {
		publish := func(i int) {
			published[i] = monotonic()
			observed(i)
		}
		if err := pace(ctx, filling, fillEvery, publish); err != nil {
			return err
		}
		return pace(ctx, events, stalledEvery, func(i int) { publish(filling + i) })
	})
	for _, one := range at {
		var took []int64
		for i, t := range one {
			if t == 0 {
				missed++
			} else if i >= filling+settling {
				took = append(took, t-published[i])
			}
		}
		p99 = append(p99, quantile(took, 0.99))
	}
	return p99, missed, err
}

// heardBy returns when each neighbour had each of the events that publish publishes. They are
// in a process of their own, as clients are.
func (o *Options) heardBy(ctx context.Context, socket string, events int, publish func() error) (at [][]int64, err error) {
	argv := append(o.Clients[:len(o.Clients):len(o.Clients)], socket, strconv.Itoa(o.Neighbours), strconv.Itoa(events))
	c, err := startChild(ctx, argv...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	c.out.Buffer(nil, 64*events) // a line has some 20 octets for each
	if _, err := c.line(); err != nil {
		return nil, err
	}
	if err := publish(); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		return nil, err
	}
	for range o.Neighbours {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		var one []int64
		if err := json.Unmarshal([]byte(line), &one); err != nil || len(one) != events {
			return nil, fmt.Errorf("the clients said %.40q: %w", line, err)
		}
		at = append(at, one)
	}
	return at, nil
}
