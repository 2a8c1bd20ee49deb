package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docBoot is the run that the examples show.
const docBoot = "5f3a0c11"

// example is a command of the manual with the output that it shows.
type example struct {
	command string
	want    []string
}

func examples(t *testing.T) []example {
	t.Helper()
	b, err := os.ReadFile("../../docs/mihctl.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	in := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```console"
		case in && isCommand:
			all = append(all, example{command: command})
		case in:
			all[len(all)-1].want = append(all[len(all)-1].want, line)
		}
	}
	return all
}

var (
	duration = regexp.MustCompile(`-?\b\d+(\.\d+)? m?s\b|\b\d+m\d\ds\b|\b\d+h\d\dm\b|\b\d+(\.\d+)?m?s\b`)
	clockAt  = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3}\b`)
	flowID   = regexp.MustCompile(`\b[0-9A-Z]{26}\b`)
	drawn    = regexp.MustCompile(`[▁▂▃▄▅▆▇█·]+`)
	goOf     = regexp.MustCompile(`"(version|go|platform)":"[^"]*",?`)
)

// rough leaves out what differs from run to run: times, measured numbers, ids.
func rough(line string) string {
	line = goOf.ReplaceAllString(line, "")
	line = duration.ReplaceAllString(line, "DURATION")
	line = clockAt.ReplaceAllString(line, "TIME")
	line = flowID.ReplaceAllString(line, "FLOW")
	line = drawn.ReplaceAllString(line, "")
	var words []string
	for w := range strings.FieldsSeq(line) {
		bare := strings.Trim(w, "(),:;[]")
		if _, err := strconv.ParseFloat(bare, 64); err == nil {
			w = strings.Replace(w, bare, "N", 1)
		}
		words = append(words, strings.TrimSuffix(w, "F")) // the mark of a freeze stands beside that of its announcement
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// The manual's examples give what it shows; "…" stands for any lines, or for the rest of
// one.
func manual(t *testing.T, f *fixture) {
	t.Helper()
	boot := f.prediction.Boot.String()
	for _, x := range examples(t) {
		t.Run(x.command, func(t *testing.T) {
			if strings.Contains(x.command, "--via dbus") && f.bus == "" {
				t.Skip("there is no dbus-daemon")
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(x.command, docBoot, boot))
			cmd.Env = append(os.Environ(), "MIHF_ADDRESS=unix://"+f.socket, "MIHF_DBUS_ADDRESS="+f.bus, "MIHF_NATS_ADDRESS="+f.nats, "GORACE=atexit_sleep_ms=0")
			cmd.Dir = work(t)
			if err := os.WriteFile(filepath.Join(cmd.Dir, "reader.pass"), []byte(readerSecret), 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := cmd.CombinedOutput() // what an error prints is in the manual, too
			got := strings.Split(strings.TrimRight(strings.ReplaceAll(string(out), boot, docBoot), "\n"), "\n")
			if i := mismatch(x.want, got); i >= 0 {
				t.Errorf("line %d of the manual's output is not found\n%s\nbut the output is\n%s", i+1, x.want[i], strings.Join(got, "\n"))
			}
		})
	}
}

// work is a directory with the recording where the manual has it.
func work(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/mihf/recording/walk", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/mihf/recording/walk/walk.jsonl", walkFile(t), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mismatch returns which line of want is not met; negative: all are.
func mismatch(want, got []string) int {
	skip := false
	for i, w := range want {
		if w == "…" {
			skip = true
			continue
		}
		for skip && len(got) > 0 && !same(w, got[0]) {
			got = got[1:]
		}
		if len(got) == 0 || !same(w, got[0]) {
			return i
		}
		skip, got = false, got[1:]
	}
	if len(got) > 0 && !skip {
		return len(want) - 1
	}
	return -1
}

func same(want, got string) bool {
	if head, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(rough(got), rough(head))
	}
	return rough(want) == rough(got)
}
