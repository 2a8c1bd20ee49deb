package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// MaxClients bounds the clients of one [UDP].
const MaxClients = 64

// UDPConfig says what a [UDP] is.
type UDPConfig struct {
	Near netip.AddrPort // where clients send to; port 0: any; the zero value: any port of loopback
	Far  netip.AddrPort // the server
	// Bind, where it is valid, is the address that the server sees.
	Bind     netip.Addr
	Up, Down Conditions
	Seed     uint64 // of the losses
}

// UDP is a link between UDP sockets: what a client sends to the near address reaches the server
// from a socket of that client's own, and what the server answers there goes back to the client. A
// packet counts with its IP and UDP headers. The first [MaxClients] clients are served; a client
// that binds again is another one.
type UDP struct {
	*Link
	cfg     UDPConfig
	near    *net.UDPConn
	refused atomic.Uint64

	mu      sync.Mutex // guards clients
	clients map[netip.AddrPort]*net.UDPConn
}

// ListenUDP opens the near end, so that clients may send from now on. [UDP.Run] must be called to end it.
func ListenUDP(cfg UDPConfig) (*UDP, error) {
	l, err := newLink(cfg.Up, cfg.Down, cfg.Seed)
	if err != nil {
		return nil, err
	}
	if !cfg.Near.IsValid() {
		cfg.Near = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	near, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(cfg.Near))
	if err != nil {
		return nil, fmt.Errorf("link: the near end: %w", err)
	}
	widen(near)
	u := &UDP{Link: l, cfg: cfg, near: near, clients: make(map[netip.AddrPort]*net.UDPConn)}
	l.up.write = func(p Packet) { u.send(p.Via.(*net.UDPConn).Write(p.Data)) }
	l.down.write = func(p Packet) { u.send(near.WriteToUDPAddrPort(p.Data, p.Via.(netip.AddrPort))) }
	return u, nil
}

// headers is how many octets IP and UDP add.
func headers(a netip.AddrPort) int {
	if a.Addr().Unmap().Is4() {
		return 28
	}
	return 48
}

// widen asks for room for what comes while the reader waits for a processor; what the kernel grants will do.
func widen(c *net.UDPConn) { _ = c.SetReadBuffer(4 << 20) }

// Near returns the address that clients send to.
func (u *UDP) Near() netip.AddrPort { return u.near.LocalAddr().(*net.UDPAddr).AddrPort() }

// Refused returns how many packets the link could not take or give out: of clients beyond
// [MaxClients], or refused by the kernel.
func (u *UDP) Refused() uint64 { return u.refused.Load() }

func (u *UDP) send(_ int, err error) {
	if err != nil {
		u.refused.Add(1)
	}
}

// Run carries packets until ctx ends, and has closed all sockets then.
func (u *UDP) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	u.run(ctx, g)
	g.Go(func() error { return u.readNear(ctx, g) })
	g.Go(func() error {
		<-ctx.Done()
		u.mu.Lock()
		defer u.mu.Unlock()
		_ = u.near.SetReadDeadline(time.Unix(1, 0)) // the readers end, then the sockets close
		for _, c := range u.clients {
			_ = c.SetReadDeadline(time.Unix(1, 0))
		}
		return nil
	})
	err := g.Wait()
	_ = u.near.Close()
	for _, c := range u.clients {
		_ = c.Close()
	}
	return err
}

// readNear puts what clients send on the way up.
func (u *UDP) readNear(ctx context.Context, g *errgroup.Group) error {
	size := headers(u.cfg.Near)
	buf := make([]byte, 1<<16)
	for {
		n, from, err := u.near.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return fmt.Errorf("link: read the near end: %w", err)
		}
		far, err := u.client(ctx, g, from)
		if err != nil {
			return err
		}
		if far == nil {
			u.refused.Add(1)
			continue
		}
		u.up.push(Packet{append([]byte(nil), buf[:n]...), n + size, far})
	}
}

// client returns the socket by which the server sees a client; nil: there are too many.
func (u *UDP) client(ctx context.Context, g *errgroup.Group, from netip.AddrPort) (*net.UDPConn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.clients[from]; c != nil {
		return c, nil
	}
	if len(u.clients) == MaxClients || ctx.Err() != nil {
		return nil, nil
	}
	var bind *net.UDPAddr
	if u.cfg.Bind.IsValid() {
		bind = net.UDPAddrFromAddrPort(netip.AddrPortFrom(u.cfg.Bind, 0))
	}
	c, err := net.DialUDP("udp", bind, net.UDPAddrFromAddrPort(u.cfg.Far))
	if err != nil {
		return nil, fmt.Errorf("link: the far end: %w", err)
	}
	widen(c)
	u.clients[from] = c
	g.Go(func() error { return u.readFar(c, from) })
	return c, nil
}

// readFar puts what the server sends to a client on the way down.
func (u *UDP) readFar(c *net.UDPConn, client netip.AddrPort) error {
	size := headers(u.cfg.Far)
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case errors.Is(err, syscall.ECONNREFUSED): // the server is not there yet
			continue
		case err != nil:
			return fmt.Errorf("link: read the far end: %w", err)
		}
		u.down.push(Packet{append([]byte(nil), buf[:n]...), n + size, client})
	}
}
