package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"mihf.dev/clients"
)

const crowdEvery = 100 * time.Millisecond // 10 events/s

// Memory is how much a server grows by many subscribers of a front, while 10 events/s are
// published and a flow is frozen and thawed.
type Memory struct {
	OwnConnection    float64 `json:"kib_each_own_connection"`
	SharedConnection float64 `json:"kib_each_shared_connection"`
	IdleMiB          float64 `json:"idle_mib"`   // the server before
	HintsEach        int     `json:"hints_each"` // that each subscriber got while all were there
	MissedHints      int     `json:"missed_hints"`
	Subscribers      int     `json:"subscribers"`
}

func memory(ctx context.Context, o *Options, front string, subscribers int) (*Memory, error) {
	m := &Memory{HintsEach: -1, Subscribers: subscribers}
	for _, own := range []bool{true, false} {
		grown, err := m.measure(ctx, o, front, own)
		if err != nil {
			return nil, err
		}
		if own {
			m.OwnConnection = grown
		} else {
			m.SharedConnection = grown
		}
	}
	return m, nil
}

// child is the process that is measured.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startChild(ctx context.Context, argv ...string) (*child, error) {
	s := &child{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	return s, s.cmd.Start()
}

// line returns what the server says next.
func (s *child) line() (string, error) {
	if !s.out.Scan() {
		return "", errors.Join(errors.New("the server ended"), s.out.Err())
	}
	return s.out.Text(), nil
}

// ask returns the server's resident memory in KiB.
func (s *child) ask() (float64, error) {
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	said, err := s.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(said, 64)
}

func (s *child) end() error {
	return errors.Join(s.in.Close(), s.cmd.Wait())
}

// measure returns by how many KiB a fresh server grows for each subscriber.
func (m *Memory) measure(ctx context.Context, o *Options, front string, own bool) (grown float64, err error) {
	dir, err := os.MkdirTemp("", "mihf-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := startChild(ctx, append(o.Server[:len(o.Server):len(o.Server)], front, dir)...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	where, err := s.line()
	if err != nil {
		return 0, err
	}
	before, err := s.ask()
	if err != nil {
		return 0, err
	}
	m.IdleMiB = round(before/1024, 1)
	n := m.Subscribers
	if most := hosts[front].shared; most > 0 && !own {
		n = min(n, most)
	}
	c := &audience{listeners: make([]listener, n)}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.join(ctx, own, func() (clients.Client, error) { return hosts[front].dial(where) }); err != nil {
		return 0, err
	}
	time.Sleep(o.Settle)
	after, err := s.ask()
	if err != nil {
		return 0, err
	}
	m.count(c)
	return round((after-before)/float64(n), 1), nil
}

// count compares what the subscribers got: all joined before a moment and left after
// another, so in between they must have the same hints.
func (m *Memory) count(c *audience) {
	from, to := uint64(0), ^uint64(0)
	for i := range c.listeners {
		c.listeners[i].mu.Lock()
		from, to = max(from, c.listeners[i].joined), min(to, c.listeners[i].last)
		m.MissedHints += c.listeners[i].broken
		c.listeners[i].mu.Unlock()
	}
	most := 0
	counts := make([]int, len(c.listeners))
	for i := range c.listeners {
		counts[i] = c.listeners[i].within(from, to)
		most = max(most, counts[i])
	}
	for _, n := range counts {
		m.MissedHints += most - n
	}
	if m.HintsEach < 0 || most < m.HintsEach {
		m.HintsEach = most
	}
}
