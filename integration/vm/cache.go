package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A cache is where .ci/vm put QEMU, kernel and programs.
type cache struct {
	dir     string // with the locks
	release string // of the kernel
}

// open finds the cache; the error wraps ErrUnsupported where there is none or it is not wanted.
func open() (cache, error) {
	if os.Getenv("MIHF_VM") == "off" {
		return cache{}, fmt.Errorf("%w: MIHF_VM=off", ErrUnsupported)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return cache{}, fmt.Errorf("vm: %w", err)
	}
	c := cache{dir: filepath.Join(user, "mihf", "vm")}
	release, err := os.ReadFile(filepath.Join(c.dir, "made", "release"))
	if errors.Is(err, os.ErrNotExist) {
		return cache{}, fmt.Errorf("%w: no QEMU and kernel in %s; on Debian \"make deps\" fetches them", ErrUnsupported, c.dir)
	}
	if err != nil {
		return cache{}, fmt.Errorf("vm: %w", err)
	}
	c.release = strings.TrimSpace(string(release))
	return c, nil
}

func (c cache) kernel() string    { return filepath.Join(c.dir, "made", "vmlinux") }
func (c cache) root() string      { return filepath.Join(c.dir, "made", "root") }
func (c cache) libraries() string { return filepath.Join(c.root(), "usr/lib/x86_64-linux-gnu") }
func (c cache) modules() string   { return filepath.Join(c.root(), "usr/lib/modules", c.release) }

// lock waits until no other guest runs, and returns what lets the next one run. The kernel
// does that too when the process ends.
func (c cache) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "run.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("vm: the lock: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // only read and locked: nothing to lose
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("vm: lock %s: %w", f.Name(), err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("vm: wait for another guest: %w", context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

const lockPoll = 200 * time.Millisecond
