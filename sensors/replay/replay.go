// Package replay is the sensor that plays a recording, at the pace of a clock.
//
// # Guarantees
//
//   - Observations come in the order of the recording, each when it is due and never
//     before, with the time at which it was due as its time, whatever the machine's load:
//     the same recording gives the same times.
//   - Truth is never emitted. What a program needs of it, it takes from a [Player].
//   - At the end, or at the first line that cannot be read, the sensor says so by its
//     condition and waits for its context; [Sensor.Ended] tells the program.
//
// # Limits
//
// The observations carry the name "replay" instead of the sensor that once made them.
// A sensor plays once.
package replay

import (
	"context"
	"fmt"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/recording"
	"mihf.dev/sensors"
)

// Name is the sensor's name.
const Name = "replay"

// Sensor plays one recording.
type Sensor struct {
	src   recording.Source
	clock clock.Clock
	start mihf.Time
	ended chan struct{}
	err   error // set before ended is closed
}

// New returns a sensor that plays src by the clock, faster or slower than real time if
// the clock is. The recording's start is at a moment of the clock; zero is when Run begins.
func New(src recording.Source, c clock.Clock, start mihf.Time) *Sensor {
	return &Sensor{src: src, clock: c, start: start, ended: make(chan struct{})}
}

// Name returns "replay".
func (s *Sensor) Name() string { return Name }

// Ended is closed when everything has been emitted, or nothing more can be.
func (s *Sensor) Ended() <-chan struct{} { return s.ended }

// Err returns, after Ended, why the recording ended before its end, or nil.
func (s *Sensor) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// Run plays the recording and then waits until ctx ends. It may be called once.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	if s.start.IsZero() {
		s.start = s.clock.Now()
	}
	s.condition(emit, mihf.ConditionOK, "")
	p := NewPlayer(s.src, s.start)
	var o mihf.Observation
	for {
		due, ok := p.Next(&o)
		if !ok {
			break
		}
		if o.Kind == mihf.ObsTruth {
			continue
		}
		if !s.wait(ctx, due) {
			return nil
		}
		o.At, o.Sensor = due, Name
		emit(&o)
	}
	if s.err = p.Err(); s.err != nil {
		s.condition(emit, mihf.ConditionDegraded, fmt.Sprintf("the recording cannot be read further: %v", s.err))
	} else {
		s.condition(emit, mihf.ConditionStopped, "the recording is over")
	}
	close(s.ended)
	<-ctx.Done()
	return nil
}

// wait returns when the clock has reached the moment, or false when ctx has ended.
func (s *Sensor) wait(ctx context.Context, due mihf.Time) bool {
	for {
		d := due.Sub(s.clock.Now())
		if d <= 0 {
			return ctx.Err() == nil
		}
		t := time.NewTimer(s.clock.Real(d))
		select {
		case <-t.C: // the clock decides: a timer stands still during a suspend
		case <-ctx.Done():
			t.Stop()
			return false
		}
	}
}

func (s *Sensor) condition(emit sensors.Emit, c mihf.Condition, text string) {
	emit(&mihf.Observation{
		At: s.clock.Now(), Sensor: Name, Kind: mihf.ObsCondition,
		Condition: &mihf.SensorCondition{Sensor: Name, Condition: c, Text: text},
	})
}
