package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/integration/daemons"
)

// As its own server, or clients, the test's binary is given their arguments alone.
func TestMain(m *testing.M) {
	if os.Getenv("MIHF_BENCH_TEST_CHILD") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	var err error
	if args := os.Args[1:]; args[0] == "clients" {
		count, _ := strconv.Atoi(args[2])
		events, _ := strconv.Atoi(args[3])
		err = ServeNeighbours(context.Background(), args[1], count, events, os.Stdin, os.Stdout)
	} else {
		err = ServeMemory(context.Background(), args[0], args[1], os.Stdin, os.Stdout)
	}
	if err != nil {
		panic(err)
	}
}

// A short run of everything: nothing is missed, and all that is measured is told.
func TestRun(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MIHF_BENCH_TEST_CHILD", "1")
	if err := daemons.InPath(t, "dbus-daemon"); err != nil {
		t.Skip(err)
	}
	var told []string
	r, err := Run(t.Context(), Options{
		All: true, Rounds: 1, Events: 50, Messages: 20, Flood: 200, Neighbours: 3, Filling: 1, Crowd: 4, Settle: time.Millisecond,
		Server: []string{exe}, Clients: []string{exe, "clients"}, Progress: func(s string) { told = append(told, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Fanout.Missed != 0 || r.Stalled.Missed != 0 {
		t.Errorf("missed: %+v %+v", r.Fanout, r.Stalled)
	}
	for name, f := range map[string]*Front{"gRPC": r.GRPC, "NATS": r.NATS, "D-Bus": r.DBus, "NATS in process": r.NATSInProcess} {
		if f == nil || f.Missed != 0 || f.Bytes == 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for name, m := range map[string]*Memory{"gRPC": r.Memory, "NATS": r.NATSMemory, "D-Bus": r.DBusMemory} {
		if m == nil || m.MissedHints != 0 || m.IdleMiB <= 0 {
			t.Errorf("memory of %s: %+v", name, m)
		}
	}
	if len(told) != 9 {
		t.Errorf("told %q, want the nine parts", told)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Fanout, GRPC, NATS, DBus map[string]float64
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"callback_p99_us", "goroutine_p99_us", "bare_p99_us", "ratio_p99", "deliveries_per_s", "allocs_per_event"} {
		if v, ok := got.Fanout[k]; !ok || (v <= 0 && k != "allocs_per_event") {
			t.Errorf("fanout.%s is %v", k, v)
		}
	}
	for _, k := range []string{"ours_p50_us", "bare_p50_us", "ours_p99_us", "ratio_p50"} {
		for name, front := range map[string]map[string]float64{"grpc": got.GRPC, "nats": got.NATS, "dbus": got.DBus} {
			if front[k] <= 0 {
				t.Errorf("%s.%s is %v", name, k, front[k])
			}
		}
	}
}

// Without dbus-daemon the rest is measured, D-Bus is null, and it is said what is missing.
func TestRunWithoutBus(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var missing []string
	r, err := Run(t.Context(), Options{Rounds: 1, Events: 20, Messages: 20, Flood: 100, Missing: func(err error) { missing = append(missing, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) != 1 || !strings.Contains(missing[0], "freeze over D-Bus: ") || !strings.Contains(missing[0], "apt-get install dbus-daemon") {
		t.Errorf("missing: %q", missing)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.NATS == nil || !strings.Contains(string(b), `"dbus":null`) {
		t.Errorf("%s", b)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Run(ctx, Options{Rounds: 1}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestStatistics(t *testing.T) {
	values := []int64{5000, 1000, 4000, 2000, 3000}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(slices.Clone(values), q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	if got := ratios([]float64{1, 4, 9}, []float64{1, 2, 3}); got != 2 {
		t.Errorf("median of ratios %v", got)
	}
	if got := round(1.2345, 2); got != 1.23 {
		t.Errorf("rounded %v", got)
	}
}

func TestPaceCallsEachOnce(t *testing.T) {
	var got []int
	if err := pace(t.Context(), 5, time.Microsecond, func(i int) { got = append(got, i) }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{0, 1, 2, 3, 4}, got); d != "" {
		t.Error(d)
	}
}

func TestTable(t *testing.T) {
	r := Report{
		Machine: Machine{CPU: "a CPU", Processors: 2, Kernel: "6.1", Go: "go1.26", At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Seconds: 30},
		Fanout:  Fanout{GoroutineP99: 90, BareP99: 100, RatioP99: 0.9, CallbackP99: 20, Deliveries: 4.2e7, SubscriberCount: 100},
		GRPC:    &Front{OursP50: 40, BareP50: 32, RatioP50: 1.25},
		NATS:    &Front{OursP50: 60, BareP50: 50, RatioP50: 1.2},
		Stalled: &Stalled{Neighbours: 49, WithP99: 300, WithoutP99: 310, RatioP99: 0.97, WorstP99: 700},
		Memory:  &Memory{IdleMiB: 20, OwnConnection: 40, SharedConnection: 20, HintsEach: 5, Subscribers: 1000},

		NATSInProcess: &Front{OursP50: 30, BareP50: 25, RatioP50: 1.2},
		NATSMemory:    &Memory{IdleMiB: 35, OwnConnection: 50, SharedConnection: 10, HintsEach: 5, Subscribers: 1000},
	}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("table (-want +got):\n%s", d)
	}
}
