package wiring

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"

	"mihf.dev/mihf"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/grpcfront"
)

// Check finds what is wrong with a configuration on this machine: certificates or a recording
// that can't be read, a group that is not there.
func Check(c *config.Config) error {
	_, err := TLS(&c.GRPC)
	if file := c.Sensors.Replay.File; file != "" {
		err = errors.Join(err, checkRecording(file))
	}
	if c.GRPC.Group != "" {
		if _, e := user.LookupGroup(c.GRPC.Group); e != nil {
			err = errors.Join(err, fmt.Errorf("grpc.group: %w", e))
		}
	}
	return err
}

// TLS returns the gRPC front's side of mutual TLS, or nil where it doesn't listen on TCP.
func TLS(c *config.GRPC) (*tls.Config, error) {
	if c.Listen == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("grpc.cert %s, grpc.key %s: %w", c.Cert, c.Key, err)
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("grpc.client_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("grpc.client_ca %s: has no certificate in PEM form", c.ClientCA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, nil
}

// NewGRPC opens the gRPC front's listeners: the socket and, where configured, TCP. The
// error wraps grpcfront.ErrRunning where another daemon has the socket.
func NewGRPC(c *config.GRPC, socket string, b front.Broker, log *slog.Logger) (*grpcfront.Server, error) {
	tlsConfig, err := TLS(c)
	if err != nil {
		return nil, err
	}
	var listeners []net.Listener
	closeAll := func() {
		for _, l := range listeners {
			_ = l.Close() // the error that brought us here says more
		}
	}
	group := groupOf(c)
	if _, err := user.LookupGroup(group); group != "" && err != nil {
		log.Info("the socket keeps its owner's group: the group is not there", "group", group)
	}
	l, err := grpcfront.ListenUnix(socket, c.Mode, group)
	if err != nil {
		return nil, err
	}
	listeners = append(listeners, l)
	if c.Listen != "" {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", c.Listen)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("grpc.listen: %w", err)
		}
		listeners = append(listeners, l)
	}
	s, err := grpcfront.New(grpcfront.Options{
		Broker: b, Listeners: listeners, Logger: log, TLS: tlsConfig, AdminNames: c.AdminNames,
	})
	if err != nil {
		closeAll()
		return nil, err
	}
	return s, nil
}

// groupOf returns the socket's group: root's daemon is the system's.
func groupOf(c *config.GRPC) string {
	if c.Group == "" && os.Geteuid() == 0 {
		return "mihf"
	}
	return c.Group
}

// grpcCounters returns what a server counts.
func grpcCounters(s *grpcfront.Server) Counters {
	return func() []mihf.CounterValue {
		c := s.Counts()
		return []mihf.CounterValue{
			{Name: "mihf_grpc_deliveries_total", Value: c.Sent},
			{Name: "mihf_grpc_refused_connections_total", Value: c.RefusedConnections},
			{Name: "mihf_grpc_malformed_requests_total", Value: c.Malformed},
			{Name: "mihf_grpc_encode_errors_total", Value: c.EncodeErrors},
			{Name: "mihf_grpc_panics_total", Value: c.Panics},
		}
	}
}
