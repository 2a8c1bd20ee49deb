package kernel_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
	"mihf.dev/transports/tcpadjust/kernel"
)

// open returns an actuator in the namespace of the test, or skips with the reason.
func open(t *testing.T) *kernel.Actuator {
	t.Helper()
	a, err := kernel.Open()
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// in runs f in the namespace.
func in(t *testing.T, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, host string) (net.Listener, error) {
	t.Helper()
	return new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
}

func dial(t *testing.T, l net.Listener) (net.Conn, error) {
	t.Helper()
	return (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", l.Addr().String())
}

// pair returns both ends of a connection over the loopback of a namespace.
func pair(t *testing.T, ns *netns.NS, host string) (client, server *net.TCPConn) {
	t.Helper()
	in(t, ns, func() error {
		l, err := listen(t, host)
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := dial(t, l)
		if err != nil {
			return err
		}
		s, err := l.Accept()
		client, server = c.(*net.TCPConn), s.(*net.TCPConn)
		return err
	})
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func info(t *testing.T, c *net.TCPConn) *unix.TCPInfo {
	t.Helper()
	var i *unix.TCPInfo
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { i, _ = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	}
	if err != nil || i == nil {
		t.Fatalf("TCP_INFO: %v", err)
	}
	return i
}

func find(t *testing.T, ns *netns.NS, a *kernel.Actuator, c *net.TCPConn) kernel.Socket {
	t.Helper()
	var all []kernel.Socket
	in(t, ns, func() (err error) {
		all, err = a.Sockets(func(s *kernel.Socket) bool { return s.Local.String() == c.LocalAddr().String() })
		return err
	})
	if len(all) != 1 {
		t.Fatalf("%d sockets at %v", len(all), c.LocalAddr())
	}
	return all[0]
}

func apply(t *testing.T, ns *netns.NS, a *kernel.Actuator, orders ...kernel.Order) []kernel.Result {
	t.Helper()
	var out []kernel.Result
	in(t, ns, func() (err error) {
		out, err = a.Apply(orders)
		return err
	})
	return out
}

func TestSocketsAndApply(t *testing.T) {
	ns := netns.New(t)
	a := open(t)
	for _, tt := range []struct{ host, cc string }{{"127.0.0.1", "cubic"}, {"::1", "cubic"}, {"127.0.0.1", "reno"}, {"127.0.0.1", "bbr"}} {
		t.Run(tt.cc+" "+tt.host, func(t *testing.T) {
			if !slices.Contains(available(t), tt.cc) {
				t.Skip("this kernel has no " + tt.cc)
			}
			client, server := pair(t, ns, tt.host)
			setCongestion(t, client, tt.cc)
			s := find(t, ns, a, client)
			was := info(t, client)
			if s.Remote.String() != server.LocalAddr().String() || s.Cwnd != was.Snd_cwnd || s.MSS != was.Snd_mss || s.Device == 0 {
				t.Errorf("%+v, TCP_INFO has %+v", s, was)
			}
			threshold := uint32(300)
			if tt.cc == "bbr" { // has none of its own, and takes ours away
				threshold = 0x7fffffff
			}
			r := apply(t, ns, a, kernel.Order{Cookie: s.Cookie, Cwnd: 350, Ssthresh: 300, PacingBPS: 80e6, Push: true})[0]
			if !r.Done || r.CwndBefore != 10 || r.CwndAfter != 350 || r.SsthreshAfter != threshold || r.PacingBefore != kernel.Unpaced || r.Refused != nil {
				t.Errorf("%+v", r)
			}
			now := info(t, client)
			if now.Snd_cwnd != 350 || now.Snd_ssthresh != threshold {
				t.Errorf("window %d and threshold %d, want 350 and %d", now.Snd_cwnd, now.Snd_ssthresh, threshold)
			}
			if cc, err := congestion(client); err != nil || cc != tt.cc {
				t.Errorf("the socket is on %q: %v", cc, err)
			}
			if s := find(t, ns, a, client); s.PacingBPS != 80e6 {
				t.Errorf("paced at %d bit/s, want 80 Mbit/s", s.PacingBPS)
			}
			if other := info(t, server); other.Snd_cwnd != 10 {
				t.Errorf("the other socket's window is %d", other.Snd_cwnd)
			}
			works(t, client, server)
		})
	}
}

func works(t *testing.T, client, server *net.TCPConn) {
	t.Helper()
	go func() { _, _ = fmt.Fprint(client, "still there") }()
	b := make([]byte, 11)
	if _, err := io.ReadFull(server, b); err != nil || string(b) != "still there" {
		t.Errorf("%q, %v", b, err)
	}
}

func congestion(c *net.TCPConn) (name string, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return "", err
	}
	e := raw.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
	return name, errors.Join(e, err)
}

func setCongestion(t *testing.T, c *net.TCPConn, name string) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) })
		err = errors.Join(err, e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAcks: an order for acknowledgements has the kernel send them at once.
func TestAcks(t *testing.T) {
	ns := netns.New(t)
	a := open(t)
	client, server := pair(t, ns, "127.0.0.1")
	s := find(t, ns, a, client)
	before := info(t, server)
	apply(t, ns, a, kernel.Order{Cookie: s.Cookie, Acks: 2})
	deadline := time.Now().Add(5 * time.Second)
	for info(t, server).Segs_in < before.Segs_in+2 {
		if time.Now().After(deadline) {
			t.Fatalf("%d segments came, want %d", info(t, server).Segs_in-before.Segs_in, 2)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestGone: an order for a socket that isn't there is not done, and nothing else happens.
func TestGone(t *testing.T) {
	ns := netns.New(t)
	a := open(t)
	client, _ := pair(t, ns, "127.0.0.1")
	r := apply(t, ns, a, kernel.Order{Cookie: 1 << 60, Cwnd: 5}, kernel.Order{Cookie: find(t, ns, a, client).Cookie, Cwnd: 20})
	if r[0].Done || r[0].Refused != nil || !r[1].Done || r[1].CwndAfter != 20 {
		t.Errorf("%+v", r)
	}
	if got := apply(t, ns, a); got != nil {
		t.Errorf("no orders gave %+v", got)
	}
}

// TestTwoActuators: a second one is another congestion control of another name.
func TestTwoActuators(t *testing.T) {
	ns := netns.New(t)
	a, b := open(t), open(t)
	client, _ := pair(t, ns, "127.0.0.1")
	cookie := find(t, ns, a, client).Cookie
	for i, act := range []*kernel.Actuator{a, b, a} {
		want := uint32(20 + i)
		if r := apply(t, ns, act, kernel.Order{Cookie: cookie, Cwnd: want})[0]; r.CwndAfter != want {
			t.Errorf("actuator %d: %+v", i, r)
		}
	}
}

// TestNothingStays: after Close the kernel has no congestion control of ours.
func TestNothingStays(t *testing.T) {
	before := available(t)
	a, err := kernel.Open()
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if after := available(t); !slices.Equal(before, after) {
		t.Errorf("congestion controls before %q, after %q", before, after)
	}
}

func available(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}
