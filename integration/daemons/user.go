package daemons

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// A User is who a test acts as.
type User struct {
	Name     string // that of the user's own group as well; "": made from UID
	UID, GID uint32
	Groups   []uint32 // supplementary
}

func (u User) name() string {
	if u.Name == "" {
		return fmt.Sprintf("test-%d", u.UID)
	}
	return u.Name
}

// userFiles are the texts of /etc/passwd and /etc/group with these users in front of the
// host's own.
func userFiles(users []User) (passwd, group string, err error) {
	hostPasswd, err1 := os.ReadFile("/etc/passwd")
	hostGroup, err2 := os.ReadFile("/etc/group")
	if err := errors.Join(err1, err2); err != nil {
		return "", "", fmt.Errorf("daemons: %w", err)
	}
	var p, g strings.Builder
	for _, u := range users {
		fmt.Fprintf(&p, "%s:x:%d:%d::/:/usr/sbin/nologin\n", u.name(), u.UID, u.GID)
		var members []string
		for _, v := range users {
			if slices.Contains(v.Groups, u.GID) {
				members = append(members, v.name())
			}
		}
		fmt.Fprintf(&g, "%s:x:%d:%s\n", u.name(), u.GID, strings.Join(members, ","))
	}
	return p.String() + string(hostPasswd), g.String() + string(hostGroup), nil
}

// errNotRoot is why a test that acts as several users is skipped.
var errNotRoot = fmt.Errorf("%w: acting as other users needs root", ErrUnsupported)

// As calls f as another user, on a thread of its own that ends with it. Sockets that f
// connects carry that user's credentials (SO_PEERCRED, SO_PEERGROUPS) for as long as they
// live; goroutines that f starts run as the test's own user. It skips the test, and so
// belongs to the test's goroutine, where the test does not run as root.
func As(t testing.TB, u User, f func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip(errNotRoot)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := become(u); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// become changes the calling thread alone; package syscall's functions would change all.
func become(u User) error {
	var groups *uint32
	if len(u.Groups) > 0 {
		groups = &u.Groups[0]
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(u.Groups)), uintptr(unsafe.Pointer(groups)), 0); e != 0 {
		return fmt.Errorf("daemons: setgroups %v: %w", u.Groups, e)
	}
	gid, uid := uintptr(u.GID), uintptr(u.UID)
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return fmt.Errorf("daemons: setresgid %d: %w", u.GID, e)
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return fmt.Errorf("daemons: setresuid %d: %w", u.UID, e)
	}
	return nil
}
