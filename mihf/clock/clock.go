// Package clock is the one place that reads the machine's clocks and converts between
// them and mihf.Time.
//
// Guarantees: Now never goes back within one Clock; [Boot] counts suspend and is not
// moved by a step of the wall clock; [Process] and [Scaled] are derived from package
// time, so that under testing/synctest they follow the bubble's fake time. A Clock may
// be used by any goroutine.
//
// Limits: a suspend of less than half a millisecond may not be counted. [Boot] begins at
// the machine's boot time in a bubble of testing/synctest, too. Go's timers stand still
// while the machine is suspended; a loop that waits by one must look at Now after it wakes.
package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// Clock is a source of mihf.Time. The zero Clock is [Boot].
type Clock struct {
	start time.Time // of a clock derived from package time
	base  mihf.Time // its value at start
	speed float64   // how many of its seconds pass in a real one; 0: boot time
}

// Boot returns the clock of the machine's boot time (CLOCK_BOOTTIME).
func Boot() Clock { return Clock{} }

// Process returns a clock that starts one hour after its boot and follows package time.
func Process() Clock { return Scaled(1) }

// Scaled returns a clock that follows package time, but runs speed times as fast.
// It panics unless speed is a number above 0.
func Scaled(speed float64) Clock {
	if !(speed > 0) || math.IsInf(speed, 1) {
		panic("clock: speed must be a number above 0")
	}
	return Clock{start: time.Now(), base: mihf.Time(time.Hour), speed: speed}
}

// Now returns the moment.
func (c Clock) Now() mihf.Time {
	if c.speed == 0 {
		return bootTime()
	}
	d := time.Since(c.start)
	if c.speed == 1 {
		return c.base.Add(d)
	}
	return c.base.Add(time.Duration(float64(d) * c.speed))
}

// Real returns how long a timer must run for d of this clock to pass, rounded up.
func (c Clock) Real(d time.Duration) time.Duration {
	if c.speed == 0 || c.speed == 1 {
		return d
	}
	return time.Duration(float64(d)/c.speed) + 1
}

// Wall returns the wall time of a moment near now, for people only.
func (c Clock) Wall(t mihf.Time) time.Time {
	return time.Now().Add(c.Real(t.Sub(c.Now()))).Round(0)
}

// Suspended returns how long the machine has been suspended since boot: boot time less
// monotonic time. Steps of the wall clock do not change it.
func Suspended() time.Duration {
	mono := read(unix.CLOCK_MONOTONIC)
	return read(unix.CLOCK_BOOTTIME).Sub(mono)
}

func read(id int32) mihf.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("clock: the kernel has no such clock: " + err.Error()) // Linux has both since 2.6.39
	}
	return mihf.Time(ts.Nano())
}
