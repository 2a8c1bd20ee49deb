package patient

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a listener that fails as it is told.
type scripted struct {
	err   error
	fails int // then it accepts
	tries int
}

func (s *scripted) Accept() (net.Conn, error) {
	if s.tries++; s.tries <= s.fails || s.fails < 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", s.err)}
	}
	c, _ := net.Pipe()
	return c, nil
}

func (s *scripted) Close() error   { return nil }
func (s *scripted) Addr() net.Addr { return &net.UnixAddr{Name: "/s"} }

// "Such an error ends neither Accept nor, with it, the server: it is counted, and Accept
// tries again after a pause."
func TestOutlives(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM, syscall.ENETDOWN} {
		synctest.Test(t, func(t *testing.T) {
			var failures atomic.Uint64
			begun := time.Now()
			c, err := New(&scripted{err: errno, fails: 20}, slog.New(slog.DiscardHandler), &failures).Accept()
			if err != nil || failures.Load() != 20 {
				t.Fatalf("%v: %v after %d failures", errno, err, failures.Load())
			}
			_ = c.Close()
			if d := time.Since(begun); d < time.Second || d > 20*maxPause {
				t.Errorf("%v: 20 pauses took %v", errno, d)
			}
		})
	}
}

// "It is logged when it comes first, and then at most once a minute, with the count."
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var failures atomic.Uint64
		s := &scripted{err: syscall.EMFILE, fails: 2000} // 500 s
		c, err := New(s, slog.New(slog.NewTextHandler(&out, nil)), &failures).Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if n := strings.Count(out.String(), "\n"); n != 9 {
			t.Errorf("%d lines in 500 s:\n%s", n, out.String())
		}
		if !strings.Contains(out.String(), "too many open files") || !strings.Contains(out.String(), "failures=240") {
			t.Errorf("the reason or the count is missing:\n%s", out.String())
		}
	})
}

// "Close ends a pause at once."
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures atomic.Uint64
		l := New(&scripted{err: syscall.EMFILE, fails: -1}, slog.New(slog.DiscardHandler), &failures)
		ended := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		time.Sleep(time.Second)
		synctest.Wait() // in a pause
		begun := time.Now()
		_, _ = l.Close(), l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// "An error of the listener itself (closed, no socket) ends Accept."
func TestGivesUp(t *testing.T) {
	for _, why := range []error{syscall.EBADF, syscall.EINVAL, net.ErrClosed, errors.New("other")} {
		var failures atomic.Uint64
		if _, err := New(&scripted{err: why, fails: -1}, slog.New(slog.DiscardHandler), &failures).Accept(); !errors.Is(err, why) || failures.Load() != 0 {
			t.Errorf("%v, want %v", err, why)
		}
	}
}
