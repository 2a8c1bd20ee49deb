package sensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

func TestFold(t *testing.T) {
	var out bytes.Buffer
	f := sensors.NewFold(slog.New(slog.NewTextHandler(&out, nil)))
	now := mihf.Time(time.Hour)
	fail := func(text string, times int) {
		for range times {
			f.Failed(now, errors.New(text))
			now = now.Add(time.Second)
		}
	}
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		out.Reset()
		if len(got) == 1 && got[0] == "" {
			got = nil
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("line %q, want %q in it", got[i], want[i])
			}
		}
	}
	t.Log("# the same error once")
	fail("a", 100)
	lines(`msg="sensor failed" error=a`)
	t.Log("# another one: the first is summed up")
	fail("b", 1)
	lines("error=a count=99 first_s=3601", "error=b")
	t.Log("# summed up every ten minutes")
	fail("b", 601)
	lines("error=b count=600")
	t.Log("# over")
	fail("b", 3)
	f.Recovered()
	f.Recovered()
	lines("error=b count=4", "sensor recovered")
	t.Log("# again after that: named again")
	fail("b", 1)
	lines("error=b")
	t.Log("# what is not there is no fault")
	f.Failed(now, fmt.Errorf("c: %w", sensors.ErrUnavailable))
	lines(`level=INFO msg="sensor failed" error="c: not available"`)
	t.Log("# a panic brings its stack")
	f.Failed(now, sensors.Guard(func() error { panic("x") }))
	lines("stack=")
}
