package dccpnet

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
)

// Rebinding: the ends agree on a key by X25519 over the Hellos of the handshake. An end
// whose address has changed, by its own doing or by a NAT's, tells so by a [move] from the
// new one. The other sends a challenge there, and nothing else, until it is answered.

// ErrNoRebind tells that the peer cannot follow to another address.
var ErrNoRebind = errors.New("dccp: the peer does not know rebinding")

const (
	moveTries    = 7
	moveFirst    = 100 * time.Millisecond // or a round-trip, if that is longer
	silentForNAT = 15 * time.Second       // after it the way back may be forgotten
)

// rebinding is what a connection knows of it.
type rebinding struct {
	key    pathKey
	usable bool
	mine   [8]byte // the connection's id in what comes
	theirs [8]byte
	sent   uint64 // counter of our newest move
	heard  uint64 // of the peer's
	tries  int    // of the move that is going on; 0: none is
	next   mihf.Time
	target *Endpoint // to where we move; nil: where we are
	result *moveResult
}

// moveResult is what became of a move, once done is closed.
type moveResult struct {
	done chan struct{}
	err  error
}

// endMove ends the move that is going on, if one is.
func (m *rebinding) endMove(err error) {
	if m.tries > 0 {
		m.tries, m.next = 0, 0
		m.result.err = err
		close(m.result.done)
	}
}

var (
	errNoAnswer = errors.New("no answer from the peer")
	errReplaced = errors.New("another move took its place")
)

// RebindStats counts moves.
type RebindStats struct {
	Moved    uint64 // times that an end of the connection came to another address
	Failed   uint64 // moves that got no answer
	Rejected uint64 // moves that were not genuine, or old
}

// publicBytes is a public key; a client's Hello has a nonce behind it.
const publicBytes = 32

// hello makes a client's Hello: no two connections have the same key.
func hello(key *ecdh.PrivateKey) ([]byte, error) {
	h := make([]byte, publicBytes+8)
	copy(h, key.PublicKey().Bytes())
	_, err := rand.Read(h[publicBytes:])
	return h, err
}

// newKey makes an endpoint's key pair.
func newKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

// agree derives the key from the peer's Hello, if it sent one. The lock is held.
func (c *Conn) agree(server bool) {
	hello := c.engine.PeerHello()
	if c.own == nil || len(hello) < publicBytes {
		return
	}
	theirs, err := ecdh.X25519().NewPublicKey(hello[:publicBytes])
	if err != nil {
		return
	}
	secret, err := c.own.ECDH(theirs)
	if err != nil {
		return
	}
	client, serverKey := c.hello, theirs.Bytes()
	if server {
		client, serverKey = hello, c.own.PublicKey().Bytes()
	}
	var ports [4]byte
	a, b := c.key.localPort, c.key.remotePort
	if server {
		a, b = b, a
	}
	binary.BigEndian.PutUint16(ports[:], a)
	binary.BigEndian.PutUint16(ports[2:], b)
	h := sha256.New()
	for _, part := range [][]byte{[]byte("dccp rebind"), secret, client, serverKey, ports[:]} {
		h.Write(part)
	}
	h.Sum(c.move.key[:0])
	c.move.usable = true
	c.move.mine, c.move.theirs = c.move.key.id(server), c.move.key.id(!server)
	c.own, c.hello = nil, nil
	c.end.name(c, c.move.mine)
}

// Rebinds reports whether the connection can go on from another address.
func (c *Conn) Rebinds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.move.usable
}

// Rebind moves this end of the connection to another carrier, which it then owns, and
// waits until the peer sends there. What the old one is good for does not matter. Where
// that fails, the connection is as before and the carrier closed.
func (c *Conn) Rebind(ctx context.Context, carrier Carrier) error {
	e, err := newEndpoint(carrier, c.opts, false)
	if err != nil {
		_ = carrier.Close()
		return err
	}
	e.single = true
	go e.run()
	if err := c.goTo(ctx, e); err != nil {
		_ = e.close()
		return fmt.Errorf("dccp: rebind to %v: %w", carrier.LocalAddr(), err)
	}
	return nil
}

// Refresh tells the peer where this end is seen now: after a time of silence a NAT may
// have forgotten the way. It waits for the peer's word. A connection does so by itself
// before it sends after 15 s of silence, and when the peer no longer knows it.
func (c *Conn) Refresh(ctx context.Context) error { return c.goTo(ctx, nil) }

// goTo moves to an endpoint, nil being the present one, and waits for it.
func (c *Conn) goTo(ctx context.Context, e *Endpoint) error {
	result, err := c.begin(e)
	if err != nil {
		return err
	}
	select {
	case <-result.done:
		err = result.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-result.done: // it came to its end as ctx did
		if err = result.err; err == nil {
			return nil
		}
	default:
	}
	if c.move.result == result {
		c.move.endMove(err)
	}
	if e != nil && c.move.target == e {
		c.move.target = nil
		e.unname(c.move.mine)
	}
	return err
}

// begin starts a move that somebody waits for.
func (c *Conn) begin(e *Endpoint) (*moveResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isDone:
		return nil, net.ErrClosed
	case !c.move.usable:
		return nil, ErrNoRebind
	}
	c.startMove(c.end.now(), e)
	return c.move.result, nil
}

// startMove begins a move; one that goes on is replaced. The lock is held.
func (c *Conn) startMove(now mihf.Time, e *Endpoint) {
	m := &c.move
	m.endMove(errReplaced)
	if m.target != nil && m.target != e {
		m.target.unname(m.mine)
	}
	if e != nil {
		e.name(c, m.mine)
	}
	m.target, m.tries, m.next = e, 1, now.Add(max(moveFirst, c.engine.RTT()))
	m.result = &moveResult{done: make(chan struct{})}
	c.sendMove(moveStart, [8]byte{})
	c.arm(now)
}

// path is where moves go out: the new carrier, else the present one.
func (c *Conn) path() Carrier {
	if c.move.target != nil {
		return c.move.target.carrier
	}
	return c.end.carrier
}

func (c *Conn) sendMove(kind moveKind, nonce [8]byte) {
	c.move.sent++
	c.writeMove(c.path(), c.remote, move{kind: kind, id: c.move.theirs, counter: c.move.sent, nonce: nonce})
}

func (c *Conn) writeMove(p Carrier, to netip.AddrPort, m move) {
	b := m.append(make([]byte, 0, moveBytes), &c.move.key, c.key.localPort, c.key.remotePort)
	if _, err := p.Write(to, b, []int{len(b)}); err != nil {
		c.unsent++
	}
}

// turnMove repeats a move that got no answer, and gives it up in the end.
func (c *Conn) turnMove(now mihf.Time) {
	m := &c.move
	if m.tries == 0 || !m.next.Due(now) {
		return
	}
	if m.tries == moveTries {
		c.moves.Failed++
		m.endMove(errNoAnswer)
		return
	}
	m.next = now.Add(max(moveFirst, c.engine.RTT()) << m.tries)
	m.tries++
	c.sendMove(moveStart, [8]byte{})
}

// takeMove takes a move that came for the connection, on endpoint e from an address.
func (c *Conn) takeMove(now mihf.Time, e *Endpoint, from netip.AddrPort, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := parseMove(b)
	k := &c.move
	if c.isDone || !k.usable || m.id != k.mine || !k.key.genuine(b) || m.counter <= k.heard {
		c.moves.Rejected++
		return
	}
	k.heard = m.counter
	switch m.kind {
	case moveStart:
		if from == c.remote { // it only wants to know
			c.writeMove(e.carrier, from, c.nextMove(moveDone, [8]byte{}))
			return
		}
		c.writeMove(e.carrier, from, c.nextMove(moveChallenge, c.challenge(from)))
	case moveChallenge:
		if k.tries > 0 {
			c.sendMove(moveAnswer, m.nonce)
		}
	case moveAnswer:
		if m.nonce != c.challenge(from) {
			c.moves.Rejected++
			return
		}
		c.writeMove(e.carrier, from, c.nextMove(moveDone, [8]byte{}))
		if from != c.remote {
			c.peerMoved(now, from)
		}
	case moveDone:
		if k.tries > 0 {
			c.moved(now)
		}
	default:
		c.moves.Rejected++
	}
}

func (c *Conn) nextMove(kind moveKind, nonce [8]byte) move {
	c.move.sent++
	return move{kind: kind, id: c.move.theirs, counter: c.move.sent, nonce: nonce}
}

// challenge is the nonce that only who gets it at an address can send back.
func (c *Conn) challenge(at netip.AddrPort) (nonce [8]byte) {
	ip := at.Addr().As16()
	port := [2]byte{byte(at.Port() >> 8), byte(at.Port())}
	sum := c.move.key.tag("challenge", c.end.secret[:], ip[:], port[:])
	copy(nonce[:], sum[:])
	return nonce
}

// peerMoved sends to another address of the peer from now on.
func (c *Conn) peerMoved(now mihf.Time, to netip.AddrPort) {
	c.moves.Moved++
	old := c.key
	c.remote, c.key.remote = to, to
	c.end.rename(c, old)
	c.afterMove(now)
}

// moved ends a move of ours: the peer sends to where we are.
func (c *Conn) moved(now mihf.Time) {
	k := &c.move
	if k.target != nil {
		c.moves.Moved++
		old := c.end
		c.end, k.target = k.target, nil
		c.end.adopt(c)
		old.part(c)
		c.afterMove(now)
	}
	k.endMove(nil)
	c.turnLocked(now)
}

// afterMove tells the engine of the new path.
func (c *Conn) afterMove(now mihf.Time) {
	cfg := c.end.fit(dccp.Config{MTU: c.opts.Conn.MTU}, c.remote)
	_ = c.engine.SetMTU(max(cfg.MTU, minMTU))
	c.engine.Moved(now)
	c.turnLocked(now)
}

// mayBeForgotten starts a refresh before something is sent after a long silence.
func (c *Conn) mayBeForgotten(now mihf.Time) {
	if c.move.usable && c.move.tries == 0 && !c.active.IsZero() && now.Sub(c.active) >= silentForNAT {
		c.startMove(now, nil)
	}
	c.active = now
}

// forgotten decides about a Reset that says that the peer knows no such connection: where
// a NAT has another way for us by now, it is wrong, and a move puts it right. It reports
// whether the Reset is to be passed over.
func (c *Conn) forgotten(now mihf.Time, b []byte) bool {
	if !c.move.usable || !resets(b, dccp.ResetNoConnection) {
		return false
	}
	if c.move.tries == 0 {
		if now.Sub(c.lastReset) < 2*silentForNAT && !c.lastReset.IsZero() {
			return false // the move before it did not help
		}
		c.lastReset = now
		c.startMove(now, nil)
	}
	return true
}

// resets reports whether a packet is a Reset with a code.
func resets(b []byte, code dccp.ResetCode) bool {
	var p dccp.Packet
	return dccp.TypeOf(b) == dccp.TypeReset && p.Parse(b) == nil && p.Code == code
}
