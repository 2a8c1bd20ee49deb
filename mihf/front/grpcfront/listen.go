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
	"sync/atomic"
	"time"

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

// connections are the open ones of a server, also while they shake hands.
type connections struct {
	max     int
	refused atomic.Uint64

	mu    sync.Mutex // guards the following
	open  map[*conn]struct{}
	ended bool
}

// count returns how many are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// add takes a connection; nil where it was closed because there are too many.
func (c *connections) add(raw net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.open) >= c.max {
		c.refused.Add(1)
		_ = raw.Close() // refused: nobody is told its error
		return nil
	}
	x := &conn{Conn: raw, of: c}
	if c.open == nil {
		c.open = map[*conn]struct{}{}
	}
	c.open[x] = struct{}{}
	return x
}

// end closes what is open. gRPC does so for connections that have shaken hands only, and
// would wait for the others.
func (c *connections) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for x := range c.open {
		_ = x.Conn.Close() // ended on purpose
	}
}

// unanswered is how long what was sent over TCP may go unacknowledged before the kernel ends
// the connection: as long as keepalive waits for an answer.
const unanswered = 10 * time.Second

// limitSilence has the kernel give up a TCP connection whose peer vanished (TCP_USER_TIMEOUT).
// Else it sends again for a quarter of an hour, also when gRPC has long closed it; and gRPC
// itself sets the option only where it knows the connection's type.
func limitSilence(c net.Conn) error {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
	})
	return errors.Join(err, set)
}

// boundedListener closes what comes beyond the bound.
type boundedListener struct {
	net.Listener
	to *connections
}

// Accept waits for a connection below the bound.
func (l boundedListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := limitSilence(raw); err != nil {
			_ = raw.Close() // it has ended already
			continue
		}
		if c := l.to.add(raw); c != nil {
			return c, nil
		}
	}
}

type conn struct {
	net.Conn
	of *connections
}

// Close closes the connection and no longer counts it.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
