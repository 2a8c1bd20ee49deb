package rtnl

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

var cmpAll = cmp.Options{
	cmp.AllowUnexported(linkInfo{}, routeInfo{}, hop{}, hint{}, linkHint{}, answer{}),
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
}

// build puts a message together from its header and attributes.
func build(header []byte, attrs ...[]byte) []byte {
	b := append([]byte(nil), header...)
	for _, a := range attrs {
		b = append(b, a...)
	}
	return b
}

func attr(typ int, v []byte) []byte { return nl.NewRtAttr(typ, v).Serialize() }
func u32(v uint32) []byte           { return nl.Uint32Attr(v) }
func addr(s string) []byte          { return netip.MustParseAddr(s).AsSlice() }

// testIndex is the ifindex in all messages.
const testIndex = 7

func ifinfo(family int, flags uint32) []byte {
	m := nl.NewIfInfomsg(family)
	m.Index, m.Flags, m.Type = testIndex, flags, unix.ARPHRD_ETHER
	return m.Serialize()
}

func ifaddr(family, bits int, flags, scope uint8) []byte {
	m := nl.NewIfAddrmsg(family)
	m.Index, m.Prefixlen, m.Flags, m.Scope = testIndex, uint8(bits), flags, scope
	return m.Serialize()
}

func rtmsg(family, bits int, table uint8, flags uint32) []byte {
	m := &nl.RtMsg{RtMsg: unix.RtMsg{
		Family: uint8(family), Dst_len: uint8(bits), Table: table, Type: unix.RTN_UNICAST, Flags: flags,
	}}
	return append([]byte(nil), m.Serialize()...)
}

func nexthop(index int, flags byte, attrs ...[]byte) []byte {
	b := build(make([]byte, unix.SizeofRtNexthop), attrs...)
	order.PutUint16(b, uint16(len(b)))
	b[2] = flags
	order.PutUint32(b[4:], uint32(index))
	return b
}

func cacheinfo(ticks int32) []byte {
	b := make([]byte, unix.SizeofRtMsg+20)
	order.PutUint32(b[8:], uint32(ticks))
	return attr(unix.RTA_CACHEINFO, b)
}

var mac = []byte{2, 0, 0, 0, 0, 0xa}

func TestDecodeLink(t *testing.T) {
	kind := nl.NewRtAttr(unix.IFLA_LINKINFO|unix.NLA_F_NESTED, nil)
	kind.AddRtAttr(unix.IFLA_INFO_KIND, nl.NonZeroTerminated("veth"))
	for _, tc := range []struct {
		name string
		msg  []byte
		want linkInfo
		err  error
	}{
		{
			name: "all of it",
			msg: build(ifinfo(unix.AF_UNSPEC, unix.IFF_UP|unix.IFF_LOWER_UP),
				attr(unix.IFLA_IFNAME, nl.ZeroTerminated("w\xff0")), attr(unix.IFLA_ADDRESS, mac),
				attr(unix.IFLA_PERM_ADDRESS, []byte{2, 0, 0, 0, 0, 0xb}), attr(unix.IFLA_OPERSTATE, []byte{6}),
				attr(unix.IFLA_MTU, u32(1500)), attr(unix.IFLA_MASTER, u32(3)), kind.Serialize(), attr(999, []byte{1})),
			want: linkInfo{
				index: 7, name: "w\xff0", kind: "veth", hwType: unix.ARPHRD_ETHER, flags: unix.IFF_UP | unix.IFF_LOWER_UP,
				oper: mihf.OperUp, addr: "02:00:00:00:00:0a", perm: "02:00:00:00:00:0b", mtu: 1500, master: 3,
			},
		},
		{
			name: "a port leaves its bridge", msg: ifinfo(unix.AF_BRIDGE, 0),
			want: linkInfo{family: unix.AF_BRIDGE, index: 7, hwType: unix.ARPHRD_ETHER},
		},
		{
			name: "no hardware address: a tunnel's IP address, zeros", want: linkInfo{index: 7, hwType: unix.ARPHRD_ETHER},
			msg: build(ifinfo(0, 0), attr(unix.IFLA_ADDRESS, addr("10.0.0.1")), attr(unix.IFLA_PERM_ADDRESS, make([]byte, 6))),
		},
		{
			name: "an operational state that is not known", msg: build(ifinfo(0, 0), attr(unix.IFLA_OPERSTATE, []byte{99})),
			want: linkInfo{index: 7, hwType: unix.ARPHRD_ETHER},
		},
		{
			name: "to another namespace", msg: build(ifinfo(0, 0), attr(unix.IFLA_NEW_NETNSID, u32(1))),
			want: linkInfo{index: 7, hwType: unix.ARPHRD_ETHER, moved: true},
		},
		{name: "empty", err: errShort},
		{name: "operstate without a value", msg: build(ifinfo(0, 0), attr(unix.IFLA_OPERSTATE, nil)), err: errAttr},
		{name: "short MTU", msg: build(ifinfo(0, 0), attr(unix.IFLA_MTU, []byte{1, 2})), err: errAttr},
		{name: "attribute longer than the message", msg: build(ifinfo(0, 0), []byte{9, 0, 3, 0, 1}), err: errAttr},
		{name: "attribute shorter than its header", msg: build(ifinfo(0, 0), []byte{3, 0, 3, 0}), err: errAttr},
	} {
		got, err := decodeLink(tc.msg)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.err)
		}
		if diff := cmp.Diff(tc.want, got, cmpAll); diff != "" && tc.err == nil {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestDecodeAddr(t *testing.T) {
	v6 := attr(unix.IFA_ADDRESS, addr("2001:db8::1"))
	p6 := netip.MustParsePrefix("2001:db8::1/64")
	for _, tc := range []struct {
		name string
		msg  []byte
		want mihf.Address
		err  error
	}{
		{
			name: "IPv4", want: mihf.Address{Prefix: netip.MustParsePrefix("10.0.0.1/24")},
			msg: build(ifaddr(unix.AF_INET, 24, unix.IFA_F_PERMANENT, 0), attr(unix.IFA_ADDRESS, addr("10.0.0.1")),
				attr(unix.IFA_LOCAL, addr("10.0.0.1"))),
		},
		{
			name: "point to point: our end", want: mihf.Address{Prefix: netip.MustParsePrefix("10.0.0.1/32")},
			msg: build(ifaddr(unix.AF_INET, 32, 0, 0), attr(unix.IFA_ADDRESS, addr("10.9.9.9")), attr(unix.IFA_LOCAL, addr("10.0.0.1"))),
		},
		{
			name: "secondary is not temporary in IPv4", want: mihf.Address{Prefix: netip.MustParsePrefix("10.0.0.1/24")},
			msg: build(ifaddr(unix.AF_INET, 24, unix.IFA_F_SECONDARY, 0), attr(unix.IFA_LOCAL, addr("10.0.0.1"))),
		},
		{name: "tentative", msg: build(ifaddr(unix.AF_INET6, 64, unix.IFA_F_TENTATIVE, 0), v6), want: mihf.Address{Prefix: p6, Tentative: true}},
		{name: "optimistic", msg: build(ifaddr(unix.AF_INET6, 64, unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC, 0), v6), want: mihf.Address{Prefix: p6}},
		{name: "duplicate", msg: build(ifaddr(unix.AF_INET6, 64, unix.IFA_F_DADFAILED, 0), v6), want: mihf.Address{Prefix: p6, Tentative: true}},
		{
			name: "deprecated and temporary, by the long flags", want: mihf.Address{Prefix: p6, Deprecated: true, Temporary: true},
			msg: build(ifaddr(unix.AF_INET6, 64, 0, 0), v6, attr(unix.IFA_FLAGS, u32(unix.IFA_F_DEPRECATED|unix.IFA_F_TEMPORARY))),
		},
		{
			name: "link-local", want: mihf.Address{Prefix: netip.MustParsePrefix("fe80::1/64"), LinkLocal: true},
			msg: build(ifaddr(unix.AF_INET6, 64, 0, unix.RT_SCOPE_LINK), attr(unix.IFA_ADDRESS, addr("fe80::1"))),
		},
		{name: "empty", err: errShort},
		{name: "wrong family", msg: build(ifaddr(unix.AF_INET6, 64, 0, 0), attr(unix.IFA_LOCAL, addr("10.0.0.1"))), err: errAttr},
	} {
		_, got, err := decodeAddr(tc.msg)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.err)
		}
		if diff := cmp.Diff(tc.want, got, cmpAll); diff != "" && tc.err == nil {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	for _, msg := range [][]byte{
		ifaddr(unix.AF_INET, 24, 0, 0), // without an address
		build(ifaddr(unix.AF_INET, 33, 0, 0), attr(unix.IFA_LOCAL, addr("10.0.0.1"))),
	} {
		if _, got, err := decodeAddr(msg); err == nil {
			t.Errorf("% x was read as %v", msg, got)
		}
	}
}

func TestDecodeRoute(t *testing.T) {
	any4, any6 := netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")
	for _, tc := range []struct {
		name string
		msg  []byte
		want routeInfo
		err  error
	}{
		{
			name: "default",
			msg: build(rtmsg(unix.AF_INET, 0, 254, 0), attr(unix.RTA_GATEWAY, addr("10.0.0.2")), attr(unix.RTA_OIF, u32(7)),
				attr(unix.RTA_PRIORITY, u32(100)), attr(unix.RTA_PREFSRC, addr("10.0.0.1"))),
			want: routeInfo{
				dst: any4, table: 254, metric: 100, source: netip.MustParseAddr("10.0.0.1"),
				hops: []hop{{index: 7, gateway: netip.MustParseAddr("10.0.0.2")}},
			},
		},
		{
			name: "table above 255, IPv4 via IPv6, cloned",
			msg: build(rtmsg(unix.AF_INET, 24, 252, unix.RTM_F_CLONED), attr(unix.RTA_DST, addr("10.9.0.0")), attr(unix.RTA_TABLE, u32(51820)),
				attr(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0}, addr("fe80::2")...)), attr(unix.RTA_OIF, u32(7))),
			want: routeInfo{
				dst: netip.MustParsePrefix("10.9.0.0/24"), table: 51820, cloned: true,
				hops: []hop{{index: 7, gateway: netip.MustParseAddr("fe80::2")}},
			},
		},
		{
			name: "many ways, one dead",
			msg: build(rtmsg(unix.AF_INET, 0, 254, 0), attr(unix.RTA_MULTIPATH, build(
				nexthop(7, 0, attr(unix.RTA_GATEWAY, addr("10.0.0.2"))), nexthop(8, unix.RTNH_F_DEAD)))),
			want: routeInfo{dst: any4, table: 254, hops: []hop{{index: 7, gateway: netip.MustParseAddr("10.0.0.2")}, {index: 8, dead: true}}},
		},
		{
			name: "expires in 3 s", msg: build(rtmsg(unix.AF_INET6, 0, 254, 0), attr(unix.RTA_OIF, u32(7)), cacheinfo(300)),
			want: routeInfo{ipv6: true, dst: any6, table: 254, hops: []hop{{index: 7}}, expiring: true, expires: 3 * time.Second},
		},
		{
			name: "expired 6 s ago", msg: build(rtmsg(unix.AF_INET6, 0, 254, 0), attr(unix.RTA_OIF, u32(7)), cacheinfo(-600)),
			want: routeInfo{ipv6: true, dst: any6, table: 254, hops: []hop{{index: 7}}, expiring: true, expires: -6 * time.Second},
		},
		{
			name: "never expires", msg: build(rtmsg(unix.AF_INET6, 0, 254, 0), cacheinfo(0)),
			want: routeInfo{ipv6: true, dst: any6, table: 254},
		},
		{name: "empty", err: errShort},
		{name: "short expiry", msg: build(rtmsg(unix.AF_INET, 0, 0, 0), attr(unix.RTA_CACHEINFO, u32(1))), err: errAttr},
		{name: "wrong family", msg: build(rtmsg(unix.AF_INET6, 32, 0, 0), attr(unix.RTA_DST, addr("10.0.0.0"))), err: errAttr},
		{name: "way longer than the attribute", msg: build(rtmsg(unix.AF_INET, 0, 0, 0), attr(unix.RTA_MULTIPATH, []byte{99, 0, 0, 0, 7, 0, 0, 0})), err: errAttr},
		{name: "empty via", msg: build(rtmsg(unix.AF_INET, 0, 0, 0), attr(unix.RTA_VIA, nil)), err: errAttr},
	} {
		tc.want.kind = unix.RTN_UNICAST
		got, err := decodeRoute(tc.msg)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.err)
		}
		if diff := cmp.Diff(tc.want, got, cmpAll); diff != "" && tc.err == nil {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	for _, msg := range [][]byte{rtmsg(unix.AF_INET, 33, 0, 0), rtmsg(unix.AF_BRIDGE, 0, 0, 0)} {
		if got, err := decodeRoute(msg); err == nil {
			t.Errorf("% x was read as %v", msg, got)
		}
	}
}

func TestDecodeHint(t *testing.T) {
	w, _ := newWatchSet([]netip.Addr{netip.MustParseAddr("10.9.0.7")}, netip.MustParseAddr("198.41.0.4"))
	moved := build(ifinfo(0, 0), attr(unix.IFLA_NEW_NETNSID, u32(1)))
	dst := func(s string) []byte {
		p := netip.MustParsePrefix(s)
		return build(rtmsg(unix.AF_INET, p.Bits(), 254, 0), attr(unix.RTA_DST, p.Addr().AsSlice()))
	}
	for _, tc := range []struct {
		name string
		typ  uint16
		data []byte
		want hint
	}{
		{"new link", unix.RTM_NEWLINK, ifinfo(0, 0), hint{index: 7, linkHint: linkHint{link: true, alive: true}}},
		{"deleted", unix.RTM_DELLINK, ifinfo(0, 0), hint{index: 7, linkHint: linkHint{link: true, deleted: true}}},
		{"no port any more", unix.RTM_DELLINK, ifinfo(unix.AF_BRIDGE, 0), hint{index: 7, linkHint: linkHint{link: true, alive: true}}},
		{"moved", unix.RTM_DELLINK, moved, hint{index: 7, linkHint: linkHint{link: true, deleted: true, moved: true}}},
		{
			"address", unix.RTM_DELADDR, build(ifaddr(unix.AF_INET, 24, 0, 0), attr(unix.IFA_LOCAL, addr("10.0.0.1"))),
			hint{index: 7, linkHint: linkHint{addrs: true}},
		},
		{"default route", unix.RTM_DELROUTE, rtmsg(unix.AF_INET, 0, 254, 0), hint{defaults: true, resolve: true}},
		{"cache entry", unix.RTM_NEWROUTE, rtmsg(unix.AF_INET, 0, 254, unix.RTM_F_CLONED), hint{}},
		{"route to a peer", unix.RTM_NEWROUTE, dst("10.9.0.0/24"), hint{resolve: true}},
		{"route to the probe", unix.RTM_NEWROUTE, dst("128.0.0.0/1"), hint{resolve: true}},
		{"foreign route", unix.RTM_NEWROUTE, dst("10.8.0.0/24"), hint{}},
		{"rule", unix.RTM_DELRULE, nil, hint{resolve: true}},
		{"nexthop", rtmDelNexthop, nil, hint{defaults: true, resolve: true}},
		{"nothing", unix.NLMSG_NOOP, nil, hint{}},
	} {
		got, err := decodeHint(tc.typ, tc.data, w)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got, cmpAll); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, err := decodeHint(unix.RTM_NEWNEIGH, nil, w); err == nil {
		t.Error("a message that was not subscribed to is no error")
	}
}

// FuzzDecode feeds a datagram to all decoders, as both sockets do.
func FuzzDecode(f *testing.F) {
	header := func(typ uint16, data []byte) []byte {
		req := nl.NewNetlinkRequest(int(typ), 0)
		req.AddRawData(data)
		return req.Serialize()
	}
	f.Add([]byte{})
	f.Add(header(unix.RTM_NEWLINK, build(ifinfo(0, 1), attr(unix.IFLA_IFNAME, nl.ZeroTerminated("v0")), attr(unix.IFLA_ADDRESS, mac))))
	f.Add(header(unix.RTM_DELLINK, build(ifinfo(unix.AF_BRIDGE, 1), attr(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, []byte("tun"))))))
	f.Add(header(unix.RTM_NEWADDR, build(ifaddr(unix.AF_INET6, 64, 0, 0), attr(unix.IFA_ADDRESS, addr("2001:db8::1")), attr(unix.IFA_FLAGS, u32(1)))))
	f.Add(header(unix.RTM_NEWROUTE, build(rtmsg(unix.AF_INET, 0, 254, 0), attr(unix.RTA_MULTIPATH, nexthop(7, 0, attr(unix.RTA_GATEWAY, addr("10.0.0.2")))), cacheinfo(5))))
	f.Add(append(header(unix.RTM_NEWRULE, nil), header(rtmDelNexthop, nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, _ := newWatchSet([]netip.Addr{netip.MustParseAddr("10.9.0.7")})
		st := newState("", 0, func(*linkInfo) device { return device{} })
		err := messages(b, func(m message) error {
			if h, err := decodeHint(m.typ, m.data, w); err == nil && h.index < 0 {
				t.Errorf("ifindex %d", h.index)
			}
			if l, err := decodeLink(m.data); err == nil {
				st.setLink(1, l, false)
			}
			if i, a, err := decodeAddr(m.data); err == nil {
				if !a.Prefix.IsValid() {
					t.Error("an address that is none")
				}
				st.setAddrs(i, []mihf.Address{a})
			}
			if r, err := decodeRoute(m.data); err == nil {
				st.setDefaults(1, []routeInfo{r}, false)
			}
			return nil
		})
		if err == nil {
			st.flush(1)
		}
	})
}
