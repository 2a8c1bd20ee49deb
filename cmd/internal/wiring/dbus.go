package wiring

import (
	"log/slog"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/front/dbusfront"
)

// NewDBus returns the D-Bus front. It opens nothing: the bus is looked for when it runs.
// system tells that the daemon is the system's.
func NewDBus(c *config.DBus, system bool, b *Reported, log *slog.Logger) (*dbusfront.Server, error) {
	self := Self()
	self.Front = "dbus"
	return dbusfront.New(dbusfront.Options{
		Broker: b, Address: busAddress(c.Bus, system), Logger: log, Self: self, Public: b.Public,
		MaxConnections: c.MaxConnectionsPerUser, MaxCalls: c.MaxWaitingPerUser,
	})
}

// busAddress returns what finds the configured bus.
func busAddress(bus string, system bool) func() (string, error) {
	switch {
	case bus == "system", bus == "auto" && system:
		return busconn.SystemAddress
	case bus == "session", bus == "auto":
		return busconn.SessionAddress
	default:
		return func() (string, error) { return bus, nil }
	}
}

// dbusCounters returns what a server counts.
func dbusCounters(s *dbusfront.Server) Counters {
	return func() []mihf.CounterValue {
		c := s.Counts()
		return []mihf.CounterValue{
			{Name: "mihf_dbus_joins_total", Value: c.Joined},
			{Name: "mihf_dbus_calls_total", Value: c.Calls},
			{Name: "mihf_dbus_refused_calls_total", Value: c.Refused},
			{Name: "mihf_dbus_malformed_calls_total", Value: c.Malformed},
			{Name: "mihf_dbus_oversized_messages_total", Value: c.Oversized},
			{Name: "mihf_dbus_signals_total", Value: c.Signals},
			{Name: "mihf_dbus_encode_errors_total", Value: c.EncodeErrors},
			{Name: "mihf_dbus_panics_total", Value: c.Panics},
		}
	}
}
