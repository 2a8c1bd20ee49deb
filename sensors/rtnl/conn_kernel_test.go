package rtnl

import (
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
)

// What another program sends to our socket is not the kernel's word.
func TestKernelStrangersAreIgnored(t *testing.T) {
	ns := netns.New(t)
	read := make(chan struct{})
	s := New(Options{BeforeRead: func() { read <- struct{}{} }})
	c, err := dial(ns.Handle)
	if err != nil {
		t.Fatal(err)
	}
	box := newInbox()
	var wg sync.WaitGroup
	wg.Go(func() { s.read(c, box) })
	<-read
	stranger, err := dial(ns.Handle)
	if err != nil {
		t.Fatal(err)
	}
	var port uint32
	err = c.control(func(fd int) error {
		sa, err := unix.Getsockname(fd)
		if err == nil {
			port = sa.(*unix.SockaddrNetlink).Pid
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fake := make([]byte, unix.SizeofNlMsghdr)
	order.PutUint32(fake, uint32(len(fake)))
	order.PutUint16(fake[4:], unix.RTM_DELRULE)
	err = stranger.control(func(fd int) error {
		return unix.Sendto(fd, fake, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: port})
	})
	if err != nil {
		t.Fatal(err)
	}
	<-read // the message was read and dealt with
	if n := s.count.messages.Load(); n != 0 {
		t.Errorf("%d messages of a stranger were heard", n)
	}
	for _, c := range []*conn{c, stranger} {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if _, err := box.take(); err == nil {
		t.Error("a closed socket is no error of the reader")
	}
}

// One message that cannot be read costs itself only.
func TestMalformedIsCounted(t *testing.T) {
	s := New(Options{})
	box := newInbox()
	s.hear(message{typ: unix.RTM_NEWLINK, data: []byte{1, 2}}, box)
	s.hear(message{typ: 9999}, box)
	s.hear(message{typ: unix.RTM_NEWRULE}, box)
	if n := s.malformed.Count(); n != 2 {
		t.Errorf("%d malformed messages counted, want 2", n)
	}
	if h, _ := box.take(); !h.resolve {
		t.Error("the message after them was lost")
	}
}

// BenchmarkDefaults is what a reading of the default routes costs among 100,000 others.
func BenchmarkDefaults(b *testing.B) {
	ns, far := netns.New(b), netns.New(b)
	ns.Pair("v0", far, "p0")
	ns.Up("v0")
	far.Up("p0")
	ns.AddAddr("v0", "10.0.0.1/24", 0, 0)
	ns.AddRoute(netns.Route{Dst: "0.0.0.0/0", Via: "10.0.0.2", Dev: "v0"})
	ns.AddHostRoutes("v0", netip.MustParseAddr("11.0.0.0"), 100_000)
	k, err := openKernel(ns.Handle)
	if err != nil {
		b.Fatal(err)
	}
	k.malformed = func(err error) { b.Error(err) }
	b.ReportAllocs()
	for b.Loop() {
		routes, err := k.defaults(unix.AF_INET)
		if err != nil || len(routes) != 1 {
			b.Fatal(len(routes), err)
		}
	}
	if err := k.conn.close(); err != nil {
		b.Error(err)
	}
}

// BenchmarkPeer is what one watched peer costs when routes have changed.
func BenchmarkPeer(b *testing.B) {
	ns := netns.New(b)
	k, err := openKernel(ns.Handle)
	if err != nil {
		b.Fatal(err)
	}
	k.malformed = func(err error) { b.Error(err) }
	peer := netip.MustParseAddr("127.0.0.5")
	b.ReportAllocs()
	for b.Loop() {
		if a, err := k.route(peer, false); err != nil || !a.reachable {
			b.Fatal(a, err)
		}
	}
	if err := k.conn.close(); err != nil {
		b.Error(err)
	}
}
