package clock_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// "Now never goes back within one Clock", and is never the zero Time.
func TestNeverBack(t *testing.T) {
	for name, c := range map[string]clock.Clock{"zero": {}, "boot": clock.Boot(), "process": clock.Process(), "slow": clock.Scaled(0.3), "fast": clock.Scaled(1e6)} {
		last := c.Now()
		for range 10_000 {
			now := c.Now()
			if now.Before(last) || now.IsZero() {
				t.Fatalf("%s: %v after %v", name, now, last)
			}
			last = now
		}
	}
}

// "Boot counts suspend": it is the monotonic clock and the time suspended.
func TestSuspended(t *testing.T) {
	if d := clock.Suspended(); d < 0 || clock.Boot().Now().Sub(0) < d {
		t.Errorf("suspended for %v of %v since boot", d, clock.Boot().Now())
	}
}

// "Process and Scaled are derived from package time."
func TestFollowsPackageTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for speed, want := range map[float64]time.Duration{1: 10 * time.Second, 4: 40 * time.Second, 0.5: 5 * time.Second} {
			c := clock.Scaled(speed)
			before := c.Now()
			if before != mihf.Time(time.Hour) {
				t.Errorf("starts at %v, want an hour", before)
			}
			time.Sleep(10 * time.Second)
			if got := c.Now().Sub(before); got != want {
				t.Errorf("at speed %v %v passed in 10 s, want %v", speed, got, want)
			}
		}
	})
}

// A timer of Real(d) never fires before d has passed.
func TestRealIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, speed := range []float64{0.3, 1, 3, 7, 1000} {
			c := clock.Scaled(speed)
			for _, d := range []time.Duration{0, 1, 10, 999, time.Millisecond, 7 * time.Second} {
				before := c.Now()
				time.Sleep(c.Real(d))
				if got := c.Now().Sub(before); got < d {
					t.Errorf("speed %v: %v passed, want at least %v", speed, got, d)
				}
			}
		}
		if d := clock.Boot().Real(time.Second); d != time.Second {
			t.Errorf("a second of boot time takes %v", d)
		}
	})
}

func TestWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Scaled(2)
		t0 := c.Now()
		want := time.Now()
		time.Sleep(3 * time.Second)
		if got := c.Wall(t0); got.Sub(want).Abs() > time.Microsecond {
			t.Errorf("wall time %v, want %v", got, want)
		}
	})
}

func TestSpeedIsChecked(t *testing.T) {
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("speed %v was taken", speed)
				}
			}()
			clock.Scaled(speed)
		}()
	}
}
