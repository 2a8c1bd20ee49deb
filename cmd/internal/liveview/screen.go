package liveview

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"mihf.dev/mihf"
)

// Control sequences (ECMA-48, and the private modes that terminals agree on).
const (
	enter = "\x1b[?1049h\x1b[?25l" // other screen, no cursor
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	wipe  = "\x1b[2K" // the line; before its text, because a full line leaves the cursor on it
	rest  = "\x1b[J"  // to the end of the screen
)

// screen is the terminal while the view has it.
type screen struct {
	out     *os.File
	in      *os.File    // nil: no terminal to read keys from
	old     *term.State // of in
	resized chan os.Signal
	stopR   *os.File // wakes readKeys
	stopW   *os.File
	colour  bool
	last    []byte // what is drawn
	width   int    // then
	height  int
}

// openScreen takes the terminal. Keys are read where in is a terminal too.
func openScreen(in, out *os.File) (*screen, error) {
	s := &screen{out: out, resized: make(chan os.Signal, 1), colour: os.Getenv("NO_COLOR") == ""}
	var err error
	if s.stopR, s.stopW, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("live view: %w", err)
	}
	if term.IsTerminal(int(in.Fd())) {
		s.in = in
		if s.old, err = term.MakeRaw(int(s.in.Fd())); err != nil {
			_ = s.stopR.Close()
			_ = s.stopW.Close()
			return nil, fmt.Errorf("take the terminal: %w", err)
		}
	}
	signal.Notify(s.resized, unix.SIGWINCH)
	if _, err := out.WriteString(enter); err != nil {
		s.close()
		return nil, fmt.Errorf("write to the terminal: %w", err)
	}
	return s, nil
}

// close gives the terminal back as it was.
func (s *screen) close() {
	signal.Stop(s.resized)
	_, _ = s.out.WriteString(leave) // nothing can be said on a terminal that is gone
	if s.old != nil {
		_ = term.Restore(int(s.in.Fd()), s.old)
	}
	_ = s.stopR.Close()
	_ = s.stopW.Close()
}

func (s *screen) size() (width, height int, err error) {
	width, height, err = term.GetSize(int(s.out.Fd()))
	if err != nil {
		return 0, 0, fmt.Errorf("size of the terminal: %w", err)
	}
	if width <= 0 || height <= 0 { // a terminal that does not say
		width, height = 80, 24
	}
	return width, height, nil
}

// show draws the state as it is at a moment; wall shows moments to people.
func (s *screen) show(v *state, now mihf.Time, wall func(mihf.Time) string) error {
	width, height, err := s.size()
	if err != nil {
		return err
	}
	if width != s.width || height != s.height {
		s.width, s.height, s.last = width, height, nil // whatever the terminal made of it
	}
	f := &frame{now: now, clock: wall, width: width, height: height, colour: s.colour}
	return s.draw(v.render(f), height)
}

// draw writes a frame, if it differs from the last one, at once.
func (s *screen) draw(lines []string, height int) error {
	var b bytes.Buffer
	b.WriteString(home)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(wipe)
		b.WriteString(l)
	}
	if len(lines) < height {
		b.WriteString("\r\n")
		b.WriteString(rest)
	}
	if bytes.Equal(b.Bytes(), s.last) {
		return nil
	}
	s.last = b.Bytes()
	if _, err := s.out.Write(s.last); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// wake ends readKeys.
func (s *screen) wake() { _, _ = s.stopW.Write([]byte{0}) }

// readKeys returns errQuit at q, Ctrl-C or Ctrl-D, and nil when it is woken.
func (s *screen) readKeys(ctx context.Context) error {
	if s.in == nil {
		<-ctx.Done()
		return nil
	}
	fds := []unix.PollFd{{Fd: int32(s.in.Fd()), Events: unix.POLLIN}, {Fd: int32(s.stopR.Fd()), Events: unix.POLLIN}}
	var key [64]byte
	for {
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return fmt.Errorf("read keys: %w", err)
		}
		if fds[1].Revents != 0 {
			return nil
		}
		if fds[0].Revents == 0 {
			continue
		}
		n, err := s.in.Read(key[:])
		if err != nil || n == 0 {
			return errQuit // the terminal is gone
		}
		if bytes.ContainsAny(key[:n], "qQ\x03\x04") {
			return errQuit
		}
	}
}
