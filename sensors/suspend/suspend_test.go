package suspend_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
	"mihf.dev/sensors/sensorstest"
	"mihf.dev/sensors/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func isCondition(o *mihf.Observation) bool { return o.Kind == mihf.ObsCondition }

func TestContract(t *testing.T) {
	sensorstest.Contract(t, func(testing.TB) sensors.Sensor { return suspend.New(suspend.Options{}) }, isCondition)
}

func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended atomic.Int64
		suspended.Store(int64(3 * time.Hour)) // before the sensor started: of no interest
		s := suspend.New(suspend.Options{
			Clock:     clock.Process(),
			Suspended: func() time.Duration { return time.Duration(suspended.Load()) },
		})
		r := sensorstest.Start(t, s)
		r.Until(t, "the condition", isCondition)
		step := func(gap, want time.Duration) {
			t.Helper()
			suspended.Add(int64(gap))
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			seen := r.Drain()
			switch {
			case want == 0 && len(seen) == 0:
			case len(seen) == 1 && seen[0].Kind == mihf.ObsResume && seen[0].Gap == want:
				if bad := sensorstest.Check(suspend.Name, &seen[0]); bad != "" {
					t.Error(bad)
				}
			default:
				t.Errorf("gap %v: want one resume of %v, got:\n%s", gap, want, sensorstest.Format(seen))
			}
		}
		t.Log("# a stalled process, a step of the wall clock: the difference does not move")
		step(0, 0)
		time.Sleep(time.Hour)
		step(0, 0)
		t.Log("# one suspend, one observation")
		step(8*time.Hour, 8*time.Hour)
		step(0, 0)
		t.Log("# what is too short adds up")
		step(600*time.Millisecond, 0)
		step(600*time.Millisecond, 1200*time.Millisecond)
		r.Stop(t)
	})
}

func TestHeldUpBetweenTheReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		s := suspend.New(suspend.Options{Clock: clock.Process(), Suspended: func() time.Duration {
			if readings.Add(1)%5 == 0 {
				return time.Hour
			}
			return 0
		}})
		r := sensorstest.Start(t, s)
		time.Sleep(time.Minute)
		r.Stop(t)
		for _, o := range r.Drain() {
			if o.Kind == mihf.ObsResume {
				t.Errorf("resume of %v without a suspend", o.Gap)
			}
		}
	})
}

// The production source must be what the sensor reads: a detector that works with a fake
// clock only is none (real values, not made-up ones).
func TestRealClock(t *testing.T) {
	a := clock.Suspended()
	b := clock.Suspended()
	if d := b - a; d > time.Millisecond*100 || d < -time.Millisecond*100 {
		t.Errorf("boot time less monotonic time moved by %v without a suspend", d)
	}
}
