// Package dccpnettest is a network in memory for tests of DCCP connections: carriers with
// addresses, between which packets take their time and are lost as a test wants it. Under
// testing/synctest it is exact to the nanosecond, and the same packets give the same
// arrivals.
package dccpnettest

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Network joins carriers.
type Network struct {
	Delay   time.Duration // one way
	Spacing time.Duration // of the packets that leave a carrier; 0: none
	Queue   int           // packets that wait to leave; more are lost. 0: no limit

	mu    sync.Mutex // guards the following
	ends  map[netip.AddrPort]*Carrier
	names map[netip.AddrPort]netip.AddrPort // of a NAT: inside to outside
	down  map[netip.Addr]bool
	lost  int // packets with data that were lost at an address that is down
}

// New returns a network with the given delay.
func New(delay time.Duration) *Network {
	return &Network{
		Delay: delay, ends: make(map[netip.AddrPort]*Carrier),
		names: make(map[netip.AddrPort]netip.AddrPort), down: make(map[netip.Addr]bool),
	}
}

// Carrier is one end of the network. It is a dccpnet.Carrier.
type Carrier struct {
	n      *Network
	addr   netip.AddrPort
	inbox  chan packet
	once   sync.Once
	closed chan struct{}
	free   time.Time // when the next packet can leave; guarded by the network's lock
}

type packet struct {
	at   time.Time
	from netip.AddrPort
	b    []byte
}

const inboxPackets = 1 << 14

// Open returns a carrier with an address.
func (n *Network) Open(addr string) *Carrier {
	c := &Carrier{n: n, addr: netip.MustParseAddrPort(addr), inbox: make(chan packet, inboxPackets), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends[c.addr] = c
	return c
}

// SetDown takes an address away, or gives it back: what comes from there or goes there is
// lost.
func (n *Network) SetDown(addr string, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[netip.MustParseAddr(addr)] = down
}

// NAT shows what comes from an address under another one from now on; what goes to
// an older one is lost.
func (n *Network) NAT(inside, outside string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[netip.MustParseAddrPort(inside)] = netip.MustParseAddrPort(outside)
}

// LostData returns how many packets with data were lost where an address was down.
func (n *Network) LostData() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// Write sends packets.
func (c *Carrier) Write(to netip.AddrPort, b []byte, lengths []int) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for _, k := range lengths {
		c.n.send(c, to, append([]byte(nil), b[:k]...))
		b = b[k:]
	}
	return len(lengths), nil
}

// send lets one packet go.
func (n *Network) send(c *Carrier, to netip.AddrPort, b []byte) {
	from, now := c.addr, time.Now()
	if name, ok := n.names[from]; ok {
		from = name
	}
	inside := to
	for in, out := range n.names {
		switch to {
		case out:
			inside = in
		case in:
			inside = netip.AddrPort{} // nobody sees it from outside
		}
	}
	if n.down[c.addr.Addr()] || n.down[inside.Addr()] {
		if typ := b[8] >> 1 & 15; typ == 2 || typ == 4 {
			n.lost++
		}
		return
	}
	dest := n.ends[inside]
	if dest == nil {
		return
	}
	at := now
	if n.Spacing > 0 {
		if c.free.After(at) {
			at = c.free
		}
		if n.Queue > 0 && at.Sub(now) > time.Duration(n.Queue)*n.Spacing {
			return
		}
		at = at.Add(n.Spacing)
		c.free = at
	}
	select {
	case dest.inbox <- packet{at.Add(n.Delay), from, b}:
	default:
	}
}

// Read hands packets on when they arrive.
func (c *Carrier) Read(take func(from netip.AddrPort, b []byte), pause func()) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var p packet
		select {
		case p = <-c.inbox:
		case <-c.closed:
			return net.ErrClosed
		}
		if wait := time.Until(p.at); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-c.closed:
				return net.ErrClosed
			}
		}
		if !c.n.lostOnTheWay(c, p.b) {
			take(p.from, p.b)
		}
		pause()
	}
}

// lostOnTheWay reports whether a packet that arrives now finds the address away.
func (n *Network) lostOnTheWay(c *Carrier, b []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down[c.addr.Addr()] {
		return false
	}
	if typ := b[8] >> 1 & 15; typ == 2 || typ == 4 {
		n.lost++
	}
	return true
}

// LocalAddr returns the address.
func (c *Carrier) LocalAddr() netip.AddrPort { return c.addr }

// Network names the kind.
func (c *Carrier) Network() string { return "dccp+memory" }

// Overhead is that of UDP over IPv4.
func (c *Carrier) Overhead(netip.AddrPort) int { return 28 }

// Close ends Read.
func (c *Carrier) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.n.mu.Lock()
		defer c.n.mu.Unlock()
		if c.n.ends[c.addr] == c {
			delete(c.n.ends, c.addr)
		}
	})
	return nil
}
