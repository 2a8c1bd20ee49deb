package udpencap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"mihf.dev/transports/dccp/dccpnet"
)

// socketBuffer is asked for in each direction; the kernel may give less.
const socketBuffer = 4 << 20

// socket is a UDP socket as a carrier of DCCP packets.
type socket struct {
	conn     *net.UDPConn
	raw      syscall.RawConn
	v6       bool
	local    netip.AddrPort
	segments atomic.Bool // the kernel splits what is sent
}

// open binds a socket.
func open(ctx context.Context, local netip.AddrPort) (*socket, error) {
	addr := local.Addr()
	if addr.Is4In6() {
		addr = addr.Unmap()
	}
	network := "udp6"
	if addr.Is4() {
		network = "udp4"
	} else if !addr.IsValid() || addr.IsUnspecified() {
		network = "udp" // both
	}
	lc := net.ListenConfig{Control: control}
	pc, err := lc.ListenPacket(ctx, network, netip.AddrPortFrom(addr, local.Port()).String())
	if err != nil {
		return nil, fmt.Errorf("dccp: no UDP socket: %w", err)
	}
	conn := pc.(*net.UDPConn)
	raw, err := conn.SyscallConn()
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("dccp: no UDP socket: %w", err)
	}
	s := &socket{conn: conn, raw: raw, local: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	s.local = netip.AddrPortFrom(s.local.Addr().Unmap(), s.local.Port())
	err = raw.Control(func(fd uintptr) {
		name, err := unix.Getsockname(int(fd))
		_, s.v6 = name.(*unix.SockaddrInet6)
		_ = err // a socket that was just made has a name
		// What the kernel lacks is done packet by packet.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
		_, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		s.segments.Store(err == nil)
	})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("dccp: no UDP socket: %w", err)
	}
	return s, nil
}

// control sets what has to be set before a socket is bound. What cannot be had is not
// needed.
func control(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		for _, o := range [][3]int{
			{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer},
			{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer},
			{unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer},
			{unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer},
			{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO},
			{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO},
		} {
			_ = unix.SetsockoptInt(int(fd), o[0], o[1], o[2])
		}
	})
}

func (s *socket) LocalAddr() netip.AddrPort { return s.local }

// Source returns the address from which the kernel sends to a peer as routes are now.
func (s *socket) Source(to netip.AddrPort) (netip.AddrPort, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)) // sends nothing
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("dccp: no route to %v: %w", to, err)
	}
	defer func() { _ = c.Close() }()
	at := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

func (s *socket) Network() string { return "dccp+udp" }

// Overhead is UDP's and IP's headers.
func (s *socket) Overhead(to netip.AddrPort) int {
	if to.Addr().Is6() && !to.Addr().Is4In6() {
		return 40 + 8
	}
	return 20 + 8
}

func (s *socket) Close() error { return s.conn.Close() }

// Read reads until the socket is closed. An error that belongs to one packet is passed
// over.
func (s *socket) Read(take func(from netip.AddrPort, b []byte), pause func()) error {
	r := reader{take: take}
	for {
		var failed error
		err := s.raw.Read(func(fd uintptr) bool {
			var again bool
			again, failed = r.read(fd)
			return !again
		})
		pause()
		switch {
		case err != nil && errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		case err != nil:
			return fmt.Errorf("dccp: reading from %v: %w", s.local, err)
		case failed != nil && !dccpnet.Transient(failed):
			return fmt.Errorf("dccp: reading from %v: %w", s.local, failed)
		}
	}
}
