package wiring

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/natsfront"
)

// checkNATS finds what is wrong with the files that the configuration names.
func checkNATS(c *config.NATS) error {
	if c.Server == config.NATSNone {
		return nil
	}
	_, _, err := natsServer(c, "")
	return err
}

// NewNATS returns the NATS front, or nil where there is to be none. state is the state
// directory; table returns the access that is in force.
func NewNATS(c *config.NATS, state string, b front.Broker, table func() *access.Table, events *encoded.Events, log *slog.Logger) (*natsfront.Server, error) {
	if c.Server == config.NATSNone {
		return nil, nil
	}
	own, there, err := natsServer(c, state)
	if err != nil {
		return nil, err
	}
	s, err := natsfront.New(natsfront.Options{
		Broker: b, Events: events, Logger: log, Embedded: own, External: there, Reader: Self(), Identity: c.Identity,
		MaxSessions: c.MaxSessionsPerUser, MaxQueued: c.MaxWaitingPerUser,
		Grant: func(who mihf.Caller) natsfront.Grant {
			t := table()
			return natsfront.Grant{Events: t.May(who, access.See), AllHints: t.May(who, access.RegisterAny), Owner: t.UID(who)}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	return s, nil
}

// natsServer reads what one of the two kinds of server needs.
func natsServer(c *config.NATS, state string) (own *natsfront.Embedded, there *natsfront.External, err error) {
	server, client, err := natsTLS(c)
	if err != nil {
		return nil, nil, err
	}
	var credential natsfront.Credential
	if c.Credentials != "" {
		if credential, err = natsfront.ReadCredential(c.Credentials); err != nil {
			return nil, nil, config.At("nats.credentials", err)
		}
	}
	var history *natsfront.History
	if c.History {
		history = &natsfront.History{Directory: c.HistoryDir, MaxBytes: int64(c.HistoryMaxBytes), MaxAge: c.HistoryMaxAge}
		if history.Directory == "" {
			history.Directory = filepath.Join(state, "nats")
		}
	}
	if c.Server == config.NATSExternal {
		return nil, &natsfront.External{
			Servers: c.Servers, Auth: credential.Options(), TLS: client, TrustRequestInfo: c.TrustRequestInfo, History: history,
		}, nil
	}
	own = &natsfront.Embedded{Listen: c.Listen, History: history, MaxConnections: c.MaxConnectionsPerUser}
	if c.Listen != "" {
		own.TLS = server
	}
	if c.Users != "" {
		if own.Users, err = natsfront.ReadUsers(c.Users); err != nil {
			return nil, nil, config.At("nats.users", err)
		}
	}
	if len(c.Leaf) > 0 {
		own.Leaf = &natsfront.Leaf{Credential: credential, TLS: client}
		for _, s := range c.Leaf {
			u, err := url.Parse(s)
			if err != nil {
				return nil, nil, config.At("nats.leaf", err)
			}
			own.Leaf.URLs = append(own.Leaf.URLs, u)
		}
	}
	return own, nil, nil
}

// natsTLS returns the daemon's side as a server, and as a client; nil: none of its own.
func natsTLS(c *config.NATS) (server, client *tls.Config, err error) {
	if c.Cert == "" && c.CA == "" {
		return nil, nil, nil
	}
	client = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, nil, config.At("nats.cert", fmt.Errorf("%s, nats.key %s: %w", c.Cert, c.Key, err))
		}
		client.Certificates = []tls.Certificate{pair}
	}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, nil, config.At("nats.ca", err)
		}
		client.RootCAs = x509.NewCertPool()
		if !client.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, config.At("nats.ca", errors.New(c.CA+": has no certificate in PEM form"))
		}
	}
	if c.Cert != "" && c.CA != "" {
		server = &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: client.Certificates,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.RootCAs,
		}
	}
	return server, client, nil
}

// natsCounters returns what a front counts.
func natsCounters(s *natsfront.Server) Counters {
	return func() []mihf.CounterValue {
		c := s.Counts()
		return []mihf.CounterValue{
			{Name: "mihf_nats_connects_total", Value: c.Connects},
			{Name: "mihf_nats_published_total", Value: c.Published},
			{Name: "mihf_nats_hints_total", Value: c.Hints},
			{Name: "mihf_nats_dropped_total", Value: c.Dropped},
			{Name: "mihf_nats_holes_total", Value: c.Holes},
			{Name: "mihf_nats_requests_total", Value: c.Requests},
			{Name: "mihf_nats_refused_requests_total", Value: c.Refused},
			{Name: "mihf_nats_malformed_requests_total", Value: c.Malformed},
			{Name: "mihf_nats_forged_requests_total", Value: c.Forged},
			{Name: "mihf_nats_refused_connections_total", Value: c.RefusedConnections},
			{Name: "mihf_nats_overflows_total", Value: c.Overflows},
			{Name: "mihf_nats_lapsed_sessions_total", Value: c.Lapsed},
			{Name: "mihf_nats_encode_errors_total", Value: c.EncodeErrors},
			{Name: "mihf_nats_panics_total", Value: c.Panics},
		}
	}
}
