package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
)

const (
	stalledEvery = 10 * time.Millisecond // 100 events/s
	// Options.Filling events go before, faster: they fill what the connection of the
	// one that stopped reading holds, so that its stream is blocked. The first ones after
	// them do not count either.
	fillEvery = 2 * time.Millisecond
	settling  = 20
)

// Stalled is one gRPC subscriber among many that stopped reading: what the others notice.
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
	filling, events := o.Filling, settling+o.Messages/10 // 2 s a round
	s := newSample(filling+events, o.Neighbours)
	reading, giveUp := context.WithCancel(ctx)
	defer giveUp()
	clients, err := s.join(reading, socket, withStalled)
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	if err != nil {
		return nil, 0, err
	}
	observed := observe(b)
	publish := func(i int) {
		s.published[i] = stamp()
		observed(i)
	}
	if err = pace(ctx, filling, fillEvery, publish); err == nil {
		err = pace(ctx, events, stalledEvery, func(i int) { publish(filling + i) })
	}
	limit := time.AfterFunc(2*time.Second, giveUp) // who has not got all by then misses it
	s.done.Wait()
	limit.Stop()
	for _, took := range s.took {
		missed += filling + events - len(took)
		p99 = append(p99, quantile(took[min(filling+settling, len(took)):], 0.99))
	}
	return p99, missed, err
}

// join connects the neighbours, and perhaps one that never reads.
func (s *sample) join(ctx context.Context, socket string, withStalled bool) (clients []*mihgrpc.Client, err error) {
	var ready sync.WaitGroup
	for i := range len(s.took) + 1 {
		if i == len(s.took) && !withStalled {
			break
		}
		c, err := mihgrpc.Dial("unix://"+socket, mihgrpc.Options{})
		if err != nil {
			return clients, err
		}
		clients = append(clients, c)
		feed, err := c.Follow(ctx, mihf.SubscribeRequest{})
		if err != nil {
			return clients, err
		}
		if i == len(s.took) {
			break
		}
		ready.Add(1)
		s.done.Go(func() { s.read(i, feed, sync.OnceFunc(ready.Done)) })
	}
	ready.Wait()
	return clients, nil
}
