package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"

	"mihf.dev/mihf"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/grpcfront"
)

// Check finds what is wrong with a configuration on this machine: certificates or a recording
// that can't be read, a group that is not there.
func Check(c *config.Config) error {
	_, err := TLS(&c.GRPC)
	err = errors.Join(err, checkNATS(&c.NATS), checkPoAKey(c))
	if file := c.Sensors.Replay.File; file != "" {
		err = errors.Join(err, checkRecording(file))
	}
	if c.GRPC.Group != "" {
		if _, e := user.LookupGroup(c.GRPC.Group); e != nil {
			err = errors.Join(err, config.At("grpc.group", e))
		}
	}
	return err
}

// NewGRPC opens the gRPC front's listeners: the socket and, where configured, TCP, where
// events are as in hidden. The error wraps grpcfront.ErrRunning where another daemon has the socket.
func NewGRPC(c *config.GRPC, socket string, b front.Broker, events, hidden *encoded.Events, log *slog.Logger) (*grpcfront.Server, error) {
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
		l, err := ListenTCP(context.Background(), c.Listen)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("grpc.listen: %w", err)
		}
		listeners = append(listeners, l)
	}
	s, err := grpcfront.New(grpcfront.Options{
		Broker: b, Encoded: events, Hidden: hidden, Listeners: listeners, Logger: log, TLS: tlsConfig,
		MaxConnectionsPerUser: c.MaxConnectionsPerUser, MaxCallsPerUser: c.MaxCallsPerUser, MaxUnreadBytesPerUser: c.MaxUnreadBytesPerUser,
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
			{Name: "mihf_grpc_refused_calls_total", Value: c.RefusedCalls},
			{Name: "mihf_grpc_accept_errors_total", Value: c.AcceptErrors},
			{Name: "mihf_grpc_malformed_requests_total", Value: c.Malformed},
			{Name: "mihf_grpc_encode_errors_total", Value: c.EncodeErrors},
			{Name: "mihf_grpc_panics_total", Value: c.Panics},
		}
	}
}
