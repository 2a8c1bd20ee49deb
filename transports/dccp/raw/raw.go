// Package raw carries DCCP as IP protocol 33, as RFC 4340 has it, where the process may
// open raw sockets (CAP_NET_RAW).
//
//	c, err := raw.Dial(ctx, "192.0.2.1", dccpnet.Options{Conn: dccp.Config{DstPort: 5001}})
//	l, err := raw.Listen("192.0.2.1", dccpnet.Options{Conn: dccp.Config{SrcPort: 5001}})
//
// # Guarantees
//
//   - The header checksum is set on what is sent, and what comes with a wrong one is
//     dropped and counted.
//   - Each socket takes the packets of its own DCCP port only, and answers no others.
//   - An end is bound to one address.
//
// # Limits
//
// A kernel that has DCCP itself answers our packets too, with Resets: use an address that
// it does not own. A connection needs its address: rebinding is a matter of ports that a
// NAT changes, and NATs know no DCCP.
package raw

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"

	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
)

// Dial connects to a DCCP port, o.Conn.DstPort, of a host. The handshake may take until
// ctx ends.
func Dial(ctx context.Context, host string, o dccpnet.Options) (*dccpnet.Conn, error) {
	remote, err := resolve(host)
	if err != nil {
		return nil, err
	}
	local, err := source(ctx, remote)
	if err != nil {
		return nil, err
	}
	return DialFrom(ctx, local, remote, o)
}

// DialFrom is Dial from a given address of this host.
func DialFrom(ctx context.Context, local, remote netip.Addr, o dccpnet.Options) (*dccpnet.Conn, error) {
	if o.Conn.SrcPort == 0 {
		o.Conn.SrcPort = uint16(49152 + rand.IntN(16384))
	}
	s, err := open(ctx, local, o.Conn.SrcPort)
	if err != nil {
		return nil, err
	}
	o.NoRebind = true
	return dccpnet.Dial(ctx, s, netip.AddrPortFrom(remote, 0), o)
}

// Listen accepts connections at a DCCP port, o.Conn.SrcPort, of one address of this host.
func Listen(host string, o dccpnet.Options) (*dccpnet.Listener, error) {
	local, err := resolve(host)
	if err != nil {
		return nil, err
	}
	if o.Conn.SrcPort == 0 {
		return nil, errors.New("dccp: a raw listener needs a port: set Conn.SrcPort")
	}
	s, err := open(context.Background(), local, o.Conn.SrcPort)
	if err != nil {
		return nil, err
	}
	o.NoRebind = true
	return dccpnet.Listen(s, o)
}

func resolve(host string) (netip.Addr, error) {
	a, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("dccp: %s: %w", host, err)
	}
	ip, ok := netip.AddrFromSlice(a.IP)
	if !ok || ip.IsUnspecified() {
		return netip.Addr{}, fmt.Errorf("dccp: %s is not the address of one host", host)
	}
	return ip.Unmap().WithZone(a.Zone), nil
}

// source returns the address from which the kernel sends to a host. A UDP socket that is
// connected sends nothing.
func source(ctx context.Context, to netip.Addr) (netip.Addr, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(to, 9).String())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("dccp: no route to %v: %w", to, err)
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// socket is a raw socket as a carrier.
type socket struct {
	conn *net.IPConn
	addr netip.Addr
	port uint16 // of DCCP, at this end
	bad  atomic.Uint64
}

func open(ctx context.Context, local netip.Addr, port uint16) (*socket, error) {
	network := "ip4:33"
	if local.Is6() {
		network = "ip6:33"
	}
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, network, local.String())
	if err != nil {
		return nil, fmt.Errorf("dccp: no raw socket at %v (it takes CAP_NET_RAW; udpencap needs no privilege): %w", local, err)
	}
	return &socket{conn: pc.(*net.IPConn), addr: local, port: port}, nil
}

// shortest is the shortest packet that has a type.
const shortest = 12

// Read hands on the packets of the socket's port whose checksum is right. An error that
// belongs to one packet is passed over.
func (s *socket) Read(take func(from netip.AddrPort, b []byte), pause func()) error {
	return s.readFrom(s.conn.ReadFromIP, take, pause)
}

func (s *socket) readFrom(read func([]byte) (int, *net.IPAddr, error), take func(from netip.AddrPort, b []byte), pause func()) error {
	for buf := make([]byte, 1<<16); ; {
		n, from, err := read(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		case err != nil && dccpnet.Transient(err):
			continue
		case err != nil:
			return fmt.Errorf("dccp: reading at %v: %w", s.addr, err)
		case n < shortest || binary.BigEndian.Uint16(buf[2:]) != s.port:
			continue
		}
		ip, _ := netip.AddrFromSlice(from.IP)
		ip = ip.Unmap()
		if !sound(buf[:n]) || dccp.VerifyChecksum(buf[:n], ip, s.addr) != nil {
			s.bad.Add(1)
			continue
		}
		take(netip.AddrPortFrom(ip.WithZone(from.Zone), 0), buf[:n:n])
		pause()
	}
}

// sound reports whether a packet has the form that a checksum can be reckoned of.
func sound(b []byte) bool {
	var p dccp.Packet
	return p.Parse(b) == nil
}

// Write sends packets one by one.
func (s *socket) Write(to netip.AddrPort, b []byte, lengths []int) (sent int, err error) {
	dest := &net.IPAddr{IP: to.Addr().AsSlice(), Zone: to.Addr().Zone()}
	for _, n := range lengths {
		dccp.SetChecksum(b[:n], s.addr, to.Addr())
		if _, err := s.conn.WriteToIP(b[:n], dest); err != nil {
			return sent, err
		}
		sent, b = sent+1, b[n:]
	}
	return sent, nil
}

// BadChecksums counts the packets that were dropped for their form or checksum.
func (s *socket) BadChecksums() uint64 { return s.bad.Load() }

func (s *socket) LocalAddr() netip.AddrPort { return netip.AddrPortFrom(s.addr, 0) }

func (s *socket) Network() string { return "dccp" }

// Overhead is IP's header.
func (s *socket) Overhead(to netip.AddrPort) int {
	if to.Addr().Is6() {
		return 40
	}
	return 20
}

func (s *socket) Close() error { return s.conn.Close() }
