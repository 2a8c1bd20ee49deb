package lci_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/link"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/lci"
	"mihf.dev/sensors/sensorstest"
	"mihf.dev/sensors/sockdiag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const theLink = mihf.LinkID("other-00000001")

// bed is two namespaces joined by a link, and an estimator of it that the near end's sensor feeds.
type bed struct {
	t         testing.TB
	near, far *netns.NS
	link      *link.TUN
	seen      *sensorstest.Recorder
	est       *lci.Estimator
	flows     sync.WaitGroup
	conns     []net.Conn
}

func newBed(t *testing.T, up, down link.Conditions) *bed {
	t.Helper()
	b := &bed{t: t, near: netns.New(t), far: netns.New(t), est: lci.New(theLink)}
	var err error
	b.link, err = link.OpenTUN(link.TUNConfig{
		Near: link.End{NS: b.near.Handle, Name: "lnk0"}, Far: link.End{NS: b.far.Handle, Name: "lnk0"}, Up: up, Down: down,
	})
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.link.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, ns := range []*netns.NS{b.near, b.far} { // room for the longest way
		b.must(ns.Do(func() error {
			return errors.Join(sysctl("net/ipv4/tcp_wmem", "4096 65536 33554432"), sysctl("net/ipv4/tcp_rmem", "4096 131072 33554432"))
		}))
	}
	b.near.AddAddr("lnk0", "10.9.0.1/24", 0, 0)
	b.far.AddAddr("lnk0", "10.9.0.2/24", 0, 0)
	b.seen = sensorstest.Start(t, sockdiag.New(sockdiag.Options{
		Netns: b.near.Handle,
		Addresses: func() map[netip.Addr]mihf.LinkID {
			return map[netip.Addr]mihf.LinkID{netip.MustParseAddr("10.9.0.1"): theLink}
		},
	}))
	t.Cleanup(func() {
		for _, c := range b.conns {
			_ = c.Close()
		}
		b.flows.Wait()
	})
	return b
}

// sysctl sets what is the namespace's own of the calling thread.
func sysctl(name, value string) error {
	return os.WriteFile("/proc/thread-self/root/proc/sys/"+name, []byte(value), 0)
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// needs skips the test where the kernel has no such congestion control.
func needs(t *testing.T, control string) {
	t.Helper()
	have, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+control+" ") {
		t.Skipf("the kernel has no congestion control %s, only %s", control, strings.TrimSpace(string(have)))
	}
}

// load has one end of a new connection send as fast as it may, by a congestion control.
func (b *bed) load(control string, up bool) {
	b.t.Helper()
	set := func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, control) }); e != nil {
			return e
		}
		return err
	}
	var l net.Listener
	lc := net.ListenConfig{Control: set}
	b.must(b.far.Do(func() (err error) { l, err = lc.Listen(b.t.Context(), "tcp", "10.9.0.2:0"); return }))
	defer func() { _ = l.Close() }()
	var near net.Conn
	d := net.Dialer{Timeout: time.Minute, Control: set}
	b.must(b.near.Do(func() (err error) { near, err = d.DialContext(b.t.Context(), "tcp", l.Addr().String()); return }))
	far, err := l.Accept()
	b.must(err)
	b.conns = append(b.conns, near, far)
	b.greet(near, far)
	from, to := near, far
	if !up {
		from, to = far, near
	}
	b.flows.Go(func() { _, _ = io.Copy(io.Discard, to) })
	b.flows.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			if _, err := from.Write(buf); err != nil {
				return
			}
		}
	})
}

// greet has both ends exchange some octets, as applications do first: where one only receives then, this is what its
// RTT is measured by, and on a busy machine some are late.
func (b *bed) greet(near, far net.Conn) {
	b.t.Helper()
	buf := make([]byte, 1)
	for range 15 {
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			_, err := way[0].Write(buf)
			b.must(err)
			_, err = io.ReadFull(way[1], buf)
			b.must(err)
		}
	}
}

// watch feeds the estimator for a time, and returns what is known then.
func (b *bed) watch(d time.Duration) *mihf.LCI {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b.feed()
	}
	return b.est.Now(clock.Boot().Now())
}

func (b *bed) feed() {
	for _, o := range b.seen.Drain() {
		if o.Kind == mihf.ObsFlow {
			b.est.Flow(o.At, o.At, o.Flow)
		}
	}
	b.est.Advance(clock.Boot().Now())
}
