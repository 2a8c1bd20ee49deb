package grpcfront

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func socketDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // other users connect too
		t.Fatal(err)
	}
	return dir
}

func dialUnix(t *testing.T, path string) (net.Conn, error) {
	t.Helper()
	var d net.Dialer
	return d.DialContext(t.Context(), "unix", path)
}

func listenUnix(t *testing.T, path string) net.Listener {
	t.Helper()
	ln, err := ListenUnix(path, 0o660, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

func TestListenUnixModeAndGroup(t *testing.T) {
	me, err := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(socketDir(t), "new", "s") // the directory is made
	ln, err := ListenUnix(path, 0o640, me.Name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != fs.ModeSocket|0o640 {
		t.Errorf("mode %v", got)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Gid) != os.Getgid() {
		t.Errorf("group %v", info.Sys())
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want the socket removed", err)
	}
	ln, err = ListenUnix(path, 0o660, "no such group")
	if err != nil {
		t.Fatalf("a group that does not exist: %v", err)
	}
	_ = ln.Close()
}

// A socket left by a killed server is replaced.
func TestListenUnixReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	_ = old.Close()
	listenUnix(t, path)
	if c, err := dialUnix(t, path); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
}

// A live server's socket is never taken.
func TestListenUnixKeepsLiveSocket(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	listenUnix(t, path)
	_, err := ListenUnix(path, 0o660, "")
	if want := fmt.Sprintf("already running as process %d", os.Getpid()); !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if c, err := dialUnix(t, path); err != nil {
		t.Errorf("the first server's socket: %v", err)
	} else {
		_ = c.Close()
	}
}

// A file that is not a socket is never removed.
// A socket that was removed and then made anew belongs to the second server.
func TestListenUnixKeepsSuccessor(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	first := listenUnix(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := listenUnix(t, path)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := dialUnix(t, path)
	if err != nil {
		t.Fatalf("the end of the first server took the second one's socket: %v", err)
	}
	_ = conn.Close()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want the socket removed", err)
	}
}

func TestListenUnixKeepsOtherFiles(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path, 0o660, ""); err == nil || !strings.Contains(err.Error(), "not removed") {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("the file: %q, %v", b, err)
	}
}

func TestListenUnixErrors(t *testing.T) {
	dir := socketDir(t)
	for _, path := range []string{
		filepath.Join(dir, strings.Repeat("x", maxSocketPath)),
		filepath.Join(dir, "no", "such", "s"),
	} {
		if ln, err := ListenUnix(path, 0o660, ""); err == nil {
			_ = ln.Close()
			t.Errorf("%s: want an error", path)
		}
	}
}

// Servers that start together: one gets the socket, the others hear of it.
func TestListenUnixStartedTogether(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	const many = 8
	type result struct {
		ln  net.Listener
		err error
	}
	results := make(chan result, many)
	for range many {
		go func() {
			ln, err := ListenUnix(path, 0o660, "")
			results <- result{ln, err}
		}()
	}
	won := 0
	for range many {
		switch r := <-results; {
		case r.err == nil:
			won++
			defer func() { _ = r.ln.Close() }()
		case !errors.Is(r.err, ErrRunning):
			t.Error(r.err)
		}
	}
	if won != 1 {
		t.Errorf("%d servers got the socket", won)
	}
}
