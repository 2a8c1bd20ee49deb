package sensors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want mihf.Condition
	}{
		{fmt.Errorf("open: %w", syscall.EPERM), mihf.ConditionDenied},
		{&os.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}, mihf.ConditionDenied},
		{syscall.EAFNOSUPPORT, mihf.ConditionUnavailable},
		{fmt.Errorf("family nl80211: %w", os.ErrNotExist), mihf.ConditionUnavailable},
		{fmt.Errorf("bus: %w", sensors.ErrUnavailable), mihf.ConditionUnavailable},
		{syscall.ENODEV, mihf.ConditionUnavailable},
		{syscall.ENOBUFS, mihf.ConditionDegraded},
		{errors.New("something"), mihf.ConditionDegraded},
		{sensors.Guard(func() error { panic("x") }), mihf.ConditionDegraded},
	} {
		if got := sensors.Classify(tc.err); got != tc.want {
			t.Errorf("Classify(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
}

// redialTest runs a Redial whose sessions are given as functions, one a try; the last
// one stands for all after it. It notes when each try began and what was emitted.
type redialTest struct {
	tries      []time.Duration
	conditions []mihf.Condition
	texts      []string
}

func (rt *redialTest) run(t *testing.T, d time.Duration, retry <-chan struct{}, sessions ...sensors.Session) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r := sensors.Redial{Sensor: "test", Clock: clock.Process(), Seed: 1, Retry: retry}
	err := r.Run(ctx, func(o *mihf.Observation) {
		if ctx.Err() != nil {
			t.Error("emitted after the context ended")
		}
		if o.Kind != mihf.ObsCondition || o.Sensor != "test" || o.At.IsZero() || o.Condition.Sensor != "test" {
			t.Errorf("observation %+v", o)
		}
		rt.conditions = append(rt.conditions, o.Condition.Condition)
		rt.texts = append(rt.texts, o.Condition.Text)
	}, func(ctx context.Context, report sensors.Report) error {
		n := min(len(rt.tries), len(sessions)-1)
		rt.tries = append(rt.tries, time.Since(start))
		return sessions[n](ctx, report)
	})
	if err != nil {
		t.Errorf("Run = %v, want nil: it ends only with its context", err)
	}
	if got := time.Since(start); got != d {
		t.Errorf("Run ended after %v, want %v", got, d)
	}
}

func (rt *redialTest) want(t *testing.T, want ...mihf.Condition) {
	t.Helper()
	if diff := cmp.Diff(want, rt.conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func fails(err error) sensors.Session {
	return func(context.Context, sensors.Report) error { return err }
}

func works(ctx context.Context, report sensors.Report) error {
	report(mihf.ConditionOK, "")
	report(mihf.ConditionOK, "")
	<-ctx.Done()
	return ctx.Err()
}

func worksFor(d time.Duration, err error) sensors.Session {
	return func(ctx context.Context, report sensors.Report) error {
		report(mihf.ConditionOK, "")
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return err
	}
}

func TestConditionOnChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt redialTest
		rt.run(t, time.Hour, nil, fails(errors.New("a")), fails(errors.New("a")), fails(errors.New("b")), works)
		rt.want(t, mihf.ConditionStarting, mihf.ConditionDegraded, mihf.ConditionDegraded, mihf.ConditionOK)
		if diff := cmp.Diff([]string{"", "a", "b", ""}, rt.texts); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDeniedAndUnavailableAreSlow(t *testing.T) {
	for _, tc := range []struct {
		err  error
		wait time.Duration
		want mihf.Condition
	}{
		{syscall.EPERM, sensors.RetryDenied, mihf.ConditionDenied},
		{sensors.ErrUnavailable, sensors.RetryUnavailable, mihf.ConditionUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			var rt redialTest
			rt.run(t, time.Hour, nil, fails(tc.err))
			rt.want(t, mihf.ConditionStarting, tc.want)
			for i, at := range rt.tries {
				if want := time.Duration(i) * tc.wait; at != want {
					t.Fatalf("try %d at %v, want %v", i, at, want)
				}
			}
		})
	}
}

func TestBackoffDoublesWithJitterFromSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b redialTest
		a.run(t, 10*time.Minute, nil, fails(errors.New("x")))
		b.run(t, 10*time.Minute, nil, fails(errors.New("x")))
		if diff := cmp.Diff(a.tries, b.tries); diff != "" {
			t.Errorf("the same seed gives other waits:\n%s", diff)
		}
		limit := 100 * time.Millisecond
		for i := 1; i < len(a.tries); i++ {
			if d := a.tries[i] - a.tries[i-1]; d < limit/2 || d > limit {
				t.Fatalf("wait %d is %v, want %v to %v", i, d, limit/2, limit)
			}
			limit = min(2*limit, 30*time.Second)
		}
	})
}

func TestBackoffStartsAnewAfterAHealthySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := fails(errors.New("x"))
		var rt redialTest
		rt.run(t, time.Hour, nil, bad, bad, bad, bad, bad, bad, bad, worksFor(time.Minute, errors.New("y")), works)
		if d := rt.tries[8] - rt.tries[7] - time.Minute; d > 100*time.Millisecond {
			t.Errorf("waited %v after a healthy session", d)
		}
	})
}

func TestRetryEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := make(chan struct{}, 1)
		go func() {
			time.Sleep(time.Second)
			retry <- struct{}{}
		}()
		var rt redialTest
		rt.run(t, 30*time.Second, retry, fails(syscall.EAFNOSUPPORT), works)
		rt.want(t, mihf.ConditionStarting, mihf.ConditionUnavailable, mihf.ConditionOK)
		if rt.tries[1] != time.Second {
			t.Errorf("tried again at %v", rt.tries[1])
		}
	})
}

func TestPanicAndEarlyEndAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt redialTest
		rt.run(t, time.Minute, nil,
			func(context.Context, sensors.Report) error { panic("broken") }, fails(nil), works)
		rt.want(t, mihf.ConditionStarting, mihf.ConditionDegraded, mihf.ConditionDegraded, mihf.ConditionOK)
		if diff := cmp.Diff([]string{"", "panic: broken", "the session ended by itself", ""}, rt.texts); diff != "" {
			t.Error(diff)
		}
	})
}
