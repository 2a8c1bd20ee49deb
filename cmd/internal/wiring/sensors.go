package wiring

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/sensors"
	"mihf.dev/sensors/modem"
	"mihf.dev/sensors/nl80211"
	"mihf.dev/sensors/rtnl"
	"mihf.dev/sensors/sockdiag"
	"mihf.dev/sensors/suspend"
)

// Watch is how sensors are told what matters of the flows that are registered; nil: no sensor wants to know.
type Watch struct {
	Peers func([]netip.Addr)     // whose routes matter
	Flows func([]mihf.Endpoints) // whose transports' state matters
}

// NewSensors returns the sensors that are enabled, and how they are told of flows.
func NewSensors(c *config.Config, o Options) (list []sensors.Sensor, watch Watch) {
	var linkOf func(int) (mihf.LinkID, bool)
	var addresses func() map[netip.Addr]mihf.LinkID
	if s := &c.Sensors.Rtnl; s.Enabled {
		r := rtnl.New(rtnlOptions(s, o))
		list, watch.Peers, linkOf, addresses = append(list, r), r.Watch, r.Link, r.Addresses
	}
	if s := &c.Sensors.SockDiag; s.Enabled {
		d := sockdiag.New(sockDiagOptions(s, o, linkOf, addresses))
		list, watch.Flows = append(list, d), d.Watch
	}
	if s := &c.Sensors.NL80211; s.Enabled {
		list = append(list, nl80211.New(nl80211Options(s, o, linkOf)))
	}
	if s := &c.Sensors.Modem; s.Enabled {
		list = append(list, modem.New(modemOptions(s, o, linkOf)))
	}
	if c.Sensors.Suspend.Enabled {
		list = append(list, suspend.New(suspend.Options{Clock: o.Clock}))
	}
	if file := c.Sensors.Replay.File; file != "" {
		list = append(list, &recorded{file, o.Clock})
	}
	return list, watch
}

func rtnlOptions(s *config.Rtnl, o Options) rtnl.Options {
	settle := s.Settle
	if settle == 0 {
		settle = -1 * time.Nanosecond // at once; to the sensor, 0 is its default
	}
	log, seed := o.logger().With("sensor", rtnl.Name), rand.Uint64()
	log.Debug("random choices begin", "seed", seed)
	out := rtnl.Options{
		Clock: o.Clock, Log: log, Seed: seed,
		Settle: settle, Reconcile: s.Reconcile, BufferBytes: s.BufferBytes, Mark: uint32(s.Mark),
	}
	if s.UID >= 0 {
		out.UID = mihf.Some(uint32(s.UID))
	}
	return out
}

// nl80211Options takes the function that names links; nil: the sensor of links is off.
func nl80211Options(s *config.NL80211, o Options, linkOf func(int) (mihf.LinkID, bool)) nl80211.Options {
	log, seed := o.logger().With("sensor", nl80211.Name), rand.Uint64()
	log.Debug("random choices begin", "seed", seed)
	return nl80211.Options{
		Clock: o.Clock, Log: log, Seed: seed, Link: linkOf,
		Near: float64(s.NearDBm), PollFar: s.PollFar, PollNear: s.PollNear, SetCQM: s.SetCQM, BufferBytes: s.BufferBytes,
	}
}

// modemOptions takes the function that names links; nil: the sensor of links is off.
func modemOptions(s *config.Modem, o Options, linkOf func(int) (mihf.LinkID, bool)) modem.Options {
	log, seed := o.logger().With("sensor", modem.Name), rand.Uint64()
	log.Debug("random choices begin", "seed", seed)
	poll := s.Poll
	if poll == 0 {
		poll = -1 // never; to the sensor, 0 is its default
	}
	return modem.Options{
		Clock: o.Clock, Log: log, Seed: seed, Address: busAddress(s.Bus, true), Link: linkOf,
		Poll: poll, ThresholdDB: s.ThresholdDB, NeverPoll: s.NeverPoll, NoCells: !s.Cells,
	}
}

// sockDiagOptions takes the functions that name links; nil: the sensor of links is off.
func sockDiagOptions(s *config.SockDiag, o Options, linkOf func(int) (mihf.LinkID, bool), addresses func() map[netip.Addr]mihf.LinkID) sockdiag.Options {
	log, seed := o.logger().With("sensor", sockdiag.Name), rand.Uint64()
	log.Debug("random choices begin", "seed", seed)
	return sockdiag.Options{
		Clock: o.Clock, Log: log, Seed: seed, Link: linkOf, Addresses: addresses,
		Poll: s.Poll, RegisteredOnly: s.Flows == config.FlowsRegistered,
	}
}

// SensorTask returns the task that runs a sensor. It is ready when the sensor's condition
// is known.
func SensorTask(s sensors.Sensor, observe sensors.Emit) daemon.Task {
	return daemon.NewTask("sensor "+s.Name(), func(ctx context.Context, ready func()) error {
		return s.Run(ctx, func(o *mihf.Observation) {
			observe(o)
			if o.Kind == mihf.ObsCondition && o.Condition.Condition != mihf.ConditionStarting {
				ready()
			}
		})
	})
}

// BrokerTask returns the task that runs a broker.
func BrokerTask(b *broker.Broker) daemon.Task {
	return daemon.NewTask("broker", func(ctx context.Context, ready func()) error {
		ready()
		return b.Run(ctx)
	})
}

// Probe returns a function that fails unless the broker's loop answers before its context
// ends.
func Probe(b *broker.Broker) func(context.Context) error {
	return func(ctx context.Context) error {
		answer := make(chan error, 1)
		go func() { // the loop may have taken the question and hang in it: then this stays
			_, err := b.Status(ctx, Self())
			answer <- err
		}()
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
