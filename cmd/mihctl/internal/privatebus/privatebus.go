// Package privatebus runs a message bus that nobody else knows of, for what mihctl shows and
// measures in a process of its own.
//
// # Guarantees
//
//   - The bus takes connections when Start returns. Only our own user may connect.
//   - It ends with Close, with the context, and with the thread that started it: a mihctl
//     that is killed leaves none behind.
//
// # Limits
//
// It needs the program dbus-daemon; [ErrAbsent] says where that is missing. Linux only.
package privatebus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrAbsent says that there is no program to run.
var ErrAbsent = errors.New("there is no dbus-daemon here; a package of the same name has it (Debian: apt-get install dbus-daemon)")

// startTimeout bounds the start.
const startTimeout = 5 * time.Second

// Bus is a running bus. Close may be called twice.
type Bus struct {
	Address string
	end     func() error
}

const configuration = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path=%s</listen>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
`

// Start runs a bus whose socket and configuration are in dir. The path of dir must need no
// escape in XML or in a bus's address, and be short: a socket's has at most 107 octets.
func Start(ctx context.Context, dir string) (*Bus, error) {
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		return nil, ErrAbsent
	}
	file := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, filepath.Join(dir, "bus")), 0o600); err != nil {
		return nil, fmt.Errorf("private bus: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program, "--config-file="+file, "--nofork", "--nopidfile", "--nosyslog", "--print-address=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // an interrupt from the terminal is for us
	var said bytes.Buffer
	cmd.Stderr = &said
	address := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- attend(cmd, address) }()
	b := &Bus{end: sync.OnceValue(func() error {
		cancel()
		return <-ended
	})}
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	select {
	case b.Address = <-address:
		if b.Address != "" {
			return b, nil
		}
		err = errors.New("it ended at once")
	case <-limit.C:
		err = fmt.Errorf("it did not start within %v", startTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if e := b.Close(); e != nil {
		err = e
	}
	return nil, fmt.Errorf("private bus: %s: %w: %s", program, err, bytes.TrimSpace(said.Bytes()))
}

// attend starts the program, says its address, "" where it gave none, and waits for its end.
// All that is done by one thread, with which the program would end. That it was killed is no
// error: we do that.
func attend(cmd *exec.Cmd, address chan<- string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // "" where it ended
	address <- strings.TrimSpace(line)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return nil
	}
	return err
}

// Close ends the bus and waits for it.
func (b *Bus) Close() error { return b.end() }
