package vm

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this test binary be the program that runs in the guest, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "in-guest" {
		os.Exit(inGuest(os.Args[2]))
	}
	flag.Parse()
	if _, err := open(); err != nil {
		forget()
	}
	os.Exit(m.Run())
}

const (
	printedLines = 20_000
	long         = 15 * time.Minute // of sleep; far more than a run may take
)

// inGuest is the guest's side of the tests.
func inGuest(what string) int {
	switch what {
	case "print":
		for i := range printedLines {
			fmt.Fprintf(os.Stdout, "line %d\n", i)
		}
		fmt.Fprint(os.Stderr, "the end")
		if err := os.WriteFile(filepath.Join(KeepDir, "kept"), []byte("kept"), 0o600); err != nil {
			return fail(err)
		}
		return 3
	case "see":
		cwd, err := os.Getwd()
		fmt.Println(cwd, err, os.Getuid(), os.Getenv("MIHF_TEST"), os.Getenv(guestVar))
		own, err := os.ReadFile("doc.go")
		fmt.Println(len(own), err)
		fmt.Println(os.WriteFile("doc.go", []byte("written over"), 0o600))
		_, err = os.Stat("/sys/module/mac80211_hwsim/parameters/radios")
		fmt.Println(err)
		return 0
	case "panic":
		// Documentation/admin-guide/sysrq.rst: c crashes the kernel.
		return fail(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0))
	case "sleep":
		begin := time.Now()
		time.Sleep(long)
		fmt.Println(time.Since(begin).Round(time.Minute))
		return 0
	case "stay":
		fmt.Println("staying")
		select {}
	}
	return fail(fmt.Errorf("no %q", what))
}

func fail(err error) int {
	fmt.Println(err)
	return 1
}

// job is this binary in the guest.
func job(t *testing.T, what string) Job {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Job{Args: []string{self, "in-guest", what}, Timeout: 3 * time.Minute}
}

// run runs a job, or skips the test where there can be no guest.
func run(ctx context.Context, t *testing.T, j Job, out io.Writer) (int, error) {
	t.Helper()
	code, err := Run(ctx, j, out)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	return code, err
}

// "What it prints comes out byte by byte in order, errors with the rest, and its exit code is
// returned", also where the reader takes its time. What it leaves is kept.
func TestRunOutputAndCode(t *testing.T) {
	var out bytes.Buffer
	j := job(t, "print")
	j.Keep = t.TempDir()
	code, err := run(t.Context(), t, j, &out)
	if err != nil || code != 3 {
		t.Fatalf("code %d, error %v, output %q", code, err, out.Bytes())
	}
	if b, err := os.ReadFile(filepath.Join(j.Keep, "kept")); string(b) != "kept" {
		t.Errorf("kept %q, %v", b, err)
	}
	var want bytes.Buffer
	for i := range printedLines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	want.WriteString("the end")
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes of output differ from the %d that were printed", out.Len(), want.Len())
	}
}

// "The guest sees the host's files, in the same folders, as root. What it writes vanishes
// with it"; "the program has the caller's folder and environment, and MIHF_GUEST=1".
func TestRunSees(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MIHF_TEST", "with spaces, 'quotes' and ünïcode")
	j := job(t, "see")
	j.Modules = [][]string{{"mac80211_hwsim", "radios=1"}}
	var out strings.Builder
	code, err := run(t.Context(), t, j, &out)
	if err != nil || code != 0 {
		t.Fatalf("code %d, error %v, output %q", code, err, out.String())
	}
	want := fmt.Sprintf("%s <nil> 0 with spaces, 'quotes' and ünïcode 1\n%d <nil>\n<nil>\n<nil>\n", dir, len(before))
	if out.String() != want {
		t.Errorf("the guest saw\n%s\nwant\n%s", out.String(), want)
	}
	after, err := os.ReadFile("doc.go")
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the host's file after the run: %d bytes, error %v", len(after), err)
	}
}

// "A run ends: with the context". And what the guest's kernel panics on is told from a code.
func TestRunEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("unsupported with -short: three guests")
	}
	t.Run("panic", func(t *testing.T) {
		_, err := run(t.Context(), t, job(t, "panic"), io.Discard)
		if CodeOf(err) != CodeNoResult || !strings.Contains(err.Error(), "Kernel panic") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		j := job(t, "stay")
		j.Timeout = time.Second // the kernel will not have started
		if _, err := run(t.Context(), t, j, io.Discard); CodeOf(err) != CodeTimeout {
			t.Errorf("error %v", err)
		}
		wantNoQEMU(t)
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := writerFunc(func(b []byte) { cancel() })
		if _, err := run(ctx, t, job(t, "stay"), out); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		wantNoQEMU(t)
	})
}

// "With Job.Virtual its clocks skip what it sleeps."
func TestRunVirtual(t *testing.T) {
	j := job(t, "sleep")
	j.Virtual = true
	var out strings.Builder
	code, err := run(t.Context(), t, j, &out)
	if want := fmt.Sprintln(long); err != nil || code != 0 || out.String() != want {
		t.Errorf("code %d, error %v; it slept %q, want %q", code, err, out.String(), want)
	}
}

// A writerFunc is called with what is written, once it is something.
type writerFunc func(b []byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// wantNoQEMU fails if this process has a child that runs.
func wantNoQEMU(t *testing.T) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("threads %v, error %v", tasks, err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err == nil && len(children) > 0 { // a thread may have ended
			t.Errorf("children left: %s", children)
		}
	}
}

// "One guest runs at a time": who waits for the lock gets it when it is free, or ends with its context.
func TestLock(t *testing.T) {
	c := cache{dir: t.TempDir()}
	unlock, err := c.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the lock while another has it: error %v", err)
	}
	unlock()
	again, err := c.lock(t.Context())
	if err != nil {
		t.Fatal("the lock when it is free:", err)
	}
	again()
}
