package mihf

import (
	"fmt"
	"time"
)

// Time is a moment in nanoseconds of boot time, which also counts suspend
// (CLOCK_BOOTTIME). The zero Time means "never" or "not set"; no source of time
// returns it. Moments of different boots must not be compared.
type Time int64

// Add returns the moment d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }

// IsZero reports whether t is not set.
func (t Time) IsZero() bool { return t == 0 }

// Seconds returns t as seconds since boot.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// String shows t in seconds since boot, for example "12.345s".
func (t Time) String() string { return fmt.Sprintf("%.3fs", t.Seconds()) }

// Sooner returns the earlier of two deadlines, where zero means none.
func Sooner(a, b Time) Time {
	if a.IsZero() || (!b.IsZero() && b < a) {
		return b
	}
	return a
}

// Due reports whether the deadline is set and not after now.
func (t Time) Due(now Time) bool { return t != 0 && t <= now }
