package rtnl

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// maxLinks is how many links are published before virtual ones without traffic have to
// wait until others are gone. The core has room for 1024 in all: what it refused would
// not be said to it again, and hardware that comes must find a place.
const maxLinks = 960

// flush returns what differs from what was published: links that are gone, links that
// changed or appeared, egresses, peers. What it returned counts as published.
func (st *state) flush(now mihf.Time) []mihf.Observation {
	var gone, links, rest []mihf.Observation
	for _, o := range st.out {
		if o.Kind == mihf.ObsLinkGone {
			gone = append(gone, o)
		} else {
			rest = append(rest, o)
		}
	}
	st.out = nil
	published := 0
	for _, l := range st.links {
		if l.sent != nil {
			published++
		}
	}
	st.waiting = 0
	for _, index := range slices.Sorted(maps.Keys(st.links)) {
		l := st.links[index]
		switch {
		case l.sent != nil && l.publishedAll(st.namespace), l.sent == nil && !st.publishes(now, l):
			continue
		case l.sent == nil && published >= maxLinks && l.info.kind != "" && !l.used:
			st.waiting++
			continue
		case l.sent == nil:
			published++
		}
		l.sent = l.facts(st.namespace)
		links = append(links, mihf.Observation{At: now, Link: l.id, Kind: mihf.ObsLink, Facts: l.sent})
	}
	return slices.Concat(gone, links, rest)
}

// publishes reports whether a link that is not published is to be from now on: hardware
// always, a virtual link when traffic goes there or when it has settled, and then a port
// of a bridge or bond only with an address of its own.
func (st *state) publishes(now mihf.Time, l *link) bool {
	switch {
	case l.info.kind == "" || l.used:
		return true
	case now.Sub(l.since) < st.settle:
		return false
	default:
		return l.info.master == 0 || l.routable()
	}
}

// routable reports whether the link has an address that is good beyond the link.
func (l *link) routable() bool {
	return slices.ContainsFunc(l.addrs, func(a mihf.Address) bool { return !a.LinkLocal })
}

// facts is the link as it is published.
func (l *link) facts(namespace string) *mihf.LinkFacts {
	f := l.head(namespace)
	f.Addresses = slices.Clone(l.addrs)
	f.Defaults = slices.Clone(l.defaults)
	return &f
}

func (l *link) head(namespace string) mihf.LinkFacts {
	return mihf.LinkFacts{
		Name: l.info.name, Index: l.info.index, Namespace: namespace, Kind: l.info.kind, HardwareAddr: l.info.addr,
		MTUBytes: l.info.mtu, AdminUp: l.info.flags&unix.IFF_UP != 0, Carrier: l.info.flags&unix.IFF_LOWER_UP != 0,
		Oper: l.info.oper,
	}
}

// publishedAll reports whether what was published is still so.
func (l *link) publishedAll(namespace string) bool {
	h, s := l.head(namespace), l.sent
	return h.Name == s.Name && h.Index == s.Index && h.Kind == s.Kind && h.HardwareAddr == s.HardwareAddr &&
		h.MTUBytes == s.MTUBytes && h.AdminUp == s.AdminUp && h.Carrier == s.Carrier && h.Oper == s.Oper &&
		slices.Equal(l.addrs, s.Addresses) && slices.Equal(l.defaults, s.Defaults)
}

// next returns when a link has settled or is to be read, or a default route ends.
func (st *state) next(now mihf.Time) mihf.Time {
	next := st.expiry
	for _, due := range st.young {
		next = mihf.Sooner(next, due)
	}
	for _, l := range st.links {
		if l.sent == nil && l.info.kind != "" && now.Sub(l.since) < st.settle {
			next = mihf.Sooner(next, l.since.Add(st.settle))
		}
	}
	return next
}
