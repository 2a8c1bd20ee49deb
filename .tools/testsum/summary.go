package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of "go test -json"; see "go doc test2json" and "go help buildjson".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

type test struct {
	name   string
	action string // pass, fail or skip; empty while it runs
	output strings.Builder
	parent bool // has subtests
}

type pkg struct {
	tests  []*test // in the order they started
	byName map[string]*test
	output strings.Builder // what belongs to no test
}

// summary counts what the events say and prints it to w.
type summary struct {
	w               io.Writer
	running         map[string]*pkg
	passed, skipped int
	failed          []string
	skips           []string
	testFailed      bool // failed has a test or a package, not gates alone
}

func newSummary(w io.Writer) *summary {
	return &summary{w: w, running: make(map[string]*pkg)}
}

func (s *summary) fail(what string) { s.failed = append(s.failed, what) }

func (s *summary) handle(ev event) {
	if ev.Action == "build-output" {
		fmt.Fprint(s.w, ev.Output)
		return
	}
	if ev.Package == "" {
		return
	}
	p := s.running[ev.Package]
	if p == nil {
		p = &pkg{byName: make(map[string]*test)}
		s.running[ev.Package] = p
	}
	if ev.Test != "" {
		p.handle(ev)
		return
	}
	switch ev.Action {
	case "output":
		p.output.WriteString(ev.Output)
	case "pass", "fail", "skip":
		delete(s.running, ev.Package)
		s.finish(ev, p)
	}
}

func (p *pkg) handle(ev event) {
	t := p.byName[ev.Test]
	if t == nil {
		t = &test{name: ev.Test}
		p.byName[ev.Test] = t
		p.tests = append(p.tests, t)
		for i, c := range ev.Test {
			if up := p.byName[ev.Test[:i]]; c == '/' && up != nil {
				up.parent = true
			}
		}
	}
	switch ev.Action {
	case "output":
		t.output.WriteString(ev.Output)
	case "pass", "fail", "skip":
		t.action = ev.Action
	}
}

// finish counts the tests of a package that has ended and prints its line.
func (s *summary) finish(end event, p *pkg) {
	var passed, skipped int
	var failed []*test
	for _, t := range slices.Backward(p.tests) { // children before their parents
		if t.action == "" && end.Action == "fail" {
			t.action = "fail" // it was running when the process died
		}
		explained := t.parent && slices.ContainsFunc(failed, func(f *test) bool {
			return strings.HasPrefix(f.name, t.name+"/")
		})
		switch {
		case t.action == "fail" && !explained:
			failed = append(failed, t)
		case t.parent:
		case t.action == "pass":
			passed++
		case t.action == "skip":
			skipped++
			s.skips = append(s.skips, fmt.Sprintf("%s %s: %s", end.Package, t.name, reason(t.output.String())))
		}
	}
	slices.Reverse(failed)
	s.passed += passed
	s.skipped += skipped
	for _, t := range failed {
		s.fail(end.Package + " " + t.name)
	}

	if end.Action != "fail" {
		if len(p.tests) > 0 {
			fmt.Fprintf(s.w, "ok    %-45s %6.1fs  %d passed, %d skipped\n", end.Package, end.Elapsed, passed, skipped)
		}
		return
	}
	s.testFailed = true
	if len(failed) == 0 {
		s.fail(end.Package)
	}
	fmt.Fprintf(s.w, "FAIL  %-45s %6.1fs  %d passed, %d failed, %d skipped\n", end.Package, end.Elapsed, passed, max(len(failed), 1), skipped)
	for _, t := range p.tests {
		if t.action == "fail" {
			fmt.Fprint(s.w, withoutMarks(t.output.String()))
		}
	}
	fmt.Fprint(s.w, p.output.String())
}

// close prints the skips, the failures and the counts. It reports whether all is well.
func (s *summary) close() bool {
	for name := range s.running {
		s.fail(name + " (never ended)")
	}
	print := func(title string, list []string) {
		if len(list) > 0 {
			slices.Sort(list)
			fmt.Fprintf(s.w, "\n%s\n  %s\n", title, strings.Join(list, "\n  "))
		}
	}
	print("skipped:", s.skips)
	print("failed:", s.failed)
	ran := s.passed > 0 || s.testFailed
	if !ran {
		fmt.Fprintln(s.w, "no test ran")
	}
	fmt.Fprintf(s.w, "\n%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), s.skipped)
	return ran && len(s.failed) == 0
}

// reason is what a skipped test said.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(withoutMarks(output)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "--- SKIP") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, "; ")
}

// withoutMarks drops the lines by which the test binary tells who speaks.
func withoutMarks(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
