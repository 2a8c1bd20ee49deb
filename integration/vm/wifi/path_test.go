package wifi

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A flow that was frozen when its link was lost goes on when its path is usable, not at the
// association: with WPA2, where the address is given late as a slow DHCP server does, where
// duplicate address detection takes its time, and where a router advertisement alone gives
// address and route. What a DHCP client would set, the test sets.
func TestPathUsable(t *testing.T) {
	const slow = 4 * time.Second
	for name, tc := range map[string]struct {
		spec mihf.FlowSpec
		give func(d *daemon, home *netns.NS) // the address and the route
		ipv6 bool
		wait time.Duration // from Link_Up to the usable path, at least
	}{
		"slow DHCP": {
			give: func(_ *daemon, home *netns.NS) {
				time.Sleep(slow)
				home.AddAddr(ifname(station), "192.0.2.2/24", 0, 0)
				home.AddRoute(netns.Route{Dst: "0.0.0.0/0", Dev: ifname(station), Via: "192.0.2.1"})
			},
			wait: slow,
		},
		"duplicate address detection": {
			give: func(_ *daemon, home *netns.NS) {
				home.AddAddr(ifname(station), "2001:db8::2/64", 0, 0) // tentative for a second
				home.AddRoute(netns.Route{Dst: "::/0", Dev: ifname(station), Via: "fe80::1"})
			},
			ipv6: true,
			wait: 500 * time.Millisecond,
		},
		"router advertisement": {
			give: func(d *daemon, _ *netns.NS) {
				time.Sleep(time.Second)
				d.advertise()
			},
			ipv6: true,
			wait: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.moveFar()
			b.far.AddAddr(ifname(ap1), "fe80::1/64", 0, 0)
			d := b.daemon()
			n := network{passphrase: "correct horse"}
			d.attach(-50, n)
			flows := d.flows(mihf.FlowSpec{Link: d.link, RTT: 50 * time.Millisecond, LateFreeze: true, Continuity: mihf.ContinuityRebinds})
			d.Join(station, ap1, medium.Silence{})
			d.await(mihf.LinkDown)
			for i, f := range flows {
				taken(t, d.fronts[i].name+": Freeze", f.freeze)
			}
			d.Join(station, ap1, medium.Steady(-50))
			up := d.awaitNth(mihf.LinkUp, 2)
			tc.give(d, d.home)
			usable := d.await(mihf.PathUsable)
			for i, f := range flows {
				u := taken(t, d.fronts[i].name+": Unfreeze", f.unfreeze)
				t.Logf("%s: usable %v and thawed %v after Link_Up", d.fronts[i].name, usable[i].had.Sub(up[i].had), u.at.Sub(up[i].had))
				if u.Cause != mihf.UnfreezePathUsable || usable[i].Path.IPv6 != tc.ipv6 {
					t.Errorf("%s: thawed for %v, IPv6 %v", d.fronts[i].name, u.Cause, usable[i].Path.IPv6)
				}
				if u.at.Sub(up[i].had) < tc.wait {
					t.Errorf("%s: thawed %v after Link_Up", d.fronts[i].name, u.at.Sub(up[i].had))
				}
			}
		})
	}
}

// advertise sends one router advertisement (RFC 4861, section 4.2) from the access point: a
// default route for half an hour and a prefix to make an address in.
func (d *daemon) advertise() {
	d.t.Helper()
	prefix := netip.MustParseAddr("2001:db8:1::").As16()
	const autonomous, onLink = 0x40, 0x80
	message := []byte{134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0}
	message = append(message, 3, 4, 64, onLink|autonomous)
	for range 2 { // valid and preferred
		message = binary.BigEndian.AppendUint32(message, 3600)
	}
	message = append(append(message, 0, 0, 0, 0), prefix[:]...)
	err := d.far.Do(func() error {
		s, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(s) }()
		// Less could have come from beyond a router.
		if err := unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255); err != nil {
			return err
		}
		to := &unix.SockaddrInet6{ZoneId: uint32(d.far.Index(ifname(ap1))), Addr: netip.MustParseAddr("ff02::1").As16()}
		return unix.Sendto(s, message, 0, to)
	})
	if err != nil {
		d.t.Fatal("a router advertisement:", err)
	}
	d.t.Logf("advertised at %v", clock.Boot().Now())
}
