package clients

import (
	"context"

	"mihf.dev/mihf"
)

// Life is the life of a client, from its making to its Close. Any goroutine may use it.
type Life struct {
	ctx context.Context // ends with Close
	end context.CancelFunc
}

// NewLife begins a life. It holds nothing that must be given back.
func NewLife() *Life {
	l := &Life{}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// End ends the life, and with it what [Life.During] and [Life.Follow] gave. It may be
// called again.
func (l *Life) End() { l.end() }

// Err is ErrClientClosed once the life has ended.
func (l *Life) Err() error {
	if l.ctx.Err() != nil {
		return ErrClientClosed
	}
	return nil
}

// AfterEnd runs f, in a goroutine of its own, once the life has ended; stop takes that back,
// as that of context.AfterFunc does.
func (l *Life) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(l.ctx, f) }

// During returns a context that ends with ctx, with the life (the cause is ErrClientClosed
// then), or by its cancel function, which must be called.
func (l *Life) During(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancelCause(ctx)
	stop := l.AfterEnd(func() { cancel(ErrClientClosed) })
	context.AfterFunc(own, func() { stop() })
	return own, func() { cancel(nil) }
}

// Follow is [Follow] for as long as the life lasts.
func (l *Life) Follow(ctx context.Context, req mihf.SubscribeRequest, open Open) (mihf.Feed, error) {
	own, cancel := l.During(ctx)
	f, err := Follow(own, req, open)
	if err != nil {
		cancel()
		return nil, err
	}
	return living{f, cancel}, nil
}

// living is a feed that ends with its client.
type living struct {
	mihf.Feed
	cancel context.CancelFunc
}

// Close ends the feed.
func (f living) Close() {
	f.Feed.Close()
	f.cancel()
}
