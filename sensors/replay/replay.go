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
// The recording is played once: Run called again goes on where it stopped.
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
	src    recording.Source
	clock  clock.Clock
	start  mihf.Time
	player *Player          // nil before the first Run
	next   mihf.Observation // read, and not yet emitted if waiting
	due    mihf.Time
	wait   bool
	ended  chan struct{}
	err    error // set before ended is closed
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

// Run plays the recording and then waits until ctx ends.
func (s *Sensor) Run(ctx context.Context, emit sensors.Emit) error {
	if ctx.Err() == nil {
		s.play(ctx, emit)
	}
	<-ctx.Done()
	return nil
}

// play emits what is due, until the recording or ctx ends.
func (s *Sensor) play(ctx context.Context, emit sensors.Emit) {
	if s.start.IsZero() {
		s.start = s.clock.Now()
	}
	if s.player == nil {
		s.player = NewPlayer(s.src, s.start)
	}
	s.condition(emit, mihf.ConditionOK, "")
	for s.read() {
		if !s.until(ctx, s.due) {
			return
		}
		s.wait = false
		s.next.At, s.next.Sensor = s.due, Name
		emit(&s.next)
	}
	if err := s.player.Err(); err != nil {
		s.condition(emit, mihf.ConditionDegraded, fmt.Sprintf("the recording cannot be read further: %v", err))
	} else {
		text := "the recording is over"
		if n := s.player.Refused(); n > 0 {
			text += fmt.Sprintf("; %d values that their parameters cannot have were left out", n)
		}
		s.condition(emit, mihf.ConditionStopped, text)
	}
	s.end()
}

// read fetches the next observation that is not truth, unless one waits already.
func (s *Sensor) read() bool {
	for !s.wait {
		due, ok := s.player.Next(&s.next)
		if !ok {
			return false
		}
		s.due, s.wait = due, s.next.Kind != mihf.ObsTruth
	}
	return true
}

func (s *Sensor) end() {
	select {
	case <-s.ended:
	default:
		s.err = s.player.Err()
		close(s.ended)
	}
}

// until returns when the clock has reached the moment, or false when ctx has ended.
func (s *Sensor) until(ctx context.Context, due mihf.Time) bool {
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
