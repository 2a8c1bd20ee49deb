package clients

import (
	"context"
	"fmt"

	"mihf.dev/mihf"
)

// ErrClientClosed is the mihf.ErrClosed of what is open on, or asked of, a client that was
// closed: trying again is of no use.
var ErrClientClosed = fmt.Errorf("%w: by its client", mihf.ErrClosed)

// Client is a connection to a broker. Its methods may be called by any goroutine. Errors
// wrap those of the vocabulary; mihf.ErrClosed: the broker cannot be reached, or stops.
type Client interface {
	// Follow subscribes, and resumes by itself until ctx ends. See the package comment.
	Follow(ctx context.Context, req mihf.SubscribeRequest) (mihf.Feed, error)
	// Attach opens a transport's attachment. It ends when its connection ends; package
	// attach opens it again.
	Attach(ctx context.Context) (mihf.Attachment, error)
	// Snapshot returns the state that the caller may see.
	Snapshot(ctx context.Context) (*mihf.Snapshot, error)
	// Parameters returns the newest values of a link (Link_Get_Parameters).
	Parameters(ctx context.Context, link mihf.LinkID) (mihf.LinkStatus, error)
	// Information returns what is known of points of attachment (MIH_Get_Information).
	Information(ctx context.Context, req mihf.InformationRequest) (*mihf.Information, error)
	// ConfigureThresholds applies all items or none (Link_Configure_Thresholds).
	ConfigureThresholds(ctx context.Context, link mihf.LinkID, items []mihf.ThresholdConfig) error
	// Status returns counts and conditions.
	Status(ctx context.Context) (mihf.Status, error)
	// Explain tells why a prediction was announced.
	Explain(ctx context.Context, id mihf.PredictionID) (*mihf.Explanation, error)
	// Record calls write for each observation that the broker takes, until ctx ends or
	// write fails, and returns how many it missed.
	Record(ctx context.Context, write func(*mihf.Observation) error) (lost uint64, err error)
	// Close ends what is open on the client, and whatever is asked of it later, with
	// ErrClientClosed. It may be called twice.
	Close() error
}
