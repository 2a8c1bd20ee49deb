// Package sensors is the contract between sensors and the broker, and what all sensors
// share: the loop that dials again ([Redial]), folded logging ([Fold]) and the guard
// around decoders ([Guard]).
//
// # Guarantees
//
//   - A sensor's New starts nothing. Run works until its context ends and then returns
//     nil; whatever it started has ended by then, and it emits nothing afterwards.
//   - Missing hardware, a missing kernel family or service and a missing permission are
//     conditions of the sensor (mihf.ObsCondition), emitted when they change. None of
//     them ends Run.
//   - A panic in a session is an error of that session like any other; one in a decoder
//     under [Guard] costs its message only.
//   - The same error is logged once, then counted.
//   - Every random choice comes from the seed that the caller gives.
//
// # Limits
//
// [Emit] may block: a sensor that is held up reads late, and its source may overflow.
// It says so with mihf.ObsResync. Timers stand still while the machine is suspended, so
// a wait is longer by the suspend.
package sensors

import (
	"context"

	"mihf.dev/mihf"
)

// Emit takes one observation. The receiver copies the Observation before it returns, so
// the sensor may use it again; what its pointers point to is never changed after. It may
// block, and is called by one goroutine of a sensor at a time.
type Emit func(*mihf.Observation)

// Sensor is a source of observations.
type Sensor interface {
	// Name is what the sensor writes in its observations, and its name in the
	// configuration.
	Name() string
	// Run senses until ctx ends, and then returns nil. It is called once at a time.
	Run(ctx context.Context, emit Emit) error
}
