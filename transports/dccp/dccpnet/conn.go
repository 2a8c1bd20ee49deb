package dccpnet

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
)

// Conn is a connection. It is a net.Conn: Read and Write move one datagram each.
type Conn struct {
	opts Options
	key  key // of the packets that it gets

	readable chan struct{} // full when there may be something to read
	writable chan struct{} // full when there may be room to write
	opened   chan struct{} // closed when the handshake is done
	done     chan struct{} // closed when the protocol is
	rd, wd   deadline

	mu       sync.Mutex // guards the following
	end      *Endpoint
	remote   netip.AddrPort
	engine   *dccp.Conn
	timer    *time.Timer
	due      mihf.Time // what the timer is set to
	in, out  queue
	isOpen   bool
	isDone   bool
	waiting  bool  // is to be handed to Accept
	closing  bool  // Close or Abort was called
	cut      error // why the endpoint ended, if it did before the connection
	ended    error
	unsent   uint64
	overflow uint64

	known *mihf.LCI // of the link, for the next thaw

	own       *ecdh.PrivateKey // until the key is agreed
	hello     []byte           // ours, of a client
	move      rebinding
	moves     RebindStats
	active    mihf.Time // when something was last sent
	lastReset mihf.Time // when a Reset was last passed over
}

var _ net.Conn = (*Conn)(nil)

func newConn(e *Endpoint, engine *dccp.Conn, k key) *Conn {
	c := &Conn{
		opts: e.opts, key: k, end: e, remote: k.remote, engine: engine,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		opened: make(chan struct{}), done: make(chan struct{}),
	}
	c.in.most, c.out.most = e.opts.ReceiveQueue, e.opts.SendQueue
	c.own = e.private
	return c
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// receive takes a packet; turn is to be called behind the last of a batch.
func (c *Conn) receive(now mihf.Time, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten(now, b) {
		return
	}
	data, ok := c.engine.Receive(now, b)
	if !ok {
		return
	}
	if c.closing {
		c.engine.DropLast(dccp.DropNotListening)
		return
	}
	if !c.in.push(data) {
		c.overflow++
		c.engine.DropLast(dccp.DropReceiveBuffer)
	}
	c.engine.SlowReceiver(c.in.n > c.in.most*3/4)
	signal(c.readable)
}

// turn does what is due, sends what may be sent, and sets the timer.
func (c *Conn) turn(now mihf.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turnLocked(now)
}

func (c *Conn) turnLocked(now mihf.Time) {
	if c.isDone {
		return
	}
	if c.engine.Next().Due(now) {
		c.engine.Advance(now)
	}
	c.turnMove(now)
	c.flush(now)
	if c.closing && c.out.n == 0 {
		c.engine.Close(now)
		c.flush(now)
	}
	if s := c.engine.State(); !c.isOpen && s >= dccp.StatePartOpen && s <= dccp.StateClosing {
		c.isOpen = true
		close(c.opened)
		c.agree(c.waiting)
		c.end.settled(c)
	}
	if c.engine.Done() {
		c.finish(now)
		return
	}
	c.arm(now)
}

// flush sends all that may be sent now, in batches.
func (c *Conn) flush(now mihf.Time) {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	freed := false
	for {
		b.reset()
		for b.room() {
			var next []byte
			if c.out.n > 0 {
				next = c.out.front()
			}
			out, took := c.engine.Poll(now, b.b, next, c.out.n > 0)
			if took {
				c.out.pop()
				freed = true
			}
			if len(out) == len(b.b) {
				break
			}
			b.add(out)
		}
		if len(b.lengths) == 0 {
			break
		}
		c.mayBeForgotten(now)
		c.write(b)
	}
	if freed {
		signal(c.writable)
	}
}

// write sends a batch. What cannot be sent is lost.
func (c *Conn) write(b *batch) {
	sent, err := c.end.carrier.Write(c.remote, b.b, b.lengths)
	if err == nil {
		return
	}
	c.unsent += uint64(len(b.lengths) - sent)
	if errors.Is(err, errTooBig) {
		c.shrink()
	}
	c.opts.Logger.Debug("packets not sent", "remote", c.remote, "packets", len(b.lengths)-sent, "error", err)
}

// shrink goes one step down where packets are too long for the path.
func (c *Conn) shrink() {
	longest := c.engine.MaxData()
	for _, path := range []int{1500, 1400, 1280, 576} {
		if mtu := path - c.end.carrier.Overhead(c.remote); mtu < longest+48 {
			_ = c.engine.SetMTU(max(mtu, minMTU))
			return
		}
	}
}

// minMTU is the least that the engine takes.
const minMTU = 548

// arm sets the timer to what the engine waits for.
func (c *Conn) arm(now mihf.Time) {
	next := mihf.Sooner(c.engine.Next(), c.move.next)
	if next == c.due && c.timer != nil {
		return
	}
	c.due = next
	if next.IsZero() {
		if c.timer != nil {
			c.timer.Stop()
		}
		return
	}
	wait := max(next.Sub(now), minWait)
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.wake)
	} else {
		c.timer.Reset(wait)
	}
}

// minWait is the least that a timer is set to: what is due meanwhile is done at once.
const minWait = 200 * time.Microsecond

func (c *Conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = 0
	c.turnLocked(c.end.now())
}

// finish ends the connection after the protocol has.
func (c *Conn) finish(now mihf.Time) {
	c.isDone = true
	if c.ended = c.engine.Err(); c.cut != nil {
		c.ended = c.cut
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.out.drain()
	c.move.endMove(net.ErrClosed)
	c.end.forget(c, now)
	close(c.done)
}

// Read reads one datagram into b and returns how much of it there was room for.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		if c.rd.passed() {
			signal(c.readable) // for another that waits by a deadline from before
			return 0, opError("read", c, os.ErrDeadlineExceeded)
		}
		n, ok, err := c.tryRead(b)
		switch {
		case ok || errors.Is(err, io.EOF):
			return n, err
		case err != nil:
			return 0, opError("read", c, err)
		}
		select {
		case <-c.readable:
		case <-c.done:
		case <-c.rd.wait():
		}
	}
}

// tryRead takes a datagram that waits, or tells why there will be none.
func (c *Conn) tryRead(b []byte) (n int, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return 0, false, net.ErrClosed
	case c.in.n > 0:
		n = copy(b, c.in.front())
		c.in.pop()
		if c.in.n > 0 {
			signal(c.readable) // for another that reads
		}
		return n, true, nil
	case !c.isDone:
		return 0, false, nil
	case c.ended != nil:
		return 0, false, c.ended
	default:
		return 0, false, io.EOF
	}
}

// Write sends b as one datagram. It waits while the send queue is full, which is how
// congestion control holds the application back.
func (c *Conn) Write(b []byte) (int, error) {
	for {
		if c.wd.passed() {
			signal(c.writable) // as in Read
			return 0, opError("write", c, os.ErrDeadlineExceeded)
		}
		ok, err := c.tryWrite(b)
		if ok {
			return len(b), nil
		}
		if err != nil {
			return 0, opError("write", c, err)
		}
		select {
		case <-c.writable:
		case <-c.done:
		case <-c.wd.wait():
		}
	}
}

func (c *Conn) tryWrite(b []byte) (ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return false, net.ErrClosed
	case c.isDone && c.ended != nil:
		return false, c.ended
	case c.isDone:
		return false, net.ErrClosed
	case len(b) > c.engine.MaxData():
		return false, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, len(b), c.engine.MaxData())
	case !c.out.push(b):
		return false, nil
	}
	c.turnLocked(c.end.now())
	if !c.out.full() {
		signal(c.writable) // for another that writes
	}
	return true, nil
}

// Close ends the connection: see the package comment.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Linger)
	defer cancel()
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		c.in.drain()
		signal(c.readable)
		signal(c.writable)
		c.turnLocked(c.end.now())
	}
	c.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.Abort()
	}
	c.endpoint().released()
	return nil
}

// Abort ends the connection at once, with a Reset to the peer.
func (c *Conn) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.in.drain()
	c.abort()
}

// cutOff aborts a connection whose endpoint ends. What came can still be read, and then
// the reason.
func (c *Conn) cutOff(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = reason
	c.abort()
}

func (c *Conn) abort() {
	now := c.end.now()
	c.engine.Abort(now)
	c.turnLocked(now)
}

func (c *Conn) endpoint() *Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// LocalAddr returns this end.
func (c *Conn) LocalAddr() net.Addr {
	carrier := c.endpoint().carrier
	return Addr{Kind: carrier.Network(), Host: carrier.LocalAddr(), Port: c.key.localPort}
}

// RemoteAddr returns the peer's end, as it is now.
func (c *Conn) RemoteAddr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Addr{Kind: c.end.carrier.Network(), Host: c.remote, Port: c.key.remotePort}
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	c.rd.set(t)
	c.wd.set(t)
	signal(c.readable)
	signal(c.writable)
	return nil
}

// SetReadDeadline sets the deadline of Read; the zero time: none.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.rd.set(t)
	signal(c.readable)
	return nil
}

// SetWriteDeadline sets the deadline of Write; the zero time: none.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.wd.set(t)
	signal(c.writable)
	return nil
}
