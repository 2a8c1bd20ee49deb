package raw

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mihf.dev/transports/dccp"
)

// TestReadErrors: an error of one packet or of a moment does not end the connections of a
// socket; another does.
func TestReadErrors(t *testing.T) {
	failure := func(err error) error {
		return &net.OpError{Op: "read", Net: "ip4:33", Err: os.NewSyscallError("recvfrom", err)}
	}
	local, remote := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	p := dccp.Packet{SrcPort: 9, DstPort: 5001, Type: dccp.TypeRequest, Extended: true, Seq: 7}
	packet := p.Append(nil)
	dccp.SetChecksum(packet, remote, local)
	for _, c := range []struct {
		first, want error
		gets        int
	}{
		{failure(unix.ENETDOWN), net.ErrClosed, 1},
		{failure(unix.EHOSTUNREACH), net.ErrClosed, 1},
		{failure(unix.ENOBUFS), net.ErrClosed, 1},
		{failure(unix.EBADF), unix.EBADF, 0},
		{failure(net.ErrClosed), net.ErrClosed, 0},
	} {
		s := &socket{addr: local, port: 5001}
		step, got := 0, 0
		err := s.readFrom(func(b []byte) (int, *net.IPAddr, error) {
			switch step++; step {
			case 1:
				return 0, nil, c.first
			case 2:
				return copy(b, packet), &net.IPAddr{IP: remote.AsSlice()}, nil
			default:
				return 0, nil, net.ErrClosed
			}
		}, func(from netip.AddrPort, _ []byte) {
			if from.Addr() == remote {
				got++
			}
		}, func() {})
		if !errors.Is(err, c.want) || got != c.gets {
			t.Errorf("%v: got %d packets, error %v", c.first, got, err)
		}
	}
}
