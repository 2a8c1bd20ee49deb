package rtnl

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// link is what was read last of one link.
type link struct {
	info     linkInfo
	key      string // that it was identified by
	id       mihf.LinkID
	since    mihf.Time // when it appeared; zero: it was there before the sensor
	addrs    []mihf.Address
	defaults []mihf.Route
	used     bool            // traffic goes there: a default route, the egress or a peer
	sent     *mihf.LinkFacts // published last; nil: the link is not published
}

// answer is the kernel's choice of a way to an address.
type answer struct {
	reachable bool
	index     int // 0: no link of ours, such as the loopback
	gateway   netip.Addr
	source    netip.Addr
	table     uint32
	metric    uint32
}

// state is what was read last, and what was published of it. It is pure: the shell puts
// in what it read and publishes what [state.flush] returns, the difference.
type state struct {
	namespace string
	settle    time.Duration
	identify  func(*linkInfo) device

	links    map[int]*link
	ids      map[mihf.LinkID]int
	young    map[int]mihf.Time // virtual links not yet read, and when to
	waiting  int               // virtual links beyond maxLinks, as of the last flush
	loopback int               // its ifindex
	started  bool              // the first reading is complete: what is new from now on has just appeared
	expiry   mihf.Time         // when the first default route ends; zero: none does

	egress [2]*mihf.Egress // published last: IPv4, IPv6
	peers  map[netip.Addr]*mihf.PeerRoute

	out []mihf.Observation // not yet published
}

func newState(namespace string, settle time.Duration, identify func(*linkInfo) device) *state {
	return &state{
		namespace: namespace, settle: settle, identify: identify,
		links: make(map[int]*link), ids: make(map[mihf.LinkID]int), young: make(map[int]mihf.Time),
		peers: make(map[netip.Addr]*mihf.PeerRoute),
	}
}

// toRead reports whether a link with a message about it is to be read now. A virtual
// link that just appeared is read when it has settled, so that the comings and goings of
// containers cost nothing.
func (st *state) toRead(now mihf.Time, index int, h linkHint) bool {
	switch {
	case index == st.loopback:
		return false
	case st.links[index] != nil:
		return true
	case h.link && !h.alive:
		delete(st.young, index)
		return false
	}
	due, waiting := st.young[index]
	switch {
	case waiting:
		return due.Due(now)
	case !h.link: // an address of a link whose message was lost or is yet to come
		return true
	case h.virtual && st.settle > 0:
		st.young[index] = now.Add(st.settle)
		return false
	default:
		return true
	}
}

// setLink stores what was read. recreated says that the link was gone for a moment, so
// that it may be another device with the same ifindex. It reports whether routes may
// have changed with it.
func (st *state) setLink(now mihf.Time, info linkInfo, recreated bool) bool {
	if info.flags&unix.IFF_LOOPBACK != 0 {
		st.loopback = info.index
		return false
	}
	delete(st.young, info.index)
	l := st.links[info.index]
	if l != nil && (recreated || !sameDevice(&l.info, &info)) && linkKey(&info, st.identify(&info)) != l.key {
		st.removeLink(now, info.index, mihf.DownRemoved)
		l = nil
	}
	if l == nil {
		l = &link{info: info}
		if st.started {
			l.since = now
		}
		st.name(l)
		st.links[info.index] = l
		return true
	}
	before := l.info
	l.info = info
	if info.flags&unix.IFF_UP == 0 {
		// The kernel has dropped its routes; of the IPv4 ones it says nothing.
		l.defaults, l.used = nil, false
	}
	const matter = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	return before.flags&matter != info.flags&matter || before.oper != info.oper || before.master != info.master
}

// sameDevice reports whether two readings under one ifindex can be of one device.
func sameDevice(a, b *linkInfo) bool {
	return a.kind == b.kind && a.hwType == b.hwType && a.perm == b.perm
}

// name gives the link its id, which it keeps as long as it lives. Where another live
// link has it already, the name is added to the key, and then a number.
func (st *state) name(l *link) {
	d := st.identify(&l.info)
	l.key = linkKey(&l.info, d)
	t := linkType(&l.info, d)
	key := l.key
	for n := 1; ; n++ {
		switch {
		case n == 2:
			key = l.key + "/" + l.info.name
		case n > 2:
			key = l.key + "/" + l.info.name + "/" + strconv.Itoa(n)
		}
		l.id = sensors.LinkID(t, key, st.namespace)
		if _, taken := st.ids[l.id]; !taken {
			st.ids[l.id] = l.info.index
			return
		}
	}
}

func (st *state) removeLink(now mihf.Time, index int, reason mihf.DownReason) {
	delete(st.young, index)
	l := st.links[index]
	if l == nil {
		return
	}
	delete(st.links, index)
	delete(st.ids, l.id)
	if l.sent != nil {
		st.out = append(st.out, mihf.Observation{At: now, Link: l.id, Kind: mihf.ObsLinkGone, Gone: reason})
	}
}

// setAddrs stores the addresses of a link and reports whether they have changed.
func (st *state) setAddrs(index int, addrs []mihf.Address) bool {
	l := st.links[index]
	if l == nil {
		return false
	}
	slices.SortFunc(addrs, func(a, b mihf.Address) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), a.Prefix.Bits()-b.Prefix.Bits())
	})
	changed := !slices.Equal(l.addrs, addrs)
	l.addrs = addrs
	return changed
}

// setDefaults stores all default routes, in the order in which the kernel has them.
// Routes that have ended are left out. partial says that some may be missing: then none
// is taken away.
func (st *state) setDefaults(now mihf.Time, routes []routeInfo, partial bool) {
	found := make(map[int][]mihf.Route)
	st.expiry = 0
	for i := range routes {
		r := &routes[i]
		if r.expiring {
			if r.expires <= 0 {
				continue
			}
			st.expiry = mihf.Sooner(st.expiry, now.Add(r.expires))
		}
		for _, h := range r.hops {
			if h.dead || st.links[h.index] == nil {
				continue
			}
			found[h.index] = append(found[h.index], mihf.Route{
				IPv6: r.ipv6, Gateway: h.gateway, Source: r.source, Table: r.table, Metric: r.metric,
			})
		}
	}
	for index, l := range st.links {
		list := found[index]
		if partial {
			for _, old := range l.defaults {
				if !slices.Contains(list, old) {
					list = append(list, old)
				}
			}
		}
		l.defaults = list
		l.used = l.used || len(list) > 0
	}
}

// setPeers replaces the set of watched peers.
func (st *state) setPeers(peers []netip.Addr) {
	kept := make(map[netip.Addr]*mihf.PeerRoute, len(peers))
	for _, p := range peers {
		kept[p] = st.peers[p]
	}
	st.peers = kept
}

// known reports whether an ifindex in a route needs no reading.
func (st *state) known(index int) bool {
	return index == 0 || index == st.loopback || st.links[index] != nil
}

func (st *state) linkOf(a *answer) mihf.LinkID {
	if l := st.links[a.index]; a.reachable && l != nil {
		l.used = true
		return l.id
	}
	return ""
}

// setEgress stores the kernel's choice for the outside.
func (st *state) setEgress(now mihf.Time, ipv6 bool, a answer) {
	e := mihf.Egress{IPv6: ipv6, Link: st.linkOf(&a)}
	if e.Link != "" {
		e.Gateway, e.Source, e.Table, e.Metric = a.gateway, a.source, a.table, a.metric
	}
	sent := &st.egress[0]
	if ipv6 {
		sent = &st.egress[1]
	}
	if *sent == nil || **sent != e {
		*sent = &e
		st.out = append(st.out, mihf.Observation{At: now, Kind: mihf.ObsEgress, Egress: &e})
	}
}

// setPeer stores the kernel's route to a watched peer.
func (st *state) setPeer(now mihf.Time, peer netip.Addr, a answer) {
	sent, watched := st.peers[peer]
	if !watched {
		return
	}
	p := mihf.PeerRoute{Peer: peer, Link: st.linkOf(&a)}
	if a.reachable {
		p.Source, p.Gateway = a.source, a.gateway
	}
	if sent == nil || *sent != p {
		st.peers[peer] = &p
		st.out = append(st.out, mihf.Observation{At: now, Kind: mihf.ObsPeer, Peer: &p})
	}
}
