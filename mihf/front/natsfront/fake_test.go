package natsfront

import (
	"context"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
)

func (panicking) Snapshot(context.Context, mihf.Caller) (*mihf.Snapshot, error) { panic("boom") }

// holding holds up Snapshot until it is let go.
type holding struct {
	front.Broker
	held  chan struct{}
	block chan struct{}
}

func (h holding) Snapshot(ctx context.Context, who mihf.Caller) (*mihf.Snapshot, error) {
	h.held <- struct{}{}
	<-h.block
	return h.Broker.Snapshot(ctx, who)
}
