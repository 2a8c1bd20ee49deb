// Package front holds what every front (gRPC, NATS, D-Bus, 802.21 wire) has in common:
// the interface of the broker as fronts see it.
//
// A front is a thin adapter: it authenticates the caller, turns requests into calls of
// [Broker] and deliveries into messages. It keeps no state of links or flows, so that
// the same event is equal, field by field, through all of them.
package front

import (
	"context"

	"mihf.dev/mihf"
)

// Broker is what a front needs of the broker. All methods may be called by any
// goroutine. Errors wrap one of mihf.ErrPermission, ErrNotFound, ErrInvalid, ErrLimit,
// ErrExists or ErrClosed, or are the cause of the end of their context.
type Broker interface {
	// Now returns the broker's time, to which all times it hands out belong.
	Now() mihf.Time
	// Node returns the host's name for subjects and messages.
	Node() mihf.NodeID
	// Subscribe opens a subscription that lives until ctx ends or it is closed.
	Subscribe(ctx context.Context, who mihf.Caller, req mihf.SubscribeRequest) (mihf.Feed, error)
	// Attach opens a transport's attachment that lives until ctx ends or it is closed.
	Attach(ctx context.Context, who mihf.Caller) (mihf.Attachment, error)
	// Snapshot returns the state that the caller may see.
	Snapshot(ctx context.Context, who mihf.Caller) (*mihf.Snapshot, error)
	// Parameters returns the newest values of a link (Link_Get_Parameters).
	Parameters(ctx context.Context, who mihf.Caller, link mihf.LinkID) (mihf.LinkStatus, error)
	// Information returns what is known of points of attachment (MIH_Get_Information).
	Information(ctx context.Context, who mihf.Caller, req mihf.InformationRequest) (*mihf.Information, error)
	// ConfigureThresholds applies all items or none (Link_Configure_Thresholds).
	ConfigureThresholds(ctx context.Context, who mihf.Caller, link mihf.LinkID, items []mihf.ThresholdConfig) error
	// Status returns counts and conditions.
	Status(ctx context.Context, who mihf.Caller) (mihf.Status, error)
	// Explain tells why a prediction was announced.
	Explain(ctx context.Context, who mihf.Caller, id mihf.PredictionID) (*mihf.Explanation, error)
	// Record calls write for each observation that comes in, until ctx ends or write
	// fails. It loses none silently: what a slow writer misses is counted and returned.
	Record(ctx context.Context, who mihf.Caller, write func(*mihf.Observation) error) (lost uint64, err error)
}
