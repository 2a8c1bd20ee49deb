package sockdiag

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
)

// BenchmarkReading reads the sockets of a namespace with that many connections, of which both ends are there.
func BenchmarkReading(b *testing.B) {
	for _, n := range []int{1, 200, 1000} {
		b.Run(fmt.Sprintf("connections=%d", n), func(b *testing.B) { benchmarkReading(b, n) })
	}
}

func benchmarkReading(b *testing.B, n int) {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	ns := netns.New(b)
	must(ns.Do(func() error {
		var lc net.ListenConfig
		l, err := lc.Listen(b.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		for range n {
			c, err := new(net.Dialer).DialContext(b.Context(), "tcp", l.Addr().String())
			if err != nil {
				return err
			}
			b.Cleanup(func() { _ = c.Close() })
			peer, err := l.Accept()
			if err != nil {
				return err
			}
			b.Cleanup(func() { _ = peer.Close() })
		}
		return nil
	}))
	s := New(Options{Addresses: func() map[netip.Addr]mihf.LinkID {
		return map[netip.Addr]mihf.LinkID{netip.MustParseAddr("127.0.0.1"): "other-00000001"}
	}})
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, &netlink.Config{NetNS: int(ns.Handle), MessageBufferSize: messageBuffer})
	must(err)
	defer conn.Close()
	ses := &session{sensor: s, conn: conn, state: newState(), watched: &watchSet{}}
	for b.Loop() {
		_, err := ses.read(5)
		must(err)
	}
	if got := s.count.sockets.Load() / s.count.readings.Load(); got != uint64(2*n) {
		b.Fatalf("%d sockets read of %d", got, 2*n)
	}
}
