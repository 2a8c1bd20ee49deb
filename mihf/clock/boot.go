package clock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// The kernel gives boot time by a system call only, which took a third of the time from an
// observation to a Freeze. Package time reads the monotonic and the wall clock without
// one, so boot time is counted on from a reading by the monotonic clock, for as long as
// the wall clock agrees: suspend moves it against the monotonic one, and so does a step;
// then boot time is read again.

// reading is what the clocks said at one moment.
type reading struct {
	mono time.Duration // since start
	wall int64         // nanoseconds
	boot mihf.Time
}

const (
	disagree = 500 * time.Microsecond // far below any suspend
	careful  = 20 * time.Microsecond  // within which all clocks are read
	longest  = time.Minute            // that is counted on from one reading
)

var (
	start  = time.Now()
	newest atomic.Pointer[reading]
)

// packageTime reads the two clocks of package time.
func packageTime() (mono time.Duration, wall int64) {
	t := time.Now()
	return t.Sub(start), t.UnixNano()
}

// bootTime returns the boot time now.
func bootTime() mihf.Time {
	if r := newest.Load(); r != nil {
		if t, ok := r.countOn(packageTime()); ok {
			return t
		}
	}
	return readAgain()
}

// countOn returns the boot time at a later moment; false if more than time has passed, or
// too much of it (a reading within testing/synctest is of another age).
func (r *reading) countOn(mono time.Duration, wall int64) (mihf.Time, bool) {
	passed := mono - r.mono
	if d := time.Duration(wall-r.wall) - passed; passed < 0 || passed > longest || d > disagree || d < -disagree {
		return 0, false
	}
	return r.boot.Add(passed), true
}

// readAgain reads all clocks, once more where something came in between.
func readAgain() mihf.Time {
	old := newest.Load()
	r := &reading{}
	for range 10 {
		before, _ := packageTime()
		r.boot = read(unix.CLOCK_BOOTTIME)
		if r.mono, r.wall = packageTime(); r.mono-before < careful {
			break
		}
	}
	if old != nil {
		r.boot = notBack(r.boot, old.boot.Add(r.mono-old.mono))
	}
	newest.CompareAndSwap(old, r)
	return r.boot
}

// notBack returns what was read, or what was counted where that is later by no more than
// the reading of clocks takes.
func notBack(read, counted mihf.Time) mihf.Time {
	if d := counted.Sub(read); d > 0 && d < time.Second {
		return counted
	}
	return read
}
