package mihdbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/godbus/dbus/v5"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/clock"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// Options say how to connect. Fields that are zero mean the default that they name.
type Options struct {
	Clock clock.Clock // boot time
	Queue int         // deliveries of one subscription or attachment that wait for its reader; 1024
	// Dial makes a connection to the bus's socket; nil: package net's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// maxMessage bounds what is taken in one message: a snapshot of many links and flows.
const maxMessage = busconn.MaxSend

// Client is a client of the broker on a bus. See [clients.Client].
type Client struct {
	o         Options
	addresses []func() (string, error) // of buses, in the order in which they are tried
	skipped   atomic.Uint64
	streams   atomic.Uint64 // numbers given

	life *clients.Life

	dialling chan struct{} // full while somebody dials
	mu       sync.Mutex    // guards the following
	shared   *link         // nil: not connected
}

var _ clients.Client = (*Client)(nil)

// Dial returns a client of the broker on the bus at an address; "" is the system bus and,
// where that or a broker on it is not there, the session bus. It connects when it is first
// used.
func Dial(address string, o Options) (*Client, error) {
	if o.Queue <= 0 {
		o.Queue = 1024
	}
	c := &Client{o: o, life: clients.NewLife(), dialling: make(chan struct{}, 1)}
	if address == "" {
		c.addresses = []func() (string, error){busconn.SystemAddress, busconn.SessionAddress}
	} else {
		if err := busconn.Check(address); err != nil {
			return nil, err
		}
		c.addresses = []func() (string, error){func() (string, error) { return address, nil }}
	}
	return c, nil
}

// Skipped returns how many messages could not be read, or were of a kind that is not known.
func (c *Client) Skipped() uint64 { return c.skipped.Load() }

// Close ends the connections and, with mihf.ErrClosed, everything on them.
func (c *Client) Close() error {
	c.life.End()
	c.mu.Lock()
	shared := c.shared
	c.mu.Unlock()
	if shared != nil {
		shared.close()
	}
	return nil
}

// connection returns the shared connection, and makes it where there is none.
func (c *Client) connection(ctx context.Context) (*link, error) {
	select {
	case c.dialling <- struct{}{}:
		defer func() { <-c.dialling }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := c.life.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	shared := c.shared
	c.mu.Unlock()
	if shared != nil && shared.alive() {
		return shared, nil
	}
	shared, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.shared = shared
	c.mu.Unlock()
	if err := c.life.Err(); err != nil { // Close did not see it
		shared.close()
		return nil, err
	}
	return shared, nil
}

// errorOf turns an error of a call into one of the vocabulary; nil stays nil.
func (c *Client) errorOf(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case c.life.Err() != nil:
		return c.life.Err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return vocabulary(err)
}

// vocabulary turns an error of the bus into one of the vocabulary.
func vocabulary(err error) error {
	if _, remote := errors.AsType[dbus.Error](err); remote {
		return dbusapi.FromReply(err)
	}
	for _, kind := range []error{mihf.ErrClosed, mihf.ErrPermission, mihf.ErrInvalid, mihf.ErrLimit, mihf.ErrSlow} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", mihf.ErrClosed, err)
}

// call calls a method of the broker on the shared connection.
func (c *Client) call(ctx context.Context, method string, args ...any) ([]any, error) {
	own, cancel := c.life.During(ctx)
	defer cancel()
	l, err := c.connection(own)
	if err != nil {
		return nil, c.errorOf(own, err)
	}
	body, err := l.call(own, method, args...)
	return body, c.errorOf(own, err)
}

// ask calls a method that answers with a dictionary, and reads it into m.
func (c *Client) ask(ctx context.Context, m message, method string, args ...any) error {
	body, err := c.call(ctx, method, args...)
	if err != nil {
		return err
	}
	return read(body, m)
}

// decoder counts from now, the arrival of an answer.
func (c *Client) decoder() conv.Decoder { return conv.Decoder{Now: c.o.Clock.Now()} }

// Snapshot returns the state that the caller may see.
func (c *Client) Snapshot(ctx context.Context) (*mihf.Snapshot, error) {
	var p mihv1.Snapshot
	if err := c.ask(ctx, &p, dbusapi.MethodGetSnapshot); err != nil {
		return nil, err
	}
	return c.decoder().Snapshot(&p)
}

// Parameters returns the newest values of a link.
func (c *Client) Parameters(ctx context.Context, link mihf.LinkID) (mihf.LinkStatus, error) {
	var p mihv1.LinkStatus
	if err := c.ask(ctx, &p, dbusapi.MethodGetParameters, string(link)); err != nil {
		return mihf.LinkStatus{}, err
	}
	return c.decoder().LinkStatus(&p)
}

// Information returns what is known of points of attachment.
func (c *Client) Information(ctx context.Context, req mihf.InformationRequest) (*mihf.Information, error) {
	var p mihv1.GetInformationResponse
	if err := c.ask(ctx, &p, dbusapi.MethodGetInformation, variant.Encode(conv.EncodeInformationRequest(&req))); err != nil {
		return nil, err
	}
	return c.decoder().Information(&p)
}

// ConfigureThresholds applies all items or none.
func (c *Client) ConfigureThresholds(ctx context.Context, link mihf.LinkID, items []mihf.ThresholdConfig) error {
	_, err := c.call(ctx, dbusapi.MethodConfigureThresholds, string(link), variant.EncodeList(conv.EncodeThresholds(items)))
	return err
}

// Status returns counts and conditions.
func (c *Client) Status(ctx context.Context) (mihf.Status, error) {
	var p mihv1.StatusResponse
	if err := c.ask(ctx, &p, dbusapi.MethodStatus); err != nil {
		return mihf.Status{}, err
	}
	return conv.DecodeStatus(&p)
}

// Explain tells why a prediction was announced.
func (c *Client) Explain(ctx context.Context, id mihf.PredictionID) (*mihf.Explanation, error) {
	var p mihv1.ExplainResponse
	if err := c.ask(ctx, &p, dbusapi.MethodExplain, id.String()); err != nil {
		return nil, err
	}
	return c.decoder().Explanation(&p)
}
