package sockdiag_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/link"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/sensors"
	"mihf.dev/sensors/sensorstest"
	"mihf.dev/sensors/sockdiag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lnk   = mihf.LinkID("other-00000001")
	delay = 20 * time.Millisecond // of each direction
)

// bed is two namespaces joined by a link with a delay, and the sensor in the near one.
type bed struct {
	t         *testing.T
	near, far *netns.NS
	link      *link.TUN
	sensor    *sockdiag.Sensor
	seen      *sensorstest.Recorder
}

func newBed(t *testing.T, c link.Conditions, change func(*sockdiag.Options)) *bed {
	t.Helper()
	b := &bed{t: t, near: netns.New(t), far: netns.New(t)}
	var err error
	b.link, err = link.OpenTUN(link.TUNConfig{
		Near: link.End{NS: b.near.Handle, Name: "lnk0"}, Far: link.End{NS: b.far.Handle, Name: "lnk0"}, Up: c, Down: c,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.link.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, a := range []string{"10.9.0.1/24", "fd00::1/64"} {
		b.near.AddAddr("lnk0", a, 0, 0)
	}
	for _, a := range []string{"10.9.0.2/24", "fd00::2/64"} {
		b.far.AddAddr("lnk0", a, 0, 0)
	}
	for _, ns := range []*netns.NS{b.near, b.far} {
		for tentative := true; tentative; time.Sleep(time.Millisecond) {
			list, err := ns.NL.AddrList(ns.Link("lnk0"), netlink.FAMILY_V6)
			b.must(err)
			tentative = slices.ContainsFunc(list, func(a netlink.Addr) bool { return a.Flags&unix.IFA_F_TENTATIVE != 0 })
		}
	}
	opt := sockdiag.Options{
		Netns: b.near.Handle, Poll: 50 * time.Millisecond,
		Addresses: func() map[netip.Addr]mihf.LinkID {
			return map[netip.Addr]mihf.LinkID{netip.MustParseAddr("10.9.0.1"): lnk, netip.MustParseAddr("fd00::1"): lnk}
		},
	}
	if change != nil {
		change(&opt)
	}
	b.sensor = sockdiag.New(opt)
	b.seen = sensorstest.Start(t, b.sensor)
	return b
}

// connect makes a connection from one namespace to a server's address in another, and returns both ends. The server
// listens there, or at any address of both families.
func (b *bed) connect(from *netns.NS, to *netns.NS, server string, anywhere bool) (near, far net.Conn) {
	b.t.Helper()
	var l net.Listener
	var lc net.ListenConfig
	listen := net.JoinHostPort(server, "0")
	if anywhere {
		listen = ":0"
	}
	b.must(to.Do(func() (err error) { l, err = lc.Listen(b.t.Context(), "tcp", listen); return }))
	defer func() { _ = l.Close() }()
	d := net.Dialer{Timeout: time.Minute}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	b.must(from.Do(func() (err error) {
		near, err = d.DialContext(b.t.Context(), "tcp", net.JoinHostPort(server, port))
		return
	}))
	far, err := l.Accept()
	b.must(err)
	for _, c := range []net.Conn{near, far} {
		b.must(c.SetDeadline(time.Now().Add(time.Minute)))
		b.t.Cleanup(func() { _ = c.Close() })
	}
	return near, far
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func addr(c net.Conn) netip.AddrPort { return c.LocalAddr().(*net.TCPAddr).AddrPort() }

// tuple is a flow as its near end has it.
func tuple(c net.Conn) mihf.Endpoints {
	return mihf.Endpoints{Protocol: 6, Local: addr(c), Remote: c.RemoteAddr().(*net.TCPAddr).AddrPort()}
}

func (b *bed) wait(what string, f func(o *mihf.Observation) bool) *mihf.FlowReading {
	b.t.Helper()
	o := b.seen.Wait(b.t, what, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsFlow && f(o) })
	if bad := sensorstest.Check(sockdiag.Name, &o); bad != "" {
		b.t.Error(bad)
	}
	return o.Flow
}

func TestContract(t *testing.T) {
	ns := netns.New(t)
	sensorstest.Contract(t, func(testing.TB) sensors.Sensor { return sockdiag.New(sockdiag.Options{Netns: ns.Handle}) },
		func(o *mihf.Observation) bool {
			return o.Kind == mihf.ObsCondition && o.Condition.Condition == mihf.ConditionOK
		})
}

// The RTT is the link's, over IPv4 and IPv6; a socket that speaks IPv4 from an IPv6 address too.
func TestRTTOfTheLink(t *testing.T) {
	b := newBed(t, link.Conditions{Delay: delay}, nil)
	for _, tc := range []struct{ name, server string }{{"IPv4", "10.9.0.2"}, {"IPv6", "fd00::2"}} {
		near, _ := b.connect(b.near, b.far, tc.server, false)
		r := b.wait(tc.name, func(o *mihf.Observation) bool { return o.Flow.Endpoints == tuple(near) && o.Link == lnk })
		if rtt, ok := r.RTT.Get(); !ok || rtt < 2*delay || r.CwndBytes.Or(0) == 0 || r.PathMTUBytes.Or(0) != 1500 {
			t.Errorf("%s: %+v, want an RTT of at least %v", tc.name, *r, 2*delay)
		}
		if r.DeliveryRateBPS.Known() {
			t.Errorf("%s: a rate of a flow that sent nothing: %+v", tc.name, *r)
		}
	}
	_, near := b.connect(b.far, b.near, "10.9.0.1", true)
	r := b.wait("the accepted connection", func(o *mihf.Observation) bool { return o.Link == lnk && o.Flow.Local.Port() == addr(near).Port() })
	if !r.Local.Addr().Is4() {
		t.Errorf("local address %v, want it as IPv4", r.Local)
	}
}

// pump writes until the connection closes, or the test ends.
func (b *bed) pump(c net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1<<15)
		for {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}()
	b.t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
}

func (b *bed) drain(c net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, c)
	}()
	b.t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
}

// Under load: the rate is the link's, the RTT has its queue, MinRTT has not; and the receiving side sees the RTT
// although it sends nothing.
func TestLoad(t *testing.T) {
	b := newBed(t, link.Conditions{RateBPS: 20e6, Delay: delay, QueueBytes: 100_000}, nil)
	up, sink := b.connect(b.near, b.far, "10.9.0.2", false)
	b.drain(sink)
	b.pump(up)
	r := b.wait("the rate and the queue", func(o *mihf.Observation) bool {
		f := o.Flow
		rate, known := f.DeliveryRateBPS.Get()
		return f.Endpoints == tuple(up) && known && !f.AppLimited && rate > 10e6 && f.RTT.Or(0) > 2*delay+15*time.Millisecond
	})
	if rate := r.DeliveryRateBPS.Or(0); rate > 25e6 {
		t.Errorf("%.1f Mbit/s over a link of 20", rate/1e6)
	}
	if least := r.MinRTT.Or(0); least < 2*delay || least > r.RTT.Or(0) || r.Busy.Or(0) == 0 || r.AckedBytes.Or(0) == 0 || r.SentSegments.Or(0) == 0 {
		t.Errorf("%+v", *r)
	}
	down, source := b.connect(b.near, b.far, "10.9.0.2", false)
	b.drain(down)
	b.pump(source)
	r = b.wait("the receiving side's RTT", func(o *mihf.Observation) bool {
		return o.Flow.Endpoints == tuple(down) && o.Flow.ReceiveRTT.Known()
	})
	if rtt := r.ReceiveRTT.Or(0); rtt < 2*delay || rtt > time.Second {
		t.Errorf("the receiving side takes an RTT of %v over a link of %v", rtt, 2*delay)
	}
}

// "Others are not read": the kernel chooses. A watched flow is told of wherever it is, also when it is idle.
func TestKernelChooses(t *testing.T) {
	b := newBed(t, link.Conditions{Delay: delay}, nil)
	lo, _ := b.connect(b.near, b.near, "127.0.0.1", false)
	over, _ := b.connect(b.near, b.far, "10.9.0.2", false)
	b.wait("the flow over the link", func(o *mihf.Observation) bool { return o.Flow.Endpoints == tuple(over) })
	if n := b.counter("mihf_sock_diag_sockets_total"); n > b.counter("mihf_sock_diag_readings_total") {
		t.Errorf("%d sockets read in %d readings, with one on the link", n, b.counter("mihf_sock_diag_readings_total"))
	}
	b.sensor.Watch([]mihf.Endpoints{tuple(lo), {Protocol: 6, Remote: tuple(over).Remote}})
	links := map[mihf.Endpoints]mihf.LinkID{}
	b.wait("both watched flows", func(o *mihf.Observation) bool {
		links[o.Flow.Endpoints] = o.Link
		return len(links) == 2
	})
	if id, ok := links[tuple(lo)]; !ok || id != "" || links[tuple(over)] != lnk {
		t.Errorf("%v", links)
	}
}

// With RegisteredOnly nothing is read but what is watched.
func TestRegisteredOnly(t *testing.T) {
	b := newBed(t, link.Conditions{}, func(o *sockdiag.Options) { o.RegisteredOnly = true })
	one, _ := b.connect(b.near, b.far, "10.9.0.2", false)
	two, _ := b.connect(b.near, b.far, "10.9.0.2", false)
	b.sensor.Watch([]mihf.Endpoints{tuple(two)})
	o := b.seen.Wait(t, "the watched flow", func(o *mihf.Observation) bool { return o.Kind == mihf.ObsFlow })
	if o.Flow.Endpoints != tuple(two) || o.Link != lnk {
		t.Errorf("%v on %q, want %v; %v is not watched", o.Flow.Endpoints, o.Link, tuple(two), tuple(one))
	}
	if n, readings := b.counter("mihf_sock_diag_sockets_total"), b.counter("mihf_sock_diag_readings_total"); n == 0 || n > readings {
		t.Errorf("%d sockets in %d readings", n, readings)
	}
}

func (b *bed) counter(name string) uint64 {
	b.t.Helper()
	for _, c := range b.sensor.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	b.t.Fatalf("no counter %s", name)
	return 0
}

// The kernel takes the largest filter, and chooses by it.
func TestLargestFilter(t *testing.T) {
	b := newBed(t, link.Conditions{}, func(o *sockdiag.Options) { o.RegisteredOnly = true })
	one, _ := b.connect(b.near, b.far, "fd00::2", false)
	watch := []mihf.Endpoints{}
	for i := range 255 {
		watch = append(watch, mihf.Endpoints{
			Protocol: 6, Local: netip.AddrPortFrom(netip.MustParseAddr("2001:db8::1"), uint16(i+1)), Remote: netip.MustParseAddrPort("[2001:db8::2]:443"),
		})
	}
	b.sensor.Watch(append(watch, tuple(one)))
	b.wait("the flow of the last alternative", func(o *mihf.Observation) bool { return o.Flow.Endpoints == tuple(one) })
}
