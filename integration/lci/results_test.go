package lci_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// TestResultsLCI measures what is estimated against what is set, and writes docs/results/lci.md.
func TestResultsLCI(t *testing.T) {
	if os.Getenv("MIHF_FULL") == "" {
		t.Skip("MIHF_FULL is not set: only make results measures for minutes")
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Link characteristics: set against estimated\n\nMeasured by `make results` on Linux %s, %s, %d processors with a load of %s before: one kernel TCP flow over the user-space link, read by `sock_diag`.\n"+
		"The queue is one round trip's worth of data, 30 kB at least. Values after 2 s of load, and after 6 s; – is unknown.\n\n",
		unix.ByteSliceToString(u.Release[:]), runtime.Version(), runtime.NumCPU(), bytes.Fields(load)[0])
	fmt.Fprintf(&out, "| control | direction | set Mbit/s | set RTT ms | capacity 2 s | 6 s | RTT 2 s | 6 s | set buffer kB | 6 s |\n|---|---|---|---|---|---|---|---|---|---|\n")
	right := map[string]int{}
	all := 0
	for _, control := range []string{"cubic", "bbr"} {
		for _, up := range []bool{true, false} {
			for _, mbit := range []float64{1, 5, 20, 100} {
				for _, rtt := range []int{10, 50, 200} {
					s := setting{control, up, mbit, time.Duration(rtt) * time.Millisecond, 0}
					t.Run(s.String(), func(t *testing.T) {
						needs(t, control)
						b := s.bed(t)
						b.load(control, up)
						early := b.watch(2 * time.Second)
						late := b.watch(4 * time.Second)
						all++
						for key, ok := range map[string]bool{
							"capacity 2 s": within(s.capacity(early), mbit*1e6, 0.15), "capacity 6 s": within(s.capacity(late), mbit*1e6, 0.15),
							"RTT 2 s": within(early.RTTSeconds, s.rtt.Seconds(), 0.10), "RTT 6 s": within(late.RTTSeconds, s.rtt.Seconds(), 0.10),
							"buffer 6 s": up && within(late.BufferBytes, float64(s.queue()), 0.25),
						} {
							if ok {
								right[key]++
							}
						}
						fmt.Fprintf(&out, "| %s | %s | %v | %d | %s | %s | %s | %s | %d | %s |\n", control, map[bool]string{true: "up", false: "down"}[up], mbit, rtt,
							show(s.capacity(early), 1e6), show(s.capacity(late), 1e6), show(early.RTTSeconds, 1e-3), show(late.RTTSeconds, 1e-3), s.queue()/1000, show(late.BufferBytes, 1e3))
					})
				}
			}
		}
	}
	fmt.Fprintf(&out, "\n| within the goal | runs | of |\n|---|---|---|\n| capacity, 15 %%, after 2 s | %d | %d |\n| capacity, 15 %%, after 6 s | %d | %d |\n| RTT, 10 %%, after 2 s | %d | %d |\n| RTT, 10 %%, after 6 s | %d | %d |\n| buffer, 25 %%, after 6 s, up | %d | %d |\n",
		right["capacity 2 s"], all, right["capacity 6 s"], all, right["RTT 2 s"], all, right["RTT 6 s"], all, right["buffer 6 s"], all/2)
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "results", "lci.md"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
}

func show(c mihf.Characteristic, unit float64) string {
	if !c.Known() {
		return "–"
	}
	return fmt.Sprintf("%.3g", c.Value/unit)
}
