package netns

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Route is a route in the terms of tests.
type Route struct {
	Dst    string // "10.0.0.0/8", "0.0.0.0/0", "::/0"
	Via    string // gateway; "": on-link
	Dev    string
	Metric int
	Table  int    // 0: main
	NhID   uint32 // nexthop object instead of Via and Dev
}

func (n *NS) route(r Route) *netlink.Route {
	n.t.Helper()
	_, dst, err := net.ParseCIDR(r.Dst)
	n.must(err, "destination")
	out := &netlink.Route{Dst: dst, Priority: r.Metric, Table: r.Table, LinkIndex: n.Index(r.Dev)}
	if r.Via != "" {
		out.Gw = net.ParseIP(r.Via)
	} else {
		out.Scope = netlink.SCOPE_LINK
	}
	return out
}

// AddRoute adds a route; one through a nexthop object where NhID is set.
func (n *NS) AddRoute(r Route) {
	n.t.Helper()
	if r.NhID != 0 {
		n.must(n.routeByNexthop(r), "add route "+r.Dst)
		return
	}
	n.must(n.NL.RouteAdd(n.route(r)), "add route "+r.Dst)
}

// AppendRoute adds a route behind equal ones.
func (n *NS) AppendRoute(r Route) {
	n.t.Helper()
	n.must(n.NL.RouteAppend(n.route(r)), "append route "+r.Dst)
}

// ReplaceRoute replaces the first route of that destination, table and metric.
func (n *NS) ReplaceRoute(r Route) {
	n.t.Helper()
	n.must(n.NL.RouteReplace(n.route(r)), "replace route "+r.Dst)
}

// DelRoute removes a route.
func (n *NS) DelRoute(r Route) {
	n.t.Helper()
	n.must(n.NL.RouteDel(n.route(r)), "delete route "+r.Dst)
}

// AddRule adds a policy rule for all traffic, with a priority, that looks into a table.
func (n *NS) AddRule(ipv6 bool, priority, table int, mark uint32) {
	n.t.Helper()
	r := netlink.NewRule()
	r.Family, r.Priority, r.Table, r.Mark = unix.AF_INET, priority, table, mark
	if ipv6 {
		r.Family = unix.AF_INET6
	}
	n.must(n.NL.RuleAdd(r), "add rule")
}

// nhMsg is struct nhmsg.
type nhMsg struct{ family byte }

func (m nhMsg) Len() int          { return 8 }
func (m nhMsg) Serialize() []byte { return []byte{m.family, 0, 0, 0, 0, 0, 0, 0} }

const (
	rtmNewNexthop = 104
	rtmDelNexthop = 105
	nhaID         = 1
	nhaOIF        = 5
	nhaGateway    = 6
	rtaNhID       = 30
)

// AddNexthop makes a nexthop object.
func (n *NS) AddNexthop(id uint32, dev, via string) {
	n.t.Helper()
	gw := netip.MustParseAddr(via)
	family := byte(unix.AF_INET)
	if gw.Is6() {
		family = unix.AF_INET6
	}
	req := nl.NewNetlinkRequest(rtmNewNexthop, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(nhMsg{family})
	req.AddData(nl.NewRtAttr(nhaID, nl.Uint32Attr(id)))
	req.AddData(nl.NewRtAttr(nhaOIF, nl.Uint32Attr(uint32(n.Index(dev)))))
	req.AddData(nl.NewRtAttr(nhaGateway, gw.AsSlice()))
	n.must(n.execute(req), "add nexthop")
}

// DelNexthop removes a nexthop object; the kernel drops the routes that use it.
func (n *NS) DelNexthop(id uint32) {
	n.t.Helper()
	req := nl.NewNetlinkRequest(rtmDelNexthop, unix.NLM_F_ACK)
	req.AddData(nhMsg{unix.AF_UNSPEC})
	req.AddData(nl.NewRtAttr(nhaID, nl.Uint32Attr(id)))
	n.must(n.execute(req), "delete nexthop")
}

func (n *NS) routeByNexthop(r Route) error {
	p := netip.MustParsePrefix(r.Dst)
	msg := nl.NewRtMsg()
	msg.Family, msg.Dst_len = unix.AF_INET, uint8(p.Bits())
	if p.Addr().Is6() {
		msg.Family = unix.AF_INET6
	}
	req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.RTA_DST, p.Addr().AsSlice()))
	req.AddData(nl.NewRtAttr(unix.RTA_PRIORITY, nl.Uint32Attr(uint32(r.Metric))))
	req.AddData(nl.NewRtAttr(rtaNhID, nl.Uint32Attr(r.NhID)))
	return n.execute(req)
}

func (n *NS) execute(req *nl.NetlinkRequest) error {
	return n.Do(func() error {
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
}

// batch is how many routes go to the kernel in one write.
const batch = 1000

// AddHostRoutes adds count on-link /32 routes through the link, from first on, and
// returns when the kernel has them. It takes some microseconds a route.
func (n *NS) AddHostRoutes(dev string, first netip.Addr, count int) {
	n.t.Helper()
	sock, err := nl.GetNetlinkSocketAt(n.Handle, vnetns.None(), unix.NETLINK_ROUTE)
	n.must(err, "open netlink")
	defer sock.Close()
	index := uint32(n.Index(dev))
	base := first.As4()
	at := binary.BigEndian.Uint32(base[:])
	for count > 0 {
		var buf []byte
		for range min(batch, count) {
			buf = append(buf, hostRoute(at, index)...)
			at++
			count--
		}
		// The last request's kernel work is done when the write returns.
		n.must(unix.Sendto(sock.GetFd(), buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}), "add routes")
	}
}

func hostRoute(dst, index uint32) []byte {
	msg := nl.NewRtMsg()
	msg.Family, msg.Dst_len, msg.Scope = unix.AF_INET, 32, unix.RT_SCOPE_LINK
	req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.RTA_DST, binary.BigEndian.AppendUint32(nil, dst)))
	req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(index)))
	return req.Serialize()
}
