package dccpnet

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/transports/dccp"
)

// errTooBig is what a carrier's Write returns for packets that are too long for the path.
var errTooBig = syscall.EMSGSIZE

// key finds the connection of a packet: the 6-tuple of RFC 6773, section 3.8, without
// what is the carrier's own.
type key struct {
	remote                netip.AddrPort
	localPort, remotePort uint16
}

// maxTimeWait bounds the tuples that are kept out of use.
const maxTimeWait = 16384

// Endpoint sends and receives for all connections over one carrier.
type Endpoint struct {
	carrier Carrier
	opts    Options
	clock   clock.Clock
	secret  [32]byte
	private *ecdh.PrivateKey // nil: no rebinding
	single  bool             // made for one connection, with which it ends
	accept  chan *Conn
	dirty   []*Conn // got packets in this batch; the reader's

	mu       sync.Mutex // guards the following
	conns    map[key]*Conn
	ids      map[[8]byte]*Conn // by what moves call them
	quiet    map[key]mihf.Time // tuples in TIMEWAIT, until when
	stray    *dccp.Listener
	half     int // connections whose handshake is not done
	listens  bool
	closed   bool
	stats    EndpointStats
	finished chan struct{} // closed when run has ended
	failed   error         // why, where nobody closed it; read after finished
}

// EndpointStats counts what an endpoint did.
type EndpointStats struct {
	dccp.ListenerStats
	Connections int    // now
	HalfOpen    int    // of these, with the handshake not done
	Refused     uint64 // connections beyond the backlog
	// BadChecksums counts packets that came with a wrong checksum.
	BadChecksums uint64
}

func newEndpoint(carrier Carrier, o Options, listens bool) (*Endpoint, error) {
	e := &Endpoint{
		carrier: carrier, opts: o.withDefaults(), clock: clock.Process(), listens: listens,
		conns: make(map[key]*Conn), ids: make(map[[8]byte]*Conn), quiet: make(map[key]mihf.Time), finished: make(chan struct{}),
	}
	e.accept = make(chan *Conn, e.opts.Backlog)
	if _, err := rand.Read(e.secret[:]); err != nil {
		return nil, fmt.Errorf("dccp: no secret for sequence numbers: %w", err)
	}
	var err error
	if !o.NoRebind {
		if e.private, err = newKey(); err != nil {
			return nil, fmt.Errorf("dccp: no key for rebinding: %w", err)
		}
		e.opts.Conn.Hello = e.private.PublicKey().Bytes()
	}
	e.stray, err = dccp.NewListener(dccp.ListenerConfig{
		Conn: e.fit(e.opts.Conn, e.carrier.LocalAddr()), Services: e.opts.Services,
		Port: e.opts.Conn.SrcPort, Closed: !listens, Secret: e.secret,
	})
	return e, err
}

// fit lowers the MTU to what the path takes.
func (e *Endpoint) fit(c dccp.Config, to netip.AddrPort) dccp.Config {
	if most := e.opts.PathMTU - e.carrier.Overhead(to); c.MTU == 0 || c.MTU > most {
		c.MTU = most
	}
	return c
}

func (e *Endpoint) now() mihf.Time { return e.clock.Now() }

// run reads packets until the endpoint is closed or the carrier fails, whose error it
// leaves in failed.
func (e *Endpoint) run() {
	defer close(e.finished)
	err := e.carrier.Read(e.take, e.pause)
	if !errors.Is(err, net.ErrClosed) {
		e.failed = err
	}
	e.abortAll(err)
}

// abortAll ends the connections; no more come. What came on them can still be read.
func (e *Endpoint) abortAll(reason error) {
	e.mu.Lock()
	e.closed = true
	all := make([]*Conn, 0, len(e.conns))
	for _, c := range e.conns {
		all = append(all, c)
	}
	e.mu.Unlock()
	for _, c := range all {
		c.cutOff(reason)
	}
}

// shortest is the shortest packet.
const shortest = 12

// take hands a packet to its connection. Only the reader calls it.
func (e *Endpoint) take(from netip.AddrPort, b []byte) {
	if len(b) < shortest {
		return
	}
	if isMove(b) {
		e.takeMove(from, b)
		return
	}
	k := key{from, binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b)}
	e.mu.Lock()
	c := e.conns[k]
	e.mu.Unlock()
	now := e.now()
	if c == nil {
		if c = e.takeStray(now, k, b); c == nil {
			return
		}
		if dccp.TypeOf(b) != dccp.TypeRequest { // came of a cookie
			c.receive(now, b)
		}
	} else {
		c.receive(now, b)
	}
	if slices.Contains(e.dirty, c) {
		return
	}
	if e.dirty = append(e.dirty, c); len(e.dirty) >= 64 {
		e.pause()
	}
}

// pause lets the connections that got packets go on.
func (e *Endpoint) pause() {
	now := e.now()
	for i, c := range e.dirty {
		c.turn(now)
		e.dirty[i] = nil
	}
	e.dirty = e.dirty[:0]
}

// takeMove hands a move to the connection that it names.
func (e *Endpoint) takeMove(from netip.AddrPort, b []byte) {
	e.mu.Lock()
	c := e.ids[parseMove(b).id]
	e.mu.Unlock()
	if c != nil {
		c.takeMove(e.now(), e, from, b)
	}
}

// name lets moves with the id find a connection.
func (e *Endpoint) name(c *Conn, id [8]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids[id] = c
}

func (e *Endpoint) unname(id [8]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ids, id)
}

// rename takes that a connection's peer has another address.
func (e *Endpoint) rename(c *Conn, old key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns[old] == c {
		delete(e.conns, old)
	}
	e.conns[c.key] = c
}

// adopt takes over a connection from another endpoint.
func (e *Endpoint) adopt(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns[c.key] = c
}

// part gives a connection away; with it goes an endpoint that was made for it.
func (e *Endpoint) part(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns[c.key] == c {
		delete(e.conns, c.key)
	}
	delete(e.ids, c.move.mine)
	if e.single {
		_ = e.carrier.Close() // its reader ends by that
	}
}

// takeStray answers a packet of no connection, or makes one of it.
func (e *Endpoint) takeStray(now mihf.Time, k key, b []byte) *Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	var answer []byte
	var engine *dccp.Conn
	if until, ok := e.quiet[k]; ok && now < until {
		answer = e.stray.Refuse(now, b)
	} else {
		t := dccp.Tuple{Local: e.carrier.LocalAddr(), Remote: k.remote, LocalPort: k.localPort, RemotePort: k.remotePort}
		engine, answer = e.stray.Receive(now, t, b, e.opts.HalfOpen < 0 || e.half >= e.opts.HalfOpen)
	}
	if len(answer) > 0 {
		_, _ = e.carrier.Write(k.remote, answer, []int{len(answer)})
	}
	if engine == nil || e.closed {
		return nil
	}
	c := newConn(e, engine, k)
	c.waiting = true
	e.conns[k] = c
	e.half++
	return c
}

// settled takes that a connection's handshake is done. It is called with its lock held.
func (e *Endpoint) settled(c *Conn) {
	if !c.waiting {
		return
	}
	c.waiting = false
	e.mu.Lock()
	e.half--
	e.mu.Unlock()
	select {
	case e.accept <- c:
	default:
		e.mu.Lock()
		e.stats.Refused++
		e.mu.Unlock()
		c.closing = true
		c.engine.Refuse(e.now(), dccp.ResetTooBusy)
		c.flush(e.now())
	}
}

// forget drops a connection that is over. It is called with its lock held.
func (e *Endpoint) forget(c *Conn, now mihf.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns[c.key] == c {
		delete(e.conns, c.key)
	}
	delete(e.ids, c.move.mine)
	if c.waiting {
		e.half--
	}
	if c.engine.State() == dccp.StateTimeWait && !e.single {
		e.keepQuiet(now, c.key)
	}
}

// keepQuiet holds a tuple for two segment lifetimes, of too many any.
func (e *Endpoint) keepQuiet(now mihf.Time, k key) {
	if len(e.quiet) >= maxTimeWait {
		for old, until := range e.quiet {
			if until <= now {
				delete(e.quiet, old)
			}
		}
	}
	for old := range e.quiet {
		if len(e.quiet) < maxTimeWait {
			break
		}
		delete(e.quiet, old)
	}
	e.quiet[k] = now.Add(dccp.TimeWait)
}

// released ends an endpoint that was made for the connection.
func (e *Endpoint) released() {
	if e.single {
		_ = e.close()
	}
}

// close aborts the connections, while their peers can still be told, and ends the carrier
// and with it run.
func (e *Endpoint) close() error {
	e.abortAll(net.ErrClosed)
	err := e.carrier.Close()
	<-e.finished
	return err
}

// Dial connects over a carrier that is used by nothing else, and closed with the
// connection. It waits for the handshake until ctx ends.
func Dial(ctx context.Context, carrier Carrier, remote netip.AddrPort, o Options) (*Conn, error) {
	e, err := newEndpoint(carrier, o, false)
	if err != nil {
		_ = carrier.Close()
		return nil, err
	}
	e.single = true
	c, err := e.connectTo(remote, o.Conn.DstPort)
	if err != nil {
		_ = carrier.Close()
		return nil, err
	}
	go e.run()
	if err := c.await(ctx); err != nil {
		_ = e.close()
		return nil, err
	}
	return c, nil
}

// await asks for the connection and waits for the handshake.
func (c *Conn) await(ctx context.Context) error {
	c.turn(c.end.now())
	var err error
	select {
	case <-c.opened:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
		c.Abort()
	case <-c.done:
		err = c.ended
	}
	return opError("dial", c, err)
}

// Dialer connects over a carrier that its connections share.
type Dialer struct{ end *Endpoint }

// NewDialer returns a dialer, which owns the carrier.
func NewDialer(carrier Carrier, o Options) (*Dialer, error) {
	e, err := newEndpoint(carrier, o, false)
	if err != nil {
		_ = carrier.Close()
		return nil, err
	}
	go e.run()
	return &Dialer{end: e}, nil
}

// Dial connects to the DCCP port of a remote address, which has to be one of the carrier's
// network. It waits for the handshake until ctx ends.
func (d *Dialer) Dial(ctx context.Context, address string, port uint16) (*Conn, error) {
	remote, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dccp: dial %s: %w", address, err)
	}
	c, err := d.end.connectTo(remote, port)
	if err != nil {
		return nil, err
	}
	if err := c.await(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Close aborts the connections and closes the carrier.
func (d *Dialer) Close() error { return d.end.close() }

// connect makes a client's end.
func (e *Endpoint) connectTo(remote netip.AddrPort, port uint16) (*Conn, error) {
	cfg := e.fit(e.opts.Conn, remote)
	cfg.DstPort = port
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, net.ErrClosed
	}
	k, err := e.freeKey(remote, cfg.SrcPort, port)
	if err != nil {
		return nil, err
	}
	cfg.SrcPort = k.localPort
	t := dccp.Tuple{Local: e.carrier.LocalAddr(), Remote: remote, LocalPort: k.localPort, RemotePort: k.remotePort}
	var own []byte
	if e.private != nil {
		if own, err = hello(e.private); err != nil {
			return nil, err
		}
		cfg.Hello = own
	}
	engine, err := dccp.NewClient(cfg, dccp.InitialSeq(e.secret, t, e.now()))
	if err != nil {
		return nil, err
	}
	c := newConn(e, engine, k)
	c.hello = own
	e.conns[k] = c
	return c, nil
}

// freeKey chooses a local port, at random if none is wanted (RFC 4340, section 5.1).
func (e *Endpoint) freeKey(remote netip.AddrPort, local, port uint16) (key, error) {
	const first, count = 1024, 1<<16 - 1024
	var b [2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return key{}, err
	}
	start := int(binary.BigEndian.Uint16(b[:]))
	for i := range count {
		k := key{remote, local, port}
		if local == 0 {
			k.localPort = uint16(first + (start+i)%count)
		}
		if _, quiet := e.quiet[k]; e.conns[k] == nil && !quiet {
			return k, nil
		}
		if local != 0 {
			break
		}
	}
	return key{}, fmt.Errorf("dccp: no free port for %v/%d", remote, port)
}
