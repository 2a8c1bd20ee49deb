package grpcfront

import (
	"context"
	"slices"
	"strings"
	"sync"

	"mihf.dev/mihf"
)

// large is some 200 KiB of a snapshot.
var large = slices.Repeat([]mihf.SensorCondition{{Sensor: "test", Text: strings.Repeat("x", 1000)}}, 200)

// fake is a broker that a test plays by hand.
type fake struct {
	err   error // that every request gets
	panic bool  // in Status
	large bool  // Snapshot's

	mu      sync.Mutex // guards the following
	callers []mihf.Caller
	feeds   []*fakeFeed
	specs   []mihf.FlowSpec
	opened  chan *fakeFeed
}

func newFake() *fake { return &fake{opened: make(chan *fakeFeed, 64)} }

func (b *fake) note(who mihf.Caller) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.callers = append(b.callers, who)
	return b.err
}

func (b *fake) lastCaller() mihf.Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.callers[len(b.callers)-1]
}

func (b *fake) open(ctx context.Context) *fakeFeed {
	f := &fakeFeed{b: b, items: make(chan mihf.Delivery, 1024), done: make(chan struct{})}
	context.AfterFunc(ctx, func() { f.finish(context.Cause(ctx)) })
	b.mu.Lock()
	b.feeds = append(b.feeds, f)
	b.mu.Unlock()
	b.opened <- f
	return f
}

func (b *fake) Now() mihf.Time    { return 1000 }
func (b *fake) Node() mihf.NodeID { return "n" }
func (b *fake) Subscribe(ctx context.Context, who mihf.Caller, _ mihf.SubscribeRequest) (mihf.Feed, error) {
	if err := b.note(who); err != nil {
		return nil, err
	}
	return b.open(ctx), nil
}

func (b *fake) Attach(ctx context.Context, who mihf.Caller) (mihf.Attachment, error) {
	if err := b.note(who); err != nil {
		return nil, err
	}
	return b.open(ctx), nil
}

func (b *fake) Snapshot(_ context.Context, who mihf.Caller) (*mihf.Snapshot, error) {
	s := &mihf.Snapshot{Boot: 1, Sequence: 5, At: 900}
	if b.large {
		s.Sensors = large
	}
	return s, b.note(who)
}

func (b *fake) Parameters(_ context.Context, who mihf.Caller, link mihf.LinkID) (mihf.LinkStatus, error) {
	return mihf.LinkStatus{Link: link}, b.note(who)
}

func (b *fake) Information(_ context.Context, who mihf.Caller, _ mihf.InformationRequest) (*mihf.Information, error) {
	return &mihf.Information{At: 900}, b.note(who)
}

func (b *fake) ConfigureThresholds(_ context.Context, who mihf.Caller, _ mihf.LinkID, _ []mihf.ThresholdConfig) error {
	return b.note(who)
}

func (b *fake) Status(_ context.Context, who mihf.Caller) (mihf.Status, error) {
	if b.panic {
		panic("planted")
	}
	return mihf.Status{Boot: 1, Version: "v"}, b.note(who)
}

func (b *fake) Explain(_ context.Context, who mihf.Caller, id mihf.PredictionID) (*mihf.Explanation, error) {
	return &mihf.Explanation{Prediction: mihf.Prediction{ID: id}}, b.note(who)
}

func (b *fake) Record(ctx context.Context, who mihf.Caller, write func(*mihf.Observation) error) (uint64, error) {
	if err := b.note(who); err != nil {
		return 0, err
	}
	if err := write(&mihf.Observation{At: 900, Kind: mihf.ObsScan, Scanning: true}); err != nil {
		return 3, err
	}
	<-ctx.Done()
	return 3, nil
}

// fakeFeed is a feed and an attachment.
type fakeFeed struct {
	b     *fake
	items chan mihf.Delivery
	once  sync.Once
	done  chan struct{}
	err   error
}

func (f *fakeFeed) Next(buf []mihf.Delivery) (int, error) {
	select {
	case buf[0] = <-f.items:
		return 1, nil
	default:
	}
	select {
	case buf[0] = <-f.items:
		return 1, nil
	case <-f.done:
		return 0, f.err
	}
}

func (f *fakeFeed) Done() <-chan struct{} { return f.done }

func (f *fakeFeed) Err() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

func (f *fakeFeed) Close() { f.finish(mihf.ErrClosed) }

func (f *fakeFeed) finish(err error) {
	f.once.Do(func() { f.err = err; close(f.done) })
}

// Register answers, and has a hint ready at the same moment.
func (f *fakeFeed) Register(s mihf.FlowSpec) (mihf.Registration, error) {
	f.b.mu.Lock()
	f.b.specs = append(f.b.specs, s)
	f.b.mu.Unlock()
	f.items <- mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{Sequence: 1, Boot: 1, Flow: "F", Epoch: 1, Kind: mihf.HintFreeze, At: 900}}
	return mihf.Registration{Flow: "F", Boot: 1}, f.b.err
}

func (f *fakeFeed) Update(mihf.FlowUpdate) error { return f.b.err }
func (f *fakeFeed) Unregister(mihf.FlowID) error { return mihf.ErrNotFound }
func (f *fakeFeed) Acknowledge(a mihf.Ack) error {
	if a.Epoch == 9 {
		return mihf.ErrNotFound
	}
	return nil
}
