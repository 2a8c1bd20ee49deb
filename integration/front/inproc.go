package front

import (
	"context"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
)

// InProcess is a client that calls a broker in the same process, as one caller.
type InProcess struct {
	Broker front.Broker
	Caller mihf.Caller
}

var _ clients.Client = InProcess{}

// Follow subscribes. See clients.Client, as for the others.
func (c InProcess) Follow(ctx context.Context, req mihf.SubscribeRequest) (mihf.Feed, error) {
	return clients.Follow(ctx, req, func(ctx context.Context, req mihf.SubscribeRequest) (clients.Stream, error) {
		return c.Broker.Subscribe(ctx, c.Caller, req)
	})
}

// Attach opens an attachment.
func (c InProcess) Attach(ctx context.Context) (mihf.Attachment, error) {
	return c.Broker.Attach(ctx, c.Caller)
}

// Snapshot returns the state.
func (c InProcess) Snapshot(ctx context.Context) (*mihf.Snapshot, error) {
	return c.Broker.Snapshot(ctx, c.Caller)
}

// Parameters returns the newest values of a link.
func (c InProcess) Parameters(ctx context.Context, link mihf.LinkID) (mihf.LinkStatus, error) {
	return c.Broker.Parameters(ctx, c.Caller, link)
}

// Information returns what is known of points of attachment.
func (c InProcess) Information(ctx context.Context, req mihf.InformationRequest) (*mihf.Information, error) {
	return c.Broker.Information(ctx, c.Caller, req)
}

// ConfigureThresholds applies all items or none.
func (c InProcess) ConfigureThresholds(ctx context.Context, link mihf.LinkID, items []mihf.ThresholdConfig) error {
	return c.Broker.ConfigureThresholds(ctx, c.Caller, link, items)
}

// Status returns counts and conditions.
func (c InProcess) Status(ctx context.Context) (mihf.Status, error) {
	return c.Broker.Status(ctx, c.Caller)
}

// Explain tells why a prediction was announced.
func (c InProcess) Explain(ctx context.Context, id mihf.PredictionID) (*mihf.Explanation, error) {
	return c.Broker.Explain(ctx, c.Caller, id)
}

// Record calls write for each observation.
func (c InProcess) Record(ctx context.Context, write func(*mihf.Observation) error) (uint64, error) {
	return c.Broker.Record(ctx, c.Caller, write)
}

// Close does nothing: what is open ends with its context.
func (c InProcess) Close() error { return nil }
