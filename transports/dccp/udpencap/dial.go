package udpencap

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"mihf.dev/transports/dccp/dccpnet"
)

// Port is the UDP port that is registered for DCCP-UDP.
const Port = 6511

// Dial connects to a service: address is a host with a UDP port, o.Conn.DstPort the DCCP
// port. The handshake may take until ctx ends.
func Dial(ctx context.Context, address string, o dccpnet.Options) (*dccpnet.Conn, error) {
	remote, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("dccp: dial %s: %w", address, err)
	}
	to := remote.AddrPort()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	local := netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	if to.Addr().Is4() {
		local = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return DialFrom(ctx, local, to, o)
}

// DialFrom is Dial from a local address, of which the port may be 0.
func DialFrom(ctx context.Context, local, remote netip.AddrPort, o dccpnet.Options) (*dccpnet.Conn, error) {
	s, err := open(ctx, local)
	if err != nil {
		return nil, err
	}
	return dccpnet.Dial(ctx, s, remote, o)
}

// Rebind moves this end of a connection to another local address, of which the port may
// be 0, and waits until the peer has followed. The old address may be gone already.
func Rebind(ctx context.Context, c *dccpnet.Conn, local netip.AddrPort) error {
	s, err := open(ctx, local)
	if err != nil {
		return err
	}
	return c.Rebind(ctx, s)
}

// NewDialer returns a dialer for connections that share one socket at a local address,
// of which the port may be 0.
func NewDialer(local string, o dccpnet.Options) (*dccpnet.Dialer, error) {
	at, err := net.ResolveUDPAddr("udp", local)
	if err != nil {
		return nil, fmt.Errorf("dccp: dial from %s: %w", local, err)
	}
	s, err := open(context.Background(), at.AddrPort())
	if err != nil {
		return nil, err
	}
	return dccpnet.NewDialer(s, o)
}

// Listen accepts connections at an address with a UDP port; o.Conn.SrcPort is the DCCP
// port, 0 for all.
func Listen(address string, o dccpnet.Options) (*dccpnet.Listener, error) {
	local, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("dccp: listen on %s: %w", address, err)
	}
	s, err := open(context.Background(), local.AddrPort())
	if err != nil {
		return nil, err
	}
	return dccpnet.Listen(s, o)
}
