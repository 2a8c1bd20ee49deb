package clock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// What is counted on is what the kernel says, from both sides.
func TestBootTimeIsTheKernels(t *testing.T) {
	for range 1000 {
		before := read(unix.CLOCK_BOOTTIME)
		got := bootTime()
		after := read(unix.CLOCK_BOOTTIME)
		if got < before.Add(-time.Millisecond) || got > after.Add(time.Millisecond) {
			t.Fatalf("boot time %v, the kernel's is %v to %v", got, before, after)
		}
	}
}

// Suspend and steps of the wall clock move it against the monotonic clock: then boot time
// is not counted on. Nor where the clock goes back (another one, in a test's bubble).
func TestCountsOnOnlyTime(t *testing.T) {
	r := &reading{mono: time.Minute, wall: 5e18, boot: 1000}
	for _, c := range []struct {
		mono, wall time.Duration // that passed
		ok         bool
	}{
		{0, 0, true},
		{time.Minute, time.Minute, true},
		{time.Minute, time.Minute + 100*time.Microsecond, true},
		{26 * 365 * 24 * time.Hour, 26 * 365 * 24 * time.Hour, false},
		{time.Second, 3 * time.Second, false},
		{time.Second, -3 * time.Second, false},
		{time.Second, time.Second + time.Millisecond, false},
		{-time.Second, -time.Second, false},
	} {
		got, ok := r.countOn(r.mono+c.mono, r.wall+int64(c.wall))
		if ok != c.ok || (ok && got != r.boot.Add(c.mono)) {
			t.Errorf("after %v, by the wall clock %v: %v, %v; want %v", c.mono, c.wall, got, ok, c.ok)
		}
	}
}

func TestNotBack(t *testing.T) {
	for _, c := range []struct{ read, counted, want mihf.Time }{{100, 90, 100}, {100, 120, 120}, {100, 100 + 2e9, 100}} {
		if got := notBack(c.read, c.counted); got != c.want {
			t.Errorf("read %d, counted %d: got %d, want %d", c.read, c.counted, got, c.want)
		}
	}
}

func BenchmarkBootTime(b *testing.B) {
	b.Run("impl=bare", func(b *testing.B) {
		for b.Loop() {
			read(unix.CLOCK_BOOTTIME)
		}
	})
	b.Run("impl=ours", func(b *testing.B) {
		for b.Loop() {
			bootTime()
		}
	})
}
