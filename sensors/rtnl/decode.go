package rtnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// linkInfo is what an RTM_NEWLINK or RTM_DELLINK says of a link.
type linkInfo struct {
	family byte // AF_BRIDGE: about the link as a port, not about its being
	index  int
	name   string // arbitrary octets
	kind   string // "" for hardware
	hwType uint16 // ARPHRD_*
	flags  uint32 // IFF_*
	oper   mihf.OperState
	addr   string // "": none, or not a hardware address
	perm   string // permanent address; "": none
	mtu    int
	master int  // ifindex; 0: none
	moved  bool // it goes to another network namespace
}

// hop is one way of a route.
type hop struct {
	index   int
	gateway netip.Addr
	dead    bool
}

// routeInfo is what an RTM_NEWROUTE or RTM_DELROUTE says.
type routeInfo struct {
	ipv6     bool
	dst      netip.Prefix
	kind     byte // RTN_*
	cloned   bool
	table    uint32
	metric   uint32
	source   netip.Addr
	hops     []hop
	expires  time.Duration // until it ends; not above 0: it has; 0 without expiring
	expiring bool
}

var (
	errShort = errors.New("message is too short")
	errAttr  = errors.New("attribute has a wrong length")
)

// order is the kernel's byte order.
var order = binary.NativeEndian

// attributes calls f for each attribute in b, nested flags taken off its type.
func attributes(b []byte, f func(typ uint16, v []byte) error) error {
	for len(b) >= unix.SizeofRtAttr {
		n := int(order.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return errAttr
		}
		typ := order.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		if err := f(typ, b[unix.SizeofRtAttr:n:n]); err != nil {
			return fmt.Errorf("attribute %d: %w", typ, err)
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

func attr32(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, errAttr
	}
	return order.Uint32(v), nil
}

// text is a string attribute up to its first NUL.
func text(v []byte) string {
	for i, c := range v {
		if c == 0 {
			return string(v[:i])
		}
	}
	return string(v)
}

// hardware is the text of a hardware address; tunnels carry IP addresses there, and
// links without one carry zeros.
func hardware(v []byte) string {
	if len(v) < 6 {
		return ""
	}
	for _, c := range v {
		if c != 0 {
			return net.HardwareAddr(v).String()
		}
	}
	return ""
}

func decodeLink(b []byte) (linkInfo, error) {
	if len(b) < unix.SizeofIfInfomsg {
		return linkInfo{}, fmt.Errorf("link: %w", errShort)
	}
	l := linkInfo{
		family: b[0],
		hwType: order.Uint16(b[2:]),
		index:  int(int32(order.Uint32(b[4:]))),
		flags:  order.Uint32(b[8:]),
	}
	if l.index <= 0 {
		return linkInfo{}, fmt.Errorf("link: index %d", l.index)
	}
	err := attributes(b[unix.SizeofIfInfomsg:], func(typ uint16, v []byte) error {
		var n uint32
		var err error
		switch typ {
		case unix.IFLA_IFNAME:
			l.name = text(v)
		case unix.IFLA_ADDRESS:
			l.addr = hardware(v)
		case unix.IFLA_PERM_ADDRESS:
			l.perm = hardware(v)
		case unix.IFLA_OPERSTATE:
			if len(v) != 1 {
				return errAttr
			}
			if v[0] <= byte(mihf.OperUp) {
				l.oper = mihf.OperState(v[0])
			}
		case unix.IFLA_MTU:
			n, err = attr32(v)
			l.mtu = int(n)
		case unix.IFLA_MASTER:
			n, err = attr32(v)
			l.master = int(int32(n))
		case unix.IFLA_NEW_NETNSID:
			l.moved = true
		case unix.IFLA_LINKINFO:
			return attributes(v, func(typ uint16, v []byte) error {
				if typ == unix.IFLA_INFO_KIND {
					l.kind = text(v)
				}
				return nil
			})
		}
		return err
	})
	if err != nil {
		return linkInfo{}, fmt.Errorf("link %d: %w", l.index, err)
	}
	return l, nil
}

// decodeAddr returns the address and the ifindex of its link.
func decodeAddr(b []byte) (int, mihf.Address, error) {
	if len(b) < unix.SizeofIfAddrmsg {
		return 0, mihf.Address{}, fmt.Errorf("address: %w", errShort)
	}
	family, bits, flags, scope := b[0], int(b[1]), uint32(b[2]), b[3]
	index := int(int32(order.Uint32(b[4:])))
	var local, remote netip.Addr
	err := attributes(b[unix.SizeofIfAddrmsg:], func(typ uint16, v []byte) error {
		var err error
		switch typ {
		case unix.IFA_LOCAL:
			local, err = ip(family, v)
		case unix.IFA_ADDRESS: // the far end of a point-to-point link where IFA_LOCAL is there
			remote, err = ip(family, v)
		case unix.IFA_FLAGS: // all flags; the header has the first eight only
			flags, err = attr32(v)
		}
		return err
	})
	if err != nil {
		return 0, mihf.Address{}, fmt.Errorf("address of link %d: %w", index, err)
	}
	if !local.IsValid() {
		local = remote
	}
	p := netip.PrefixFrom(local, bits)
	if !p.IsValid() || index <= 0 {
		return 0, mihf.Address{}, fmt.Errorf("address of link %d: no valid prefix", index)
	}
	return index, mihf.Address{
		Prefix: p,
		Tentative: flags&unix.IFA_F_DADFAILED != 0 ||
			flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC) == unix.IFA_F_TENTATIVE,
		Deprecated: flags&unix.IFA_F_DEPRECATED != 0,
		Temporary:  family == unix.AF_INET6 && flags&unix.IFA_F_TEMPORARY != 0,
		LinkLocal:  scope == unix.RT_SCOPE_LINK || scope == unix.RT_SCOPE_HOST,
	}, nil
}

func ip(family byte, v []byte) (netip.Addr, error) {
	if (family == unix.AF_INET && len(v) == 4) || (family == unix.AF_INET6 && len(v) == 16) {
		a, _ := netip.AddrFromSlice(v)
		return a, nil
	}
	return netip.Addr{}, errAttr
}

// via reads struct rtvia: a gateway of another family than the route's.
func via(v []byte) (netip.Addr, error) {
	if len(v) < 2 {
		return netip.Addr{}, errAttr
	}
	return ip(byte(order.Uint16(v)), v[2:])
}

// userHZ is the kernel's unit of time towards programs.
const userHZ = 100

func decodeRoute(b []byte) (routeInfo, error) {
	if len(b) < unix.SizeofRtMsg {
		return routeInfo{}, fmt.Errorf("route: %w", errShort)
	}
	family, bits := b[0], int(b[1])
	flags := order.Uint32(b[8:])
	r := routeInfo{ipv6: family == unix.AF_INET6, table: uint32(b[4]), kind: b[7], cloned: flags&unix.RTM_F_CLONED != 0}
	dst := netip.IPv4Unspecified()
	if r.ipv6 {
		dst = netip.IPv6Unspecified()
	} else if family != unix.AF_INET {
		return routeInfo{}, fmt.Errorf("route: family %d", family)
	}
	one := hop{dead: flags&unix.RTNH_F_DEAD != 0}
	err := attributes(b[unix.SizeofRtMsg:], func(typ uint16, v []byte) error {
		var n uint32
		var err error
		switch typ {
		case unix.RTA_DST:
			dst, err = ip(family, v)
		case unix.RTA_TABLE:
			r.table, err = attr32(v)
		case unix.RTA_PRIORITY:
			r.metric, err = attr32(v)
		case unix.RTA_PREFSRC:
			r.source, err = ip(family, v)
		case unix.RTA_OIF:
			n, err = attr32(v)
			one.index = int(int32(n))
		case unix.RTA_GATEWAY:
			one.gateway, err = ip(family, v)
		case unix.RTA_VIA:
			one.gateway, err = via(v)
		case unix.RTA_MULTIPATH:
			r.hops, err = decodeHops(family, v)
		case unix.RTA_CACHEINFO:
			r.expires, r.expiring, err = decodeExpiry(v)
		}
		return err
	})
	if err != nil {
		return routeInfo{}, fmt.Errorf("route: %w", err)
	}
	if r.dst = netip.PrefixFrom(dst, bits); !r.dst.IsValid() {
		return routeInfo{}, fmt.Errorf("route: prefix length %d", bits)
	}
	if one.index > 0 && len(r.hops) == 0 {
		r.hops = []hop{one}
	}
	return r, nil
}

// decodeExpiry reads struct rta_cacheinfo, where the kernel counts down below zero
// until it collects the route.
func decodeExpiry(v []byte) (time.Duration, bool, error) {
	if len(v) < 12 {
		return 0, false, errAttr
	}
	ticks := int32(order.Uint32(v[8:]))
	return time.Duration(ticks) * time.Second / userHZ, ticks != 0, nil
}

// decodeHops reads a list of struct rtnexthop, each with its attributes.
func decodeHops(family byte, b []byte) ([]hop, error) {
	var hops []hop
	for len(b) >= unix.SizeofRtNexthop {
		n := int(order.Uint16(b))
		if n < unix.SizeofRtNexthop || n > len(b) {
			return nil, errAttr
		}
		h := hop{index: int(int32(order.Uint32(b[4:]))), dead: b[2]&unix.RTNH_F_DEAD != 0}
		err := attributes(b[unix.SizeofRtNexthop:n], func(typ uint16, v []byte) error {
			var err error
			switch typ {
			case unix.RTA_GATEWAY:
				h.gateway, err = ip(family, v)
			case unix.RTA_VIA:
				h.gateway, err = via(v)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		hops = append(hops, h)
		b = b[min((n+3)&^3, len(b)):]
	}
	return hops, nil
}
