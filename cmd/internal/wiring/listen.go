package wiring

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ListenTCP listens on an address that the machine need not have yet: a daemon that watches
// links starts before they are configured. Connections come once it has the address.
func ListenTCP(ctx context.Context, address string) (net.Listener, error) {
	free := func(_, _ string, raw syscall.RawConn) error {
		var set error
		// The kernel reads this option of IPv4 for IPv6 sockets too.
		err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1) })
		if err == nil {
			err = set
		}
		return err
	}
	return (&net.ListenConfig{Control: free}).Listen(ctx, "tcp", address)
}
