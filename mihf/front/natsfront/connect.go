package natsfront

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mihf.dev/mihf"
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

// options are those of every connection of the daemon. Nothing is kept for a server that is
// away: what is old when it returns must not look new.
func (s *Server) options(name string, own ...nats.Option) []nats.Option {
	return append(own,
		nats.Name(name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(delay), nats.Timeout(connectTimeout),
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

// connect makes the connections: one that publishes, and one that answers. On a server that
// is not the daemon's own they are the same.
func (s *Server) connect() (pub, svc *nats.Conn, err error) {
	if s.own == nil {
		x := s.o.External
		own := append([]nats.Option(nil), x.Auth...)
		if x.TLS != nil {
			own = append(own, nats.Secure(x.TLS))
		}
		pub, err = s.dial(x.Servers, append(own, nats.ConnectHandler(s.connected), nats.ReconnectHandler(s.connected)))
		return pub, pub, err
	}
	key, err := keyOption(s.own.publisher)
	if err != nil {
		return nil, nil, err
	}
	pub, err = s.dial(nil, []nats.Option{nats.InProcessServer(s.own.server), key, nats.ConnectHandler(s.connected), nats.ReconnectHandler(s.connected)})
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyOption(s.own.answerer); err == nil {
		svc, err = s.dial(nil, []nats.Option{nats.InProcessServer(s.own.server), key})
	}
	if err != nil {
		pub.Close()
	}
	return pub, svc, err
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
	s.state(mihf.ConditionDegraded, "the NATS server is away: "+err.Error())
	s.log.Warn("NATS server away; everything else goes on", "error", err)
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
