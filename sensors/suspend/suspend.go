// Package suspend is the sensor for suspend and resume of the machine.
//
// Guarantees: a suspend of more than one second gives one mihf.ObsResume with its length,
// at most a second after the machine runs again. It is found as a jump of boot time
// less monotonic time, so a step of the wall clock, a stalled process or a busy machine
// gives none. It needs no privilege.
//
// Limits: where a virtual machine is paused by its host and the kernel is not told, both
// clocks stand still and nothing is seen. Several suspends within a second are one.
package suspend

import (
	"context"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
)

// Name is the sensor's name.
const Name = "suspend"

const (
	period  = time.Second // between two looks
	minimum = time.Second // a gap must be longer to be a suspend
)

// Options of a [Sensor]. The zero Options are right for a real machine.
type Options struct {
	Clock clock.Clock
	// Suspended returns how long the machine was suspended since boot; nil: clock.Suspended.
	Suspended func() time.Duration
}

// Sensor looks once a second whether the machine was suspended.
type Sensor struct{ opt Options }

var _ sensors.Sensor = (*Sensor)(nil)

// New returns a sensor that is not yet running.
func New(opt Options) *Sensor {
	if opt.Suspended == nil {
		opt.Suspended = clock.Suspended
	}
	return &Sensor{opt: opt}
}

// Name returns "suspend".
func (s *Sensor) Name() string { return Name }

// Run looks until ctx ends, and then returns nil.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	if ctx.Err() != nil {
		return nil
	}
	last := s.opt.Suspended()
	emit(&mihf.Observation{
		At: s.opt.Clock.Now(), Sensor: Name, Kind: mihf.ObsCondition,
		Condition: &mihf.SensorCondition{Sensor: Name, Condition: mihf.ConditionOK},
	})
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		total := s.opt.Suspended()
		if total-last > minimum {
			// A process that was held up between its two readings of the clocks sees a
			// jump too, but not twice.
			total = min(total, s.opt.Suspended())
		}
		if gap := total - last; gap > minimum {
			last = total
			emit(&mihf.Observation{At: s.opt.Clock.Now(), Sensor: Name, Kind: mihf.ObsResume, Gap: gap})
		}
	}
}
