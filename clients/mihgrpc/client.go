package mihgrpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Options say how to connect. Fields that are zero mean the default that they name.
type Options struct {
	TLS       *tls.Config       // with a client certificate; needed for host:port
	Clock     clock.Clock       // boot time
	Keepalive time.Duration     // between probes of an idle connection; 20 s, at least 10 s
	Dial      []grpc.DialOption // more of gRPC's own
}

// maxMessage bounds what is taken in one message: a snapshot of many links and flows.
const maxMessage = 64 << 20

// window is how much may be under way to a reader that stands still. It is static, or
// gRPC would probe with a ping for each message.
const window = 64 << 10

// Client is a connection to a broker. See [clients.Client].
type Client struct {
	conn     *grpc.ClientConn
	clock    clock.Clock
	events   mihv1.EventServiceClient
	flows    mihv1.TransportServiceClient
	commands mihv1.CommandServiceClient
	info     mihv1.InformationServiceClient
	admin    mihv1.AdminServiceClient
	skipped  atomic.Uint64
	refused  atomic.Uint64

	life *clients.Life
}

var _ clients.Client = (*Client)(nil)

// Dial returns a client for "unix:///path" or "host:port"; "" is
// [clients.DefaultAddress]. It connects when it is first used.
func Dial(address string, o Options) (*Client, error) {
	if address == "" {
		address = clients.DefaultAddress()
	}
	network, addr, err := clients.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()                        // a unix socket: the kernel authenticates
	target := (&url.URL{Scheme: "unix", Path: addr}).String() // with what a path may hold escaped
	if network != "unix" {
		if o.TLS == nil {
			return nil, fmt.Errorf("address %q: TCP needs TLS with a client certificate", address)
		}
		creds, target = credentials.NewTLS(o.TLS), "dns:///"+addr
	}
	if o.Keepalive == 0 {
		o.Keepalive = 20 * time.Second
	}
	conn, err := grpc.NewClient(target, append(dialOptions(creds, o.Keepalive), o.Dial...)...)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	return &Client{
		life: clients.NewLife(), conn: conn, clock: o.Clock, events: mihv1.NewEventServiceClient(conn), flows: mihv1.NewTransportServiceClient(conn),
		commands: mihv1.NewCommandServiceClient(conn), info: mihv1.NewInformationServiceClient(conn), admin: mihv1.NewAdminServiceClient(conn),
	}, nil
}

func dialOptions(creds credentials.TransportCredentials, every time.Duration) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: every, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDisableServiceConfig(), // it is asked for in the DNS, which may be away when /etc/hosts knows the broker
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(8 << 10),
		grpc.WithWriteBufferSize(8 << 10),
	}
}

// Skipped returns how many messages could not be read.
func (c *Client) Skipped() uint64 { return c.skipped.Load() }

// RefusedAcks returns how many acknowledgements the broker refused.
func (c *Client) RefusedAcks() uint64 { return c.refused.Load() }

// Close ends the connection and, with clients.ErrClientClosed, everything on it.
func (c *Client) Close() error {
	c.life.End()
	if err := c.conn.Close(); err != nil && grpc.ErrClientConnClosing != err { //nolint:errorlint,staticcheck // gRPC's own sentinel, returned as it is
		return err
	}
	return nil
}

// errorOf turns an error of a call or stream into one of the vocabulary; nil stays nil.
func (c *Client) errorOf(err error) error {
	if closed := c.life.Err(); err != nil && closed != nil {
		return closed
	}
	return errorOf(err)
}

// decoder counts from now, the arrival of a message that was held so long.
func (c *Client) decoder(held time.Duration) conv.Decoder {
	return conv.Decoder{Now: c.clock.Now(), Held: held}
}

// Snapshot returns the state that the caller may see.
func (c *Client) Snapshot(ctx context.Context) (*mihf.Snapshot, error) {
	p, err := c.events.GetSnapshot(ctx, &mihv1.GetSnapshotRequest{})
	if err != nil {
		return nil, c.errorOf(err)
	}
	return c.decoder(0).Snapshot(p.GetSnapshot())
}

// Parameters returns the newest values of a link.
func (c *Client) Parameters(ctx context.Context, link mihf.LinkID) (mihf.LinkStatus, error) {
	p, err := c.commands.GetParameters(ctx, &mihv1.GetParametersRequest{Link: string(link)})
	if err != nil {
		return mihf.LinkStatus{}, c.errorOf(err)
	}
	return c.decoder(0).LinkStatus(p.GetStatus())
}

// Information returns what is known of points of attachment.
func (c *Client) Information(ctx context.Context, req mihf.InformationRequest) (*mihf.Information, error) {
	p, err := c.info.GetInformation(ctx, conv.EncodeInformationRequest(&req))
	if err != nil {
		return nil, c.errorOf(err)
	}
	return c.decoder(0).Information(p)
}

// ConfigureThresholds applies all items or none.
func (c *Client) ConfigureThresholds(ctx context.Context, link mihf.LinkID, items []mihf.ThresholdConfig) error {
	_, err := c.commands.ConfigureThresholds(ctx, &mihv1.ConfigureThresholdsRequest{Link: string(link), Items: conv.EncodeThresholds(items)})
	return c.errorOf(err)
}

// Status returns counts and conditions.
func (c *Client) Status(ctx context.Context) (mihf.Status, error) {
	p, err := c.admin.Status(ctx, &mihv1.StatusRequest{})
	if err != nil {
		return mihf.Status{}, c.errorOf(err)
	}
	return conv.DecodeStatus(p)
}

// Explain tells why a prediction was announced.
func (c *Client) Explain(ctx context.Context, id mihf.PredictionID) (*mihf.Explanation, error) {
	p, err := c.admin.Explain(ctx, &mihv1.ExplainRequest{PredictionId: id.String()})
	if err != nil {
		return nil, c.errorOf(err)
	}
	return c.decoder(0).Explanation(p)
}
