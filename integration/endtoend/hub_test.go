package endtoend

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"mihf.dev/integration/netns"
)

// hub makes the peer a switch, with the node's v0 at one of its ports. Hosts at other ports
// can vanish while the node's own link stays up.
func (b *bed) hub() {
	b.t.Helper()
	b.peer.Bridge("br0")
	b.peer.Enslave("p0", "br0")
	b.peer.Up("p0")
}

// host puts a namespace at the hub, with the address 192.0.2.n and the link e0.
func (b *bed) host(n int) *netns.NS {
	b.t.Helper()
	ns, port := netns.New(b.t), portOf(n)
	ns.Pair("e0", b.peer, port)
	b.peer.Enslave(port, "br0")
	b.peer.Up(port)
	ns.Up("e0")
	ns.AddAddr("e0", addressOf(n)+"/24", 0, 0)
	return ns
}

func addressOf(n int) string { return fmt.Sprintf("192.0.2.%d", n) }

// portOf is the hub's port of a host: with the port down, nothing of what the host sends or
// is sent arrives, and no other link changes.
func portOf(n int) string { return fmt.Sprintf("h%d", n) }

// dialIn connects by TCP from a namespace.
func dialIn(ctx context.Context, ns *netns.NS, addr string) (c net.Conn, err error) {
	err = ns.Do(func() error {
		c, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
		return err
	})
	return c, err
}

// tcpConn is a TCP connection as the kernel knows it.
type tcpConn struct {
	remote      string // host:port
	established bool
	queued      uint32 // bytes sent and not acknowledged
}

// tcp returns the IPv4 connections of a namespace.
func tcp(t *testing.T, ns *netns.NS) (list []tcpConn) {
	t.Helper()
	var text []byte
	err := ns.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/tcp")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var slot, local, localPort, remote, port, state, queued uint32
		if _, err := fmt.Sscanf(line, "%d: %x:%x %x:%x %x %x:", &slot, &local, &localPort, &remote, &port, &state, &queued); err != nil {
			continue // the headline
		}
		a := netip.AddrFrom4([4]byte(binary.NativeEndian.AppendUint32(nil, remote)))
		list = append(list, tcpConn{netip.AddrPortFrom(a, uint16(port)).String(), state == 1, queued})
	}
	return list
}
