package vm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"mihf.dev/integration/vm/boot"
)

// guestVar is set in the environment of what runs in a guest.
const guestVar = "MIHF_GUEST"

// InGuest reports whether this process runs in a guest of this package.
func InGuest() bool { return os.Getenv(guestVar) != "" }

// Full reports whether all is to be measured, at length ("make results"), not a sample of it.
func Full() bool { return os.Getenv("MIHF_FULL") == "1" }

// KeepDir is where a guest's program leaves what the host keeps, see Job.Keep.
const KeepDir = boot.JobDir + "/" + boot.Keep

// missing is why this process runs tests outside of a guest; set by Main.
var missing error

// Main is a TestMain: it runs this test binary again, with the same arguments, on the machine
// that the job describes, whose Args it sets, and exits as that did. In the guest it runs the
// tests. Where there can be no guest it runs them too, and each is skipped by Guest.
func Main(m *testing.M, j Job) {
	if InGuest() {
		os.Exit(m.Run())
	}
	flag.Parse()
	code, err := runSelf(j)
	switch {
	case errors.Is(err, ErrUnsupported):
		missing = err
		forget()
		code = m.Run()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		code = CodeOf(err)
	}
	os.Exit(code)
}

// forget keeps "go test" from remembering this run: it does not see what a skip depends on,
// which lies outside of the module, and without this list of what was seen it remembers
// nothing.
func forget() { _ = flag.Set("test.testlogfile", "") } // without that flag there is nothing to keep

// CodeOf is the exit code that tells of an error of Run.
func CodeOf(err error) int {
	switch {
	case errors.Is(err, ErrUnsupported):
		return CodeUnsupported
	case errors.Is(err, ErrTimeout):
		return CodeTimeout
	default:
		return CodeNoResult
	}
}

func runSelf(j Job) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("vm: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j.Args = append([]string{self}, os.Args[1:]...)
	if j.Virtual {
		j.Args = append(j.Args, "-test.timeout=0") // the host's clock counts
	}
	if j.Timeout == 0 {
		j.Timeout = testTimeout()
	}
	return Run(ctx, j, os.Stdout)
}

// testTimeout is the test binary's own, which it keeps in the guest and says more about, and
// the time that a guest takes to start.
func testTimeout() time.Duration {
	const bootTime = time.Minute
	if f := flag.Lookup("test.timeout"); f != nil {
		if d, err := time.ParseDuration(f.Value.String()); err == nil && d > 0 {
			return d + bootTime
		}
	}
	return 24 * time.Hour // -timeout=0: as long as it takes
}

// Guest begins a test that only a guest can run. It skips the test where there can be no
// guest, and fails it where the package's TestMain does not call Main.
func Guest(t testing.TB) {
	t.Helper()
	if InGuest() {
		return
	}
	if missing == nil {
		t.Fatal("vm: TestMain does not call vm.Main")
	}
	t.Skip(missing)
}
