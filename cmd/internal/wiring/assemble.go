package wiring

import (
	"log/slog"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/front/natsfront"
	"mihf.dev/sensors"
)

// Options are what a configuration file doesn't say.
type Options struct {
	Socket  string       // of the gRPC front, where the configuration names none; it tells whether the daemon is the system's
	Clock   clock.Clock  // zero: boot time
	Logger  *slog.Logger // nil: discard
	Version string
	State   string // directory of what is kept
	// Sensors take the place of those that the configuration enables, unless nil.
	Sensors []sensors.Sensor
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Assembly is a daemon that has not begun.
type Assembly struct {
	Broker *Reported
	Socket string            // that the gRPC front listens on
	Tasks  []daemon.Task     // for daemon.Serve
	NATS   *natsfront.Server // nil: there is to be none
}

// SetAccess puts another table in force, for those who are connected, too.
func (a *Assembly) SetAccess(t *access.Table) {
	a.Broker.SetAccess(t)
	if a.NATS != nil {
		a.NATS.Regrant()
	}
}

// Assemble puts a daemon together. It fails where [Check] does.
func Assemble(c *config.Config, o Options) (*Assembly, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	list, watch := o.Sensors, Watch{}
	if list == nil {
		list, watch = NewSensors(c, o)
	}
	b, err := NewBroker(c, o, watch)
	if err != nil {
		return nil, err
	}
	a := &Assembly{Broker: Report(b, c.Predictor.Method), Socket: c.GRPC.Socket}
	if a.Socket == "" {
		a.Socket = o.Socket
	}
	events, hidden, err := newEvents(c, o.State, b)
	if err != nil {
		return nil, err
	}
	toNATS := events
	if c.NATS.OffHost() {
		toNATS = hidden
	}
	nats, err := NewNATS(&c.NATS, o.State, a.Broker, b.Access, toNATS, o.logger().With("front", "nats"))
	if err != nil {
		return nil, err
	}
	grpc, err := NewGRPC(&c.GRPC, a.Socket, a.Broker, events, hidden, o.logger().With("front", "grpc"))
	if err != nil {
		return nil, err
	}
	a.Broker.Add(grpcCounters(grpc))
	a.Tasks = append(a.Tasks, BrokerTask(b), grpc)
	if c.DBus.Bus != config.NoBus {
		dbus, err := NewDBus(&c.DBus, o.Socket == clients.SystemSocket, a.Broker, o.logger().With("front", "dbus"))
		if err != nil {
			return nil, err
		}
		a.Broker.Add(dbusCounters(dbus))
		a.Broker.AddCondition(dbus.Condition)
		a.Tasks = append(a.Tasks, dbus)
	}
	if a.NATS = nats; nats != nil {
		a.Broker.Add(natsCounters(nats))
		a.Broker.AddCondition(nats.Condition)
		a.Tasks = append(a.Tasks, nats)
	}
	for _, s := range list {
		if counts, ok := s.(interface{ Counters() []mihf.CounterValue }); ok {
			a.Broker.Add(counts.Counters)
		}
		a.Tasks = append(a.Tasks, SensorTask(s, b.Observe))
	}
	return a, nil
}
