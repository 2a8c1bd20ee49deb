package wifi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// A lane is a station that walks away from the first access point, and what flows to it. All
// lanes are in one guest; each has a subnet of its own.
type lane struct {
	radio medium.Radio
	name  string
	link  mihf.LinkID
	n     int // of its subnet

	pace float64       // dB/s
	rtt  time.Duration // of its flows, the air's own delay aside
	seed uint64        // of the shadowing
}

// What walks have in common.
const (
	standing    = 5 * time.Second // before the walk
	fromDBm     = -60.0
	toDBm       = -104.0 // nothing comes through from -97 dBm on
	shadowDB    = 2.0    // standard deviation
	shadowLasts = time.Second
	cqmDBm      = -80
	slowest     = 1.0 // dB/s
	fastest     = 6.0
	shortestRTT = 20 * time.Millisecond
	longestRTT  = 200 * time.Millisecond
)

// walk is the signal of the lane: it stands still, then walks away.
func (l *lane) walk() medium.Signal {
	length := standing + time.Duration((fromDBm-toDBm)/l.pace*float64(time.Second))
	s := medium.Script{{DBm: fromDBm}, {At: standing, DBm: fromDBm}, {At: length, DBm: toDBm}, {At: length, Silent: true}}
	return medium.NewShadow(s, shadowDB, shadowLasts, time.Minute, l.seed)
}

// draw gives a lane the nth of so many walks: paces evenly from slow to fast, the rest by seed.
func (l *lane) draw(nth, of int) {
	l.pace = slowest + (fastest-slowest)*float64(nth)/float64(max(1, of-1))
	l.seed = uint64(nth + 1)
	random := rand.New(rand.NewPCG(l.seed, 3))
	l.rtt = shortestRTT + time.Duration(random.Int64N(int64(longestRTT-shortestRTT)))
}

func (l *lane) near() string { return fmt.Sprintf("10.9.%d.2", l.n) }
func (l *lane) far() string  { return fmt.Sprintf("10.9.%d.1", l.n) }

// lanes starts an access point, a daemon, and stations that are attached to it.
func startLanes(t *testing.T, s setup) (*daemon, []*lane) {
	t.Helper()
	b := start(t)
	b.moveFar()
	// An interface answers for its own addresses alone: all stations are one host.
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	d := b.daemonWith(s)
	d.accessPoint(ap1, 1, network{})
	var lanes []*lane
	for _, r := range []medium.Radio{station, more, more + 1, more + 2, more + 3, more + 4} {
		l := &lane{radio: r, name: ifname(r), n: int(r), link: d.linkOf(ifname(r))}
		lanes = append(lanes, l)
		b.Join(r, ap1, medium.Steady(-55))
		d.supplicantOn(l.name, network{})
		d.home.AddAddr(l.name, l.near()+"/24", 0, 0)
		d.far.AddAddr(ifname(ap1), l.far()+"/24", 0, 0)
		t.Cleanup(func() { d.home.DelAddr(l.name, l.near()+"/24") })
	}
	d.attached(lanes)
	return d, lanes
}

// attached waits until all lanes are at the access point.
func (d *daemon) attached(lanes []*lane) {
	d.t.Helper()
	for _, l := range lanes {
		d.eventually(l.name+" attached", func() bool {
			s, err := d.client().Parameters(d.t.Context(), l.link)
			return err == nil && s.Up
		})
	}
}

// datagrams opens a UDP socket of a lane: at the station, or behind the access point.
func (d *daemon) datagrams(ctx context.Context, l *lane, far bool) *net.UDPConn {
	d.t.Helper()
	var c net.PacketConn
	open := func() (err error) {
		address := l.near()
		set := func(fd uintptr) error { return unix.BindToDevice(int(fd), l.name) }
		if far {
			address, set = l.far(), func(uintptr) error { return nil }
		}
		config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
			if failed := raw.Control(func(fd uintptr) { err = set(fd) }); failed != nil {
				return failed
			}
			return err
		}}
		c, err = config.ListenPacket(ctx, "udp4", address+":0")
		return err
	}
	var err error
	if far {
		err = d.far.Do(open)
	} else {
		err = open()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return c.(*net.UDPConn)
}
