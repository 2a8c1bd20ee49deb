package dccp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
	"mihf.dev/transports/dccp/udpencap"
)

// patience is how long a test waits for what must come; only a failure takes so long.
const patience = 20 * time.Second

// echo answers every datagram of a connection.
func echo(c *dccpnet.Conn) {
	for b := make([]byte, 1500); ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

// ask sends datagrams until one comes back.
func ask(t *testing.T, c *dccpnet.Conn) {
	t.Helper()
	b := make([]byte, 1500)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := c.Write([]byte("are you there?")); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := c.Read(b); err == nil {
			return
		}
	}
	t.Fatalf("no answer: %v, %+v", c.State(), c.Stats())
}

// serve starts an echo service, and stops it when the test ends.
func serve(t *testing.T, listen func() (*dccpnet.Listener, error)) *dccpnet.Listener {
	t.Helper()
	l, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.AcceptDCCP()
			if err != nil {
				return
			}
			wg.Go(func() { echo(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l
}

// In namespaces: the address that the connection uses is removed with its interface, and
// another comes on another interface; as the kernel then routes, the connection goes on,
// once by the word of a broker (Switch) and once by a socket of its own for the new address.
func TestVerticalHandover(t *testing.T) {
	for _, by := range []string{"switch", "rebind"} {
		t.Run(by, func(t *testing.T) {
			node, peer := netns.New(t), netns.New(t)
			node.Pair("w0", peer, "p0")
			node.Pair("c0", peer, "p1")
			peer.Up("lo")
			for _, x := range [][2]string{{"p0", "192.0.2.1/24"}, {"p1", "198.51.100.1/24"}} {
				peer.AddAddr(x[0], x[1], 0, 0)
				peer.Up(x[0])
			}
			peer.AddAddr("lo", "203.0.113.1/32", 0, 0)
			node.Up("lo")
			node.AddAddr("w0", "192.0.2.2/24", 0, 0)
			node.Up("w0")
			node.Up("c0")
			node.AddRoute(netns.Route{Dst: "203.0.113.1/32", Via: "192.0.2.1", Dev: "w0"})

			serve(t, func() (l *dccpnet.Listener, err error) {
				err = peer.Do(func() error {
					l, err = udpencap.Listen("203.0.113.1:6511", dccpnet.Options{})
					return err
				})
				return l, err
			})
			var c *dccpnet.Conn
			err := node.Do(func() (err error) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				c, err = udpencap.Dial(ctx, "203.0.113.1:6511", dccpnet.Options{Conn: dccp.Config{DstPort: 5001}})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			ask(t, c)
			if got := c.FlowSpec(); got.Continuity != mihf.ContinuityRebinds {
				t.Errorf("continuity %v", got.Continuity)
			}

			c.Freeze(mihf.Freeze{})
			node.DelAddr("w0", "192.0.2.2/24")
			node.Delete("w0")
			node.AddAddr("c0", "198.51.100.2/24", 0, 0)
			node.AddRoute(netns.Route{Dst: "203.0.113.1/32", Via: "198.51.100.1", Dev: "c0"})
			if by == "switch" {
				c.Switch(mihf.Switch{})
			} else {
				err := node.Do(func() error {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					return udpencap.Rebind(ctx, c, netip.MustParseAddrPort("198.51.100.2:0"))
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			c.Unfreeze(mihf.Unfreeze{})
			ask(t, c)
			if s := c.Stats(); s.Failed != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// nat relays between a client and a server as a NAT does: it shows the client under a port
// of its own, and forgets that when told to.
type nat struct {
	near *net.UDPConn
	to   *net.UDPAddr
	wg   sync.WaitGroup

	mu     sync.Mutex // guards the following
	client *net.UDPAddr
	far    *net.UDPConn
}

func newNAT(t *testing.T, to string) *nat {
	t.Helper()
	dest, err := net.ResolveUDPAddr("udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	near, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n := &nat{near: near, to: dest}
	n.forget(t)
	n.wg.Go(func() {
		for b := make([]byte, 2000); ; {
			k, from, err := near.ReadFromUDP(b)
			if err != nil {
				return
			}
			n.mu.Lock()
			n.client = from
			_, _ = n.far.Write(b[:k])
			n.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = near.Close()
		n.mu.Lock()
		_ = n.far.Close()
		n.mu.Unlock()
		n.wg.Wait()
	})
	return n
}

// forget gives the client another port; nothing comes back through the old one.
func (n *nat) forget(t *testing.T) {
	t.Helper()
	far, err := net.DialUDP("udp4", nil, n.to)
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	old := n.far
	n.far = far
	n.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	n.wg.Go(func() {
		for b := make([]byte, 2000); ; {
			k, err := far.Read(b)
			if err != nil {
				return
			}
			n.mu.Lock()
			client := n.client
			n.mu.Unlock()
			_, _ = n.near.WriteToUDP(b[:k], client)
		}
	})
}

// A NAT that forgets its binding makes the server see a stranger: the connection finds
// back, whoever speaks first.
func TestNATBindingExpired(t *testing.T) {
	l := serve(t, func() (*dccpnet.Listener, error) { return udpencap.Listen("127.0.0.1:0", dccpnet.Options{}) })
	n := newNAT(t, l.Addr().(dccpnet.Addr).Host.String())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := udpencap.Dial(ctx, n.near.LocalAddr().String(), dccpnet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ask(t, c)
	n.forget(t)
	ask(t, c)
	n.forget(t)
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	ask(t, c)
}
