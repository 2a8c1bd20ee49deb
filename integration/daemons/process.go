package daemons

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a daemon may take to be ready; only a failure takes so long.
const patience = 30 * time.Second

// A Daemon is a program that a test starts, kills and starts again.
type Daemon struct {
	t       testing.TB
	enter   func() error     // prepares the thread that starts a run; nil: nothing to do
	command func() *exec.Cmd // of the next run
	ready   func(*process)   // waits until the run takes connections
	run     *process         // the newest
}

// start begins a run and returns when it is ready. The run ends with the test.
func (d *Daemon) start() {
	d.t.Helper()
	p, err := begin(d.command(), d.enter)
	if errors.Is(err, ErrUnsupported) {
		d.t.Skip(err)
	}
	if err != nil {
		d.t.Fatal("daemons:", err)
	}
	d.run = p
	d.t.Cleanup(func() {
		p.kill()
		if d.t.Failed() {
			d.t.Logf("%s %d printed:\n%s", p.cmd.Path, p.cmd.Process.Pid, p.out.text())
		}
	})
	d.ready(p)
}

// Kill ends the daemon as a crash does (SIGKILL), and returns when it is gone. Its address
// stays behind.
func (d *Daemon) Kill() { d.run.kill() }

// Terminate asks the daemon to end (SIGTERM), and returns when it is gone.
func (d *Daemon) Terminate() {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	select {
	case <-d.run.ended:
	case <-time.After(patience):
		d.t.Fatalf("daemons: %s did not end after SIGTERM", d.run.cmd.Path)
	}
}

// Stop halts the daemon where it is (SIGSTOP): its sockets stay open and nobody answers.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.signal(syscall.SIGSTOP)
}

// Cont lets a halted daemon go on (SIGCONT).
func (d *Daemon) Cont() {
	d.t.Helper()
	d.signal(syscall.SIGCONT)
}

// Reload asks the daemon to read its configuration again (SIGHUP).
func (d *Daemon) Reload() {
	d.t.Helper()
	d.signal(syscall.SIGHUP)
}

// Restart starts the daemon again on the same address, after killing what may still run.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Kill()
	d.start()
}

// Pid is the process id of the newest run.
func (d *Daemon) Pid() int { return d.run.cmd.Process.Pid }

// Log is what the newest run printed until now.
func (d *Daemon) Log() string { return d.run.out.text() }

func (d *Daemon) signal(s os.Signal) {
	d.t.Helper()
	if err := d.run.cmd.Process.Signal(s); err != nil {
		d.t.Fatalf("daemons: %v to %s: %v", s, d.run.cmd.Path, err)
	}
}

// A process is one run of a program. One goroutine, with a thread of its own, starts it and
// waits for it.
type process struct {
	cmd   *exec.Cmd
	out   *output
	ended chan struct{} // closed when it is gone and its output complete
}

// begin starts a program from a thread that enter has prepared (put into namespaces) and
// that ends with the program. Should the test program die, the kernel kills what it
// started; it does so when the thread that started it ends, so that thread must stay.
func begin(cmd *exec.Cmd, enter func() error) (*process, error) {
	p := &process{cmd: cmd, out: newOutput(), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(p.ended)
		if enter != nil {
			if err := enter(); err != nil {
				started <- err
				return
			}
		}
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is the test's doing
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// ownMounts puts the calling thread into a mount namespace, where what is mounted is seen by
// nobody outside.
func ownMounts() error {
	err := unix.Unshare(unix.CLONE_NEWNS)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w: a mount namespace: %w", ErrUnsupported, err)
	}
	if err != nil {
		return fmt.Errorf("unshare the mounts: %w", err)
	}
	err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: mounts of our own, in a chroot whose root is no mount point: %w", ErrUnsupported, err)
	}
	if err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	return nil
}

// kill ends the process, if it still runs, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// await returns what re finds in the output, once that is there.
func (p *process) await(t testing.TB, re *regexp.Regexp) []string {
	t.Helper()
	timeout := time.After(patience)
	for {
		text, more := p.out.wait()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-more:
			continue
		case <-p.ended:
			t.Fatalf("daemons: %s ended before it was ready", p.cmd.Path)
		case <-timeout:
			t.Fatalf("daemons: %s printed no %v", p.cmd.Path, re)
		}
	}
}

// output collects what a process prints: the newest maxOutput bytes of it.
type output struct {
	mu   sync.Mutex // guards the following
	buf  bytes.Buffer
	more chan struct{} // closed at the next write
}

const maxOutput = 1 << 20

func newOutput() *output { return &output{more: make(chan struct{})} }

// Write implements io.Writer and takes everything.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, _ := o.buf.Write(b) // a bytes.Buffer returns no error
	o.buf.Next(max(0, o.buf.Len()-maxOutput))
	close(o.more)
	o.more = make(chan struct{})
	return n, nil
}

// wait returns the output until now and a channel that is closed when there is more.
func (o *output) wait() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String(), o.more
}

func (o *output) text() string {
	s, _ := o.wait()
	return s
}
