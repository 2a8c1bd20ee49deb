package natsfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// External says how to reach a server that is there already.
type External struct {
	Servers []string // URLs
	// Auth are the options of the credential; see [Credential].
	Auth []nats.Option
	TLS  *tls.Config // nil: none
	// TrustRequestInfo takes the server's word about who sends a request: it must come
	// through a service import that shares it, and by no other way.
	TrustRequestInfo bool
	History          *History // nil: none; Directory is the server's business
}

// Times of connections.
const (
	connectTimeout = 2 * time.Second
	writeTimeout   = 5 * time.Second
	firstDelay     = 50 * time.Millisecond
	maxDelay       = 2 * time.Second
)

// delay is how long to wait before the nth try: doubling, shortened at random by up to a
// half.
func delay(n int) time.Duration {
	d := min(firstDelay<<min(n, 10), maxDelay)
	return d - rand.N(d/2+1)
}

// dialer passes on why a server cannot be reached: the library keeps that for itself.
type dialer struct {
	net.Dialer
	failed func(error)
}

// Dial dials for the library, which holds its lock.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	if err != nil {
		d.failed(err)
	}
	return c, err
}

// pause is how long to wait before the nth try. It is asked when a try has failed, and what
// a server says that was reached is kept until then.
func (s *Server) pause(n int) time.Duration {
	if l := s.link.Load(); l != nil {
		if err := l.pub.LastError(); err != nil {
			s.unreached(err)
		}
	}
	return delay(n)
}

// options are those of every connection of the daemon. Nothing is kept for a server that is
// away: what is old when it returns must not look new.
func (s *Server) options(name string, own ...nats.Option) []nats.Option {
	return append(own,
		nats.Name(name), nats.CustomInboxPrefix(natsproto.UserInbox("mihfd")),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(s.pause), nats.Timeout(connectTimeout),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(maxPings),
		nats.ReconnectBufSize(-1), nats.FlusherTimeout(writeTimeout), nats.ReconnectOnFlusherError(),
		nats.ErrorHandler(s.asyncError), nats.DisconnectErrHandler(s.disconnected),
	)
}

// keyOption proves by a key who connects.
func keyOption(pair nkeys.KeyPair) (nats.Option, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Nkey(public, pair.Sign), nil
}

// link is the connections: one that publishes, and one that answers. On a server that is not
// the daemon's own they are the same.
type link struct {
	pub, svc *nats.Conn
	direct   *direct       // nil: the server is not the daemon's own
	gone     chan struct{} // full when one of them has ended for good
}

func (l *link) lost() {
	select {
	case l.gone <- struct{}{}:
	default:
	}
}

func (l *link) close() {
	if l.direct != nil {
		l.direct.close()
	}
	l.pub.Close()
	l.svc.Close()
}

func (s *Server) pub() *nats.Conn { return s.link.Load().pub }
func (s *Server) svc() *nats.Conn { return s.link.Load().svc }

// join makes the connections and listens for requests.
func (s *Server) join() error {
	l := &link{gone: make(chan struct{}, 1)}
	if err := s.connect(l); err != nil {
		return err
	}
	s.link.Store(l)
	for _, subject := range []string{natsproto.Services(s.node), natsproto.Nodes} {
		if _, err := l.svc.Subscribe(subject, s.arrived); err != nil {
			l.close()
			return fmt.Errorf("NATS: %s: %w", subject, err)
		}
	}
	return nil
}

// rejoin makes the connections anew when the library has given one of them up: some errors
// of a server end them for good.
func (s *Server) rejoin(ctx context.Context) {
	for tries := 0; ; tries++ {
		l := s.link.Load()
		select {
		case <-ctx.Done():
			return
		case <-l.gone:
		}
		s.log.Warn("NATS connection given up; it is made anew", "error", errors.Join(l.pub.LastError(), l.svc.LastError()))
		l.close()
		timer := time.NewTimer(delay(tries))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := s.join(); err != nil {
			s.log.Warn("NATS connection not made", "error", err)
			select { // again
			case l.gone <- struct{}{}:
			default:
			}
		}
	}
}

func (s *Server) connect(l *link) (err error) {
	own := []nats.Option{nats.ClosedHandler(func(*nats.Conn) { l.lost() })}
	told := append(slices.Clone(own), nats.ConnectHandler(s.connected), nats.ReconnectHandler(s.connected))
	if s.own == nil {
		x := s.o.External
		told = append(told, nats.SetCustomDialer(&dialer{net.Dialer{Timeout: connectTimeout}, s.unreached}))
		told = append(told, x.Auth...)
		if x.TLS != nil {
			told = append(told, nats.Secure(x.TLS))
		}
		l.pub, err = s.dial(x.Servers, told)
		l.svc = l.pub
		return err
	}
	key, err := keyOption(s.own.publisher)
	if err != nil {
		return err
	}
	if l.pub, err = s.dial(nil, append(told, nats.InProcessServer(s.own.server.Load()), key)); err != nil {
		return err
	}
	if key, err = keyOption(s.own.answerer); err == nil {
		l.svc, err = s.dial(nil, append(own, nats.InProcessServer(s.own.server.Load()), key))
	}
	if err != nil {
		l.pub.Close()
		return err
	}
	if l.direct, err = dialDirect(s.own.server.Load(), s.own.publisher, "mihfd "+string(s.node)+" hints", l.lost); err != nil {
		l.pub.Close()
		l.svc.Close()
	}
	return err
}

func (s *Server) dial(servers []string, own []nats.Option) (*nats.Conn, error) {
	o := nats.GetDefaultOptions()
	for _, set := range s.options("mihfd "+string(s.node), own...) {
		if err := set(&o); err != nil {
			return nil, fmt.Errorf("NATS: %w", err)
		}
	}
	o.Servers = servers
	c, err := o.Connect()
	if err != nil {
		return nil, fmt.Errorf("NATS: %w", err)
	}
	return c, nil
}

// connected is called when the server is there, and when it is back.
func (s *Server) connected(c *nats.Conn) {
	s.counts.connects.Add(1)
	s.state(mihf.ConditionOK, "")
	s.log.Info("NATS connected", "server", c.ConnectedUrlRedacted())
	select {
	case s.back <- struct{}{}:
	default:
	}
}

func (s *Server) disconnected(_ *nats.Conn, err error) {
	if err == nil {
		return // we closed it
	}
	s.state(mihf.ConditionDegraded, away+": "+err.Error())
	s.log.Warn("NATS server away; everything else goes on", "error", err)
}

// What the condition begins with while the server is not there.
const (
	notYet = "the NATS server has not been reached yet"
	away   = "the NATS server is away"
)

// unreached says in the condition why the last try failed. Only the first reason is logged,
// for each of several servers may have its own.
func (s *Server) unreached(err error) {
	s.mu.Lock()
	text, first := notYet, s.condition.Text == notYet
	switch s.condition.Condition {
	case mihf.ConditionStarting:
	case mihf.ConditionDegraded:
		text = away
	default: // not known to be away
		s.mu.Unlock()
		return
	}
	s.condition.Text = text + ": " + err.Error()
	s.mu.Unlock()
	if first {
		s.log.Warn("NATS server not reached; it is tried for ever, and everything else goes on", "error", err)
	}
}

// asyncError is told what the library has nobody else to tell.
func (s *Server) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		s.counts.overflows.Add(1)
	}
	s.log.Debug("NATS", "error", err)
}

// Condition returns how the connection to the server is, as a part of the daemon's own state.
func (s *Server) Condition() mihf.SensorCondition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.condition
}

func (s *Server) state(c mihf.Condition, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.condition = mihf.SensorCondition{Sensor: "nats", Condition: c, Text: text}
}

// trouble keeps the condition, and logs it where it is another one.
func (s *Server) trouble(c mihf.Condition, err error) {
	if was := s.Condition(); was.Condition == c && was.Text == err.Error() {
		return
	}
	s.state(c, err.Error())
	s.log.Warn("NATS", "condition", c.String(), "error", err)
}
