package rtnl

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// kernel asks the kernel. It is used by one goroutine.
type kernel struct {
	conn      *conn
	mark      uint32
	uid       mihf.Opt[uint32]
	malformed func(error)
}

func openKernel(ns netns.NsHandle) (*kernel, error) {
	c, err := dial(ns)
	if err != nil {
		return nil, err
	}
	// Without it (Linux before 4.20) dumps are longer, not wrong: they are sorted out here.
	_ = c.setStrict()
	return &kernel{conn: c}, nil
}

// each wraps a decoder so that a message that it cannot read, or panics over, is counted.
func (k *kernel) each(f func(m message) error) func(message) {
	return func(m message) {
		if err := sensors.Guard(func() error { return f(m) }); err != nil {
			k.malformed(err)
		}
	}
}

const extMask = 1 << 3 // RTEXT_FILTER_SKIP_STATS: links without their statistics

func (k *kernel) links() ([]linkInfo, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	var out []linkInfo
	err := k.linkRequest(req, 0, &out)
	return out, err
}

// link reads one link; an error that is ENODEV says that there is none.
func (k *kernel) link(index int) (linkInfo, error) {
	var out []linkInfo
	err := k.linkRequest(nl.NewNetlinkRequest(unix.RTM_GETLINK, 0), index, &out)
	if err == nil && len(out) == 0 {
		err = unix.ENODEV
	}
	if err != nil {
		return linkInfo{}, err
	}
	return out[0], nil
}

func (k *kernel) linkRequest(req *nl.NetlinkRequest, index int, out *[]linkInfo) error {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extMask)))
	err := k.conn.request(req, k.each(func(m message) error {
		l, err := decodeLink(m.data)
		if err == nil {
			*out = append(*out, l)
		}
		return err
	}))
	return wrap("read links", err)
}

// addrs reads the addresses of a link, or of all with index 0.
func (k *kernel) addrs(index int) (map[int][]mihf.Address, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	msg := nl.NewIfAddrmsg(unix.AF_UNSPEC)
	msg.Index = uint32(index)
	req.AddData(msg)
	out := make(map[int][]mihf.Address)
	err := k.conn.request(req, k.each(func(m message) error {
		i, a, err := decodeAddr(m.data)
		if err == nil && (index == 0 || i == index) {
			out[i] = append(out[i], a)
		}
		return err
	}))
	return out, wrap("read addresses", err)
}

// defaults reads the default routes of a family in all tables. The kernel leaves out
// what is not unicast; the others are passed over by their header, without being decoded.
func (k *kernel) defaults(family int) ([]routeInfo, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
	msg := &nl.RtMsg{RtMsg: unix.RtMsg{Family: uint8(family), Type: unix.RTN_UNICAST}}
	req.AddData(msg)
	var out []routeInfo
	decode := k.each(func(m message) error {
		r, err := decodeRoute(m.data)
		if err == nil && r.kind == unix.RTN_UNICAST && !r.cloned && r.ipv6 == (family == unix.AF_INET6) {
			out = append(out, r)
		}
		return err
	})
	err := k.conn.request(req, func(m message) {
		if len(m.data) < unix.SizeofRtMsg || m.data[1] == 0 {
			decode(m)
		}
	})
	if absent(err) {
		return nil, nil
	}
	return out, wrap("read routes", err)
}

// route asks for the kernel's choice of a way to dst. withMetric asks for the metric
// too, which costs a second question where the family is IPv4.
func (k *kernel) route(dst netip.Addr, withMetric bool) (answer, error) {
	flags := uint32(0)
	if dst.Is4() {
		flags = unix.RTM_F_LOOKUP_TABLE // IPv6 tells its table in any case
	}
	r, found, err := k.lookup(dst, flags)
	if err != nil || !found || len(r.hops) == 0 {
		return answer{}, err
	}
	a := answer{reachable: true, source: r.source, table: r.table, metric: r.metric}
	a.index, a.gateway = r.hops[0].index, r.hops[0].gateway
	if withMetric && dst.Is4() {
		r, found, err := k.lookup(dst, flags|unix.RTM_F_FIB_MATCH)
		if err != nil {
			return answer{}, err
		}
		if found {
			a.metric = r.metric
		}
	}
	return a, nil
}

func (k *kernel) lookup(dst netip.Addr, flags uint32) (r routeInfo, found bool, err error) {
	family := uint8(unix.AF_INET6)
	if dst.Is4() {
		family = unix.AF_INET
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, 0)
	req.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: family, Dst_len: uint8(dst.BitLen()), Flags: flags}})
	req.AddData(nl.NewRtAttr(unix.RTA_DST, dst.AsSlice()))
	if k.mark != 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_MARK, nl.Uint32Attr(k.mark)))
	}
	if uid, ok := k.uid.Get(); ok {
		req.AddData(nl.NewRtAttr(unix.RTA_UID, nl.Uint32Attr(uid)))
	}
	err = k.conn.request(req, k.each(func(m message) error {
		var err error
		r, err = decodeRoute(m.data)
		found = err == nil
		return err
	}))
	if unreachable(err) {
		return routeInfo{}, false, nil
	}
	return r, found, wrap("look up route", err)
}

// unreachable reports whether the kernel's answer is that there is no way: no route, or
// one of type unreachable, prohibit or blackhole, or no such family.
func unreachable(err error) bool {
	return absent(err) || isErrno(err, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL, unix.ENETDOWN, unix.ENODEV, unix.EAGAIN)
}

// absent reports whether the kernel has no such address family.
func absent(err error) bool { return isErrno(err, unix.EAFNOSUPPORT, unix.EOPNOTSUPP) }

func isErrno(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
