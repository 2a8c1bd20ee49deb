// Command testsum runs "go test -json" and says what happened: a line for each
// package as it ends, the output of what failed, every skipped test with its
// reason, and as the last line
//
//	N passed, N failed, N skipped
//
// Counted are tests without subtests, subtests, and fuzz seeds. It exits with 1
// if anything failed or if no test ran.
//
//	testsum [-failed GATE]... -- go test -json ./...
//
// Each -failed names an earlier check that failed and counts as one failure.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	s := newSummary(os.Stdout)
	flag.Func("failed", "an earlier `gate` that failed", func(name string) error {
		s.fail("gate " + name)
		return nil
	})
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(s, flag.Args()); err != nil && !s.testFailed {
		// The tests that were counted don't explain it.
		s.fail(fmt.Sprintf("%q: %v", flag.Args(), err))
	}
	if !s.close() {
		os.Exit(1)
	}
}

// run feeds the events that the command prints to s.
func run(s *summary, args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := read(s, out); err != nil {
		return err
	}
	return cmd.Wait()
}

func read(s *summary, r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var ev event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &ev) != nil:
			fmt.Fprintf(s.w, "%s", line) // not an event: a word of the go command itself
		default:
			s.handle(ev)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
