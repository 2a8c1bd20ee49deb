package grpcfront

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// connections are the open ones of a server, also while they shake hands.
type connections struct {
	max     int
	perUser int
	log     *slog.Logger
	now     func() mihf.Time
	refused atomic.Uint64

	mu        sync.Mutex // guards the following
	open      map[*conn]struct{}
	shares    access.Shares
	strangers int // over TCP, that have not shown a certificate yet
	lingering int // beyond their user's share, and open for a moment
	said      access.Audit
	ended     bool
}

// maxStrangers bounds the connections over TCP that nobody knows yet whose they are, so that
// they leave room to the others.
const maxStrangers = 256

// Connections beyond a user's share are told so: they stay for a moment, and only a few.
const (
	linger       = 2 * time.Second
	maxLingering = 16
)

func (c *connections) set(o *Options) {
	c.max, c.perUser, c.log, c.now = o.MaxConnections, o.MaxConnectionsPerUser, o.Logger, o.Broker.Now
	c.open = map[*conn]struct{}{}
	c.shares = access.Shares{Each: int64(c.perUser), Total: math.MaxInt64}
}

// count returns how many are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// add takes a connection; nil where it was closed because there are too many.
func (c *connections) add(raw net.Conn) net.Conn {
	_, local := raw.(*net.UnixConn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.open) >= c.max || (!local && c.strangers >= maxStrangers) {
		c.refused.Add(1)
		_ = raw.Close() // refused: nobody is told its error
		return nil
	}
	x := &conn{Conn: raw, of: c, stranger: !local}
	if x.stranger {
		c.strangers++
	}
	c.open[x] = struct{}{}
	return x
}

// errGone ends the handshake of a connection that is closed meanwhile.
var errGone = errors.New("the connection is closed")

// share counts a connection as its caller's. Where that has its share already, refused says
// so, for the calls on the connection, which ends soon; err, where it ends at once.
func (c *connections) share(x *conn, who mihf.Caller) (refused, err error) {
	id := who.Identity()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[x]; !open {
		return nil, errGone
	}
	if x.stranger {
		x.stranger = false
		c.strangers--
	}
	if c.shares.Take(id, 1) == access.Enough {
		x.owner, x.shared = id, true
		return nil, nil
	}
	c.refused.Add(1)
	if line, suppressed := c.said.Refuse(c.now(), id); line {
		c.log.Warn("connection refused", "identity", id.String(), "pid", who.PID, "limit", c.perUser, "key", "grpc.max_connections_per_user", "suppressed", suppressed)
	}
	refused = fmt.Errorf("%w: %v has %d connections; see [grpc] max_connections_per_user", mihf.ErrLimit, id, c.perUser)
	if c.lingering >= maxLingering {
		return nil, refused
	}
	c.lingering++
	x.lingering = time.AfterFunc(linger, func() { _ = x.Close() })
	return refused, nil
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

// conn is an open connection. What it holds is guarded by the lock of all.
type conn struct {
	net.Conn
	of        *connections
	stranger  bool
	shared    bool // counts for owner
	owner     mihf.Identity
	lingering *time.Timer
}

// Close closes the connection and no longer counts it.
func (c *conn) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

// drop closes the connection under the server, which then finds that it is gone.
func (c *conn) drop() { _ = c.Conn.Close() }

func (c *connections) forget(x *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[x]; !open {
		return
	}
	delete(c.open, x)
	if x.stranger {
		c.strangers--
	}
	if x.shared {
		c.shares.Give(x.owner, 1)
	}
	if x.lingering != nil {
		x.lingering.Stop()
		c.lingering--
	}
}
