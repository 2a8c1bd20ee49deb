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
	"sync"

	"golang.org/x/sys/unix"
)

// ErrRunning says that another server answers on the socket.
var ErrRunning = errors.New("already running")

// maxSocketPath is the longest path of a unix socket, without its final zero.
const maxSocketPath = 107

// ListenUnix listens on a unix socket of the mode and, where it exists and may be given,
// the group. Nobody can connect before both are set. A socket that a dead server left is
// replaced; one that answers gives an error that wraps [ErrRunning]; a file that is
// not a socket is never removed. At the end the socket is removed, but none that took its
// place. The directory is made if only it is missing; a lock file
// stays beside the socket.
func ListenUnix(path string, mode fs.FileMode, group string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: the path has %d octets, at most %d", path, len(path), maxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	unlock, err := lock(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	return bind(path, mode, group)
}

// lock keeps two starting servers from taking each other's socket for a dead one's. The
// file stays: removing it would let a third server in. Only the servers' own user can
// open it, so nobody else can hold them up.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("socket lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close() // the lock's error says more
		return nil, fmt.Errorf("socket lock %s: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil // ends the lock; nothing was written
}

// removeStale removes a socket that nobody answers on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("socket %s: a file that is not a socket is in the way and was not removed; move it, or set another path", path)
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	switch {
	case err == nil:
		defer func() { _ = conn.Close() }() // was only a test
		who := ""
		if cred, err := peerCred(conn); err == nil && cred.Pid > 0 {
			who = " as process " + strconv.Itoa(int(cred.Pid))
		}
		return fmt.Errorf("socket %s: %w%s", path, ErrRunning, who)
	case errors.Is(err, unix.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove a dead server's socket: %w", err)
		}
		return nil
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("socket %s: %w, and busy", path, ErrRunning)
	default:
		return fmt.Errorf("socket %s: is it in use? %w", path, err)
	}
}

// bind gives the socket its owner and mode before it listens.
func bind(path string, mode fs.FileMode, group string) (net.Listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer func() { _ = f.Close() }() // the listener has its own descriptor
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, fmt.Errorf("bind socket %s: %w", path, err)
	}
	ln, err := listen(f, path, mode, group)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return ln, nil
}

func listen(f *os.File, path string, mode fs.FileMode, group string) (net.Listener, error) {
	if err := giveGroup(path, group); err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, fmt.Errorf("socket mode: %w", err)
	}
	if err := unix.Listen(int(f.Fd()), unix.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &socket{Listener: ln, path: path, own: info}, nil
}

// socket is a listener that removes its file when it is closed, but no other that took
// its place: that belongs to another server.
type socket struct {
	net.Listener
	path string
	own  fs.FileInfo
	once sync.Once
}

// Close removes the socket's file and closes the listener. The file goes first: while the
// listener is open nobody takes it for a dead server's.
func (s *socket) Close() error {
	var gone error
	s.once.Do(func() {
		if now, err := os.Lstat(s.path); err != nil || !os.SameFile(s.own, now) {
			return
		}
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			gone = fmt.Errorf("remove the socket: %w", err)
		}
	})
	return errors.Join(gone, s.Listener.Close())
}

// giveGroup does nothing where the group does not exist or may not be given by us.
func giveGroup(path, group string) error {
	if group == "" {
		return nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return nil //nolint:nilerr // no such group here: the mode alone decides
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return fmt.Errorf("socket group %s: %w", group, err)
	}
	if err := os.Chown(path, -1, gid); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("socket group %s: %w", group, err)
	}
	return nil
}
