// Package netns makes network namespaces with veth pairs, bridges, addresses, routes and
// rules for tests, through netlink; no program is started.
//
// Guarantees: the two ends of a veth pair never have the same ifindex (with equal ones
// the kernel delays and merges carrier changes). A namespace ends with its test. A test
// is skipped only with [ErrUnsupported] and the reason: where the user may not make
// namespaces, or the kernel has none.
//
// Limits: methods fail the test, so they are called by the test's goroutine (in others
// use [NS.NL] itself). Every namespace starts with its loopback up.
package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrUnsupported says that this machine or user cannot make network namespaces.
var ErrUnsupported = errors.New("network namespaces are not supported here")

// NS is one network namespace.
type NS struct {
	Handle vnetns.NsHandle // closed when the test ends
	NL     *netlink.Handle // sockets inside the namespace
	t      testing.TB
}

// nextIndex gives the near end of each pair an ifindex that no far end has: those are
// counted from 1 by the kernel.
var nextIndex atomic.Int32

const firstIndex = 1000

// New makes a namespace that ends with the test, or skips the test where that cannot be.
func New(t testing.TB) *NS {
	t.Helper()
	h, err := create()
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal("netns: open netlink:", err)
	}
	n := &NS{Handle: h, NL: nl, t: t}
	t.Cleanup(func() {
		nl.Close()
		if err := n.Handle.Close(); err != nil {
			t.Error("netns: close:", err)
		}
	})
	n.Up("lo")
	return n
}

// Here is the namespace that the test itself is in, for one that has a machine of its own.
func Here(t testing.TB) *NS {
	t.Helper()
	h, err := vnetns.Get()
	if err != nil {
		t.Fatal("netns: this namespace:", err)
	}
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal("netns: open netlink:", err)
	}
	t.Cleanup(func() {
		nl.Close()
		_ = h.Close() // was only looked through
	})
	return &NS{Handle: h, NL: nl, t: t}
}

// create makes a namespace and leaves the calling goroutine where it was.
func create() (vnetns.NsHandle, error) {
	created := vnetns.None()
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			if isOneOf(err, unix.EPERM, unix.EINVAL, unix.ENOSYS) {
				return fmt.Errorf("%w: unshare as uid %d: %w", ErrUnsupported, os.Geteuid(), err)
			}
			return fmt.Errorf("unshare: %w", err)
		}
		h, err := vnetns.Get()
		created = h
		return err
	})
	return created, err
}

func isOneOf(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// onOwnThread calls f on a thread that ends with it where it cannot be put back into
// the caller's namespace.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := vnetns.Get()
		if err != nil {
			done <- err
			return
		}
		err = f()
		if back := vnetns.Set(home); back == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, home.Close())
	}()
	return <-done
}

// Do calls f inside the namespace, on a thread of its own. Sockets that f opens and
// processes that it starts belong to the namespace; goroutines that it starts do not.
func (n *NS) Do(f func() error) error {
	return onOwnThread(func() error {
		if err := n.Enter(); err != nil {
			return err
		}
		return f()
	})
}

// Enter puts the calling thread into the namespace. The caller has locked its goroutine to
// the thread and lets the thread end with it.
func (n *NS) Enter() error {
	if err := vnetns.Set(n.Handle); err != nil {
		return fmt.Errorf("netns: enter: %w", err)
	}
	return nil
}

// Link returns the link with that name.
func (n *NS) Link(name string) netlink.Link {
	n.t.Helper()
	l, err := n.NL.LinkByName(name)
	n.must(err, "find "+name)
	return l
}

// Index returns the ifindex of the link with that name.
func (n *NS) Index(name string) int {
	n.t.Helper()
	return n.Link(name).Attrs().Index
}

func (n *NS) must(err error, what string) {
	n.t.Helper()
	if err != nil {
		n.t.Fatalf("netns: %s: %v", what, err)
	}
}
