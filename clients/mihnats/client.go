package mihnats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// Options say how to connect. Fields that are zero mean the default that they name.
type Options struct {
	// Node is the host that is asked. "": the one that answers, if just one does.
	Node mihf.NodeID
	// User is one of the server's, with a Password or, without it, another credential. The
	// client's inboxes begin with "_INBOX.<user>.": the daemon's own server lets a user
	// listen on these alone. "": no user is named.
	User, Password string
	Credentials    string // path of a .creds file
	NkeySeed       string // path of a file with a user's seed
	TLS            *tls.Config
	// InProcess connects to a server in this process, in the place of an address.
	InProcess nats.InProcessConnProvider
	Clock     clock.Clock   // boot time
	Timeout   time.Duration // of a request whose context has no end; 5 s
	NATS      []nats.Option // more of the library's own
}

// Times and sizes of connections.
const (
	pingEvery   = 10 * time.Second
	maxPings    = 2
	dialTimeout = 2 * time.Second
	maxWait     = 2 * time.Second // between tries to connect
	writeWait   = 5 * time.Second
)

// Client is a connection to a broker by way of a NATS server. See [clients.Client].
type Client struct {
	o       Options
	set     nats.Options
	link    atomic.Pointer[nats.Conn]
	clock   clock.Clock
	way     way
	skipped atomic.Uint64
	refused atomic.Uint64

	life *clients.Life

	closing sync.Mutex // held while connecting again, and while closing

	mu        sync.Mutex // guards the following
	node      mihf.NodeID
	listening map[*listener]struct{}
	changed   chan struct{} // closed when the connection changes state
	denied    error         // the newest thing that the server did not allow
}

var _ clients.Client = (*Client)(nil)

// Dial returns a client for the servers of a comma-separated list of URLs. Where none is
// there it returns one that goes on trying.
func Dial(servers string, o Options) (*Client, error) {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	c := &Client{o: o, clock: o.Clock, node: o.Node, life: clients.NewLife(), listening: map[*listener]struct{}{}, changed: make(chan struct{})}
	var err error
	if c.set, err = c.options(servers); err == nil {
		err = c.connect()
	}
	if err != nil {
		c.life.End()
		return nil, fmt.Errorf("NATS at %s: %w", where(servers, &o), err)
	}
	return c, nil
}

// connect makes the connection. Where the library gives it up later, as some errors of a
// server make it, it is made anew.
func (c *Client) connect() error {
	made := make(chan struct{})
	defer close(made)
	set := c.set
	set.ClosedCB = func(gone *nats.Conn) {
		<-made
		if c.life.Err() == nil && c.link.Load() == gone {
			c.disconnected()
			time.AfterFunc(maxWait/4, c.again)
		}
	}
	conn, err := set.Connect()
	if err != nil {
		return err
	}
	c.link.Store(conn)
	c.change()
	return nil
}

// again connects until that goes well or the client is closed.
func (c *Client) again() {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.life.Err() == nil && c.connect() != nil {
		time.AfterFunc(maxWait, c.again)
	}
}

func (c *Client) conn() *nats.Conn { return c.link.Load() }

func where(servers string, o *Options) string {
	if o.InProcess != nil {
		return "this process"
	}
	return servers
}

func (c *Client) options(servers string) (nats.Options, error) {
	set := nats.GetDefaultOptions()
	own := []nats.Option{
		nats.Name("mihf client"),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(func(n int) time.Duration {
			d := min(50*time.Millisecond<<min(n, 10), maxWait)
			return d - rand.N(d/2+1)
		}),
		nats.Timeout(dialTimeout), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(maxPings),
		nats.ReconnectBufSize(-1), nats.FlusherTimeout(writeWait), nats.ReconnectOnFlusherError(),
		nats.ConnectHandler(func(*nats.Conn) { c.change() }), nats.ReconnectHandler(func(*nats.Conn) { c.change() }),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { c.disconnected() }),
		nats.ErrorHandler(c.asyncError),
	}
	if c.o.User != "" {
		own = append(own, nats.CustomInboxPrefix(natsproto.UserInbox(c.o.User)))
	}
	if c.o.Password != "" {
		own = append(own, nats.UserInfo(c.o.User, c.o.Password))
	}
	if c.o.Credentials != "" {
		own = append(own, nats.UserCredentials(c.o.Credentials))
	}
	if c.o.NkeySeed != "" {
		key, err := nats.NkeyOptionFromSeed(c.o.NkeySeed)
		if err != nil {
			return set, err
		}
		own = append(own, key)
	}
	if c.o.TLS != nil {
		own = append(own, nats.Secure(c.o.TLS))
	}
	if c.o.InProcess != nil {
		own = append(own, nats.InProcessServer(c.o.InProcess))
	} else {
		for s := range strings.SplitSeq(servers, ",") {
			set.Servers = append(set.Servers, strings.TrimSpace(s))
		}
	}
	for _, f := range append(own, c.o.NATS...) {
		if err := f(&set); err != nil {
			return set, err
		}
	}
	return set, nil
}

// Skipped returns how many messages could not be read.
func (c *Client) Skipped() uint64 { return c.skipped.Load() }

// RefusedAcks returns how many acknowledgements the broker refused.
func (c *Client) RefusedAcks() uint64 { return c.refused.Load() }

// Close ends the connection and, with clients.ErrClientClosed, everything on it.
func (c *Client) Close() error {
	c.life.End()
	c.closing.Lock() // nothing is connected any more
	defer c.closing.Unlock()
	c.mu.Lock()
	open := c.take(nil)
	c.mu.Unlock()
	for _, l := range open {
		l.cut(clients.ErrClientClosed)
	}
	c.conn().Close()
	c.change()
	return nil
}

// listener is what must know that messages may have been lost.
type listener struct {
	subs []*nats.Subscription
	cut  func(why error) // may be called more than once
}

func (c *Client) listen(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening[l] = struct{}{}
}

// forget ends the subscriptions of a listener.
func (c *Client) forget(l *listener) {
	c.mu.Lock()
	delete(c.listening, l)
	c.mu.Unlock()
	for _, s := range l.subs {
		_ = s.Unsubscribe() // it ends with its connection otherwise
	}
}

// take returns the listeners that have one of the subscriptions; nil: all. The caller has
// the lock.
func (c *Client) take(of func(*nats.Subscription) bool) (ls []*listener) {
	for l := range c.listening {
		has := of == nil
		for _, s := range l.subs {
			has = has || of(s)
		}
		if has {
			ls = append(ls, l)
		}
	}
	return ls
}

// change wakes those who wait for the connection.
func (c *Client) change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// disconnected cuts off everything: what was published meanwhile was not heard.
func (c *Client) disconnected() {
	c.mu.Lock()
	open := c.take(nil)
	c.mu.Unlock()
	for _, l := range open {
		l.cut(fmt.Errorf("%w: the connection to the NATS server was lost", mihf.ErrClosed))
	}
	c.change()
}

// asyncError is told what the library has nobody else to tell.
func (c *Client) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	var cut []*listener
	var why error
	c.mu.Lock()
	switch {
	case errors.Is(err, nats.ErrSlowConsumer) && sub != nil:
		why = fmt.Errorf("%w: messages came faster than they were read", mihf.ErrSlow)
		cut = c.take(func(s *nats.Subscription) bool { return s == sub })
	case errors.Is(err, nats.ErrMaxSubscriptionsExceeded):
		c.denied = fmt.Errorf("%w: of the NATS server: %w", mihf.ErrLimit, err)
	case errors.Is(err, nats.ErrPermissionViolation):
		why = fmt.Errorf("%w: by the NATS server: %w", mihf.ErrPermission, err)
		c.denied = why
		text := err.Error()
		cut = c.take(func(s *nats.Subscription) bool { return strings.Contains(text, `"`+s.Subject+`"`) })
	}
	c.mu.Unlock()
	for _, l := range cut {
		l.cut(why)
	}
}

// connected waits until there is a connection.
func (c *Client) connected(ctx context.Context) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if c.conn().IsConnected() {
			return nil
		}
		if err := c.life.Err(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.away(ctx)
		}
	}
}

// away says why there is no connection.
func (c *Client) away(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	why := c.conn().LastError()
	if errors.Is(why, nats.ErrAuthorization) {
		return fmt.Errorf("%w: the NATS server does not let us in: %w", mihf.ErrPermission, why)
	}
	if why == nil {
		why = nats.ErrNoServers
	}
	return fmt.Errorf("%w: no NATS server: %w", mihf.ErrClosed, why)
}

// errorOf turns an error of the library into one of the vocabulary; nil stays nil.
func (c *Client) errorOf(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case c.life.Err() != nil:
		return c.life.Err()
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: no daemon of that node answers", mihf.ErrClosed)
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), mihf.ErrClosed):
		return context.Cause(ctx)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		c.mu.Lock()
		denied := c.denied
		c.mu.Unlock()
		if denied != nil {
			return denied
		}
		return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", mihf.ErrLimit, err)
	default:
		return fmt.Errorf("%w: %w", mihf.ErrClosed, err)
	}
}

// limited bounds what has no end.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.o.Timeout)
}

// ask is a request.
type ask struct {
	op, method       string
	session, deliver string
	body             proto.Message // nil: none
}

func (c *Client) message(node mihf.NodeID, a *ask) (*nats.Msg, error) {
	m := &nats.Msg{Subject: natsproto.Service(node, a.op), Header: nats.Header{natsproto.HeaderContentType: {natsproto.Protobuf}}}
	for _, h := range []struct{ key, value string }{
		{natsproto.HeaderMethod, a.method}, {natsproto.HeaderSession, a.session}, {natsproto.HeaderDeliver, a.deliver},
	} {
		if h.value != "" {
			m.Header[h.key] = []string{h.value}
		}
	}
	if a.body == nil {
		return m, nil
	}
	var err error
	if m.Data, err = proto.Marshal(a.body); err != nil {
		return nil, fmt.Errorf("%w: %w", mihf.ErrInvalid, err)
	}
	if len(m.Data) > natsproto.MaxRequest {
		return nil, fmt.Errorf("%w: a request of %d octets, at most %d", mihf.ErrLimit, len(m.Data), natsproto.MaxRequest)
	}
	return m, nil
}

// call asks and reads the answer into answer, which may be nil.
func (c *Client) call(ctx context.Context, a ask, answer proto.Message) (natsproto.Header, error) {
	own, cancel := c.life.During(ctx)
	defer cancel()
	own, stop := c.limited(own)
	defer stop()
	if err := c.connected(own); err != nil {
		return nil, err
	}
	node, err := c.nodeFor(own)
	if err != nil {
		return nil, err
	}
	m, err := c.message(node, &a)
	if err != nil {
		return nil, err
	}
	r, err := c.conn().RequestMsgWithContext(own, m)
	if err != nil {
		return nil, c.errorOf(own, err)
	}
	h := natsproto.Header(r.Header)
	c.heard(h)
	if err := natsproto.Refused(h, r.Data); err != nil {
		return nil, err
	}
	if answer == nil {
		return h, nil
	}
	if err := proto.Unmarshal(r.Data, answer); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return h, nil
}

// decoder counts from now, less the time that a message is known to have been on its way.
func (c *Client) decoder(e *natsproto.Envelope) conv.Decoder {
	now := c.clock.Now()
	return conv.Decoder{Now: now, Held: e.Held + c.way.late(now, e.At)}
}

// heard learns from an answer how the clocks stand.
func (c *Client) heard(h natsproto.Header) {
	if at := natsproto.At(h); at != 0 {
		c.way.late(c.clock.Now(), at)
	}
}

func (c *Client) now() conv.Decoder { return conv.Decoder{Now: c.clock.Now()} }

// Snapshot returns the state that the caller may see.
func (c *Client) Snapshot(ctx context.Context) (*mihf.Snapshot, error) {
	var p mihv1.GetSnapshotResponse
	if _, err := c.call(ctx, ask{op: natsproto.OpSnapshot}, &p); err != nil {
		if errors.Is(err, mihf.ErrLimit) {
			return c.longSnapshot(ctx)
		}
		return nil, err
	}
	return c.now().Snapshot(p.GetSnapshot())
}

// Parameters returns the newest values of a link.
func (c *Client) Parameters(ctx context.Context, link mihf.LinkID) (mihf.LinkStatus, error) {
	var p mihv1.GetParametersResponse
	a := ask{op: natsproto.OpCommand, method: natsproto.MethodGetParameters, body: &mihv1.GetParametersRequest{Link: string(link)}}
	if _, err := c.call(ctx, a, &p); err != nil {
		return mihf.LinkStatus{}, err
	}
	return c.now().LinkStatus(p.GetStatus())
}

// ConfigureThresholds applies all items or none.
func (c *Client) ConfigureThresholds(ctx context.Context, link mihf.LinkID, items []mihf.ThresholdConfig) error {
	body := &mihv1.ConfigureThresholdsRequest{Link: string(link), Items: conv.EncodeThresholds(items)}
	_, err := c.call(ctx, ask{op: natsproto.OpCommand, method: natsproto.MethodConfigureThresholds, body: body}, nil)
	return err
}

// Information returns what is known of points of attachment.
func (c *Client) Information(ctx context.Context, req mihf.InformationRequest) (*mihf.Information, error) {
	var p mihv1.GetInformationResponse
	if _, err := c.call(ctx, ask{op: natsproto.OpInfo, body: conv.EncodeInformationRequest(&req)}, &p); err != nil {
		return nil, err
	}
	return c.now().Information(&p)
}

// Status returns counts and conditions.
func (c *Client) Status(ctx context.Context) (mihf.Status, error) {
	var p mihv1.StatusResponse
	if _, err := c.call(ctx, ask{op: natsproto.OpAdmin}, &p); err != nil {
		return mihf.Status{}, err
	}
	return conv.DecodeStatus(&p)
}

// Explain tells why a prediction was announced.
func (c *Client) Explain(ctx context.Context, id mihf.PredictionID) (*mihf.Explanation, error) {
	var p mihv1.ExplainResponse
	a := ask{op: natsproto.OpAdmin, method: natsproto.MethodExplain, body: &mihv1.ExplainRequest{PredictionId: id.String()}}
	if _, err := c.call(ctx, a, &p); err != nil {
		return nil, err
	}
	return c.now().Explanation(&p)
}
