package endtoend

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestResultsIdle measures a daemon that has nothing to do, and how long it takes to its
// first snapshot, and writes docs/results/idle.md.
func TestResultsIdle(t *testing.T) {
	if os.Getenv("MIHF_FULL") == "" {
		t.Skip("MIHF_FULL is not set: only make results measures for minutes")
	}
	var starts []time.Duration
	const runs = 20
	for range runs {
		t.Run("start", func(t *testing.T) {
			b := newBed(t, "")
			starts = append(starts, b.answered)
		})
	}
	slices.Sort(starts)
	b := newBed(t, "")
	b.online()
	const idle = 30 * time.Second
	before := b.ticks()
	time.Sleep(idle)
	used := b.ticks() - before
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# An idle daemon\n\nMeasured by `make results` on Linux %s, %s, %d processors: mihfd in a namespace with one link and one client that follows.\n\n",
		unix.ByteSliceToString(u.Release[:]), runtime.Version(), runtime.NumCPU())
	fmt.Fprintf(&out, "| what | measured | target |\n|---|---|---|\n")
	fmt.Fprintf(&out, "| start of the process to the first snapshot, median of %d | %d ms | 50 ms |\n", runs, starts[runs/2].Milliseconds())
	fmt.Fprintf(&out, "| the slowest of them | %d ms | |\n", starts[runs-1].Milliseconds())
	fmt.Fprintf(&out, "| resident memory | %.1f MiB | 30 MiB |\n", b.residentMiB())
	fmt.Fprintf(&out, "| processor time over %v | %.2f %% of a core | 0.5 %% |\n", idle, float64(used)/100/idle.Seconds()*100)
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "results", "idle.md"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
}

// ticks returns the daemon's processor time in hundredths of a second (USER_HZ).
func (b *bed) ticks() int {
	b.t.Helper()
	stat := b.proc("stat")
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		b.t.Fatalf("stat of the daemon: %v, %v", err1, err2)
	}
	return user + system
}

func (b *bed) residentMiB() float64 {
	b.t.Helper()
	for line := range strings.Lines(b.proc("status")) {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")))
			if err != nil {
				b.t.Fatal(err)
			}
			return float64(n) / 1024
		}
	}
	b.t.Fatal("the kernel tells no VmRSS")
	return 0
}

func (b *bed) proc(file string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(b.daemon.Process.Pid), file))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}
