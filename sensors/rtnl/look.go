package rtnl

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// readAll reads everything. What an incomplete dump does not show stays as it was, and
// all is read again soon.
func (s *session) readAll(ctx context.Context) error {
	heard := s.pending.links
	s.pending = hints{}
	s.links.begin()
	now := s.now()
	s.reconcileAt = now.Add(s.sensor.opt.Reconcile)
	clear(s.state.young)

	var links []linkInfo
	partialLinks, err := s.dump(func() (err error) { links, err = s.kernel.links(); return err })
	if err != nil {
		return err
	}
	var addrs map[int][]mihf.Address
	partialAddrs, err := s.dump(func() (err error) { addrs, err = s.kernel.addrs(0); return err })
	if err != nil {
		return err
	}
	if !partialLinks {
		s.removeMissing(links, heard)
	}
	slices.SortFunc(links, func(a, b linkInfo) int { return a.index - b.index })
	for _, l := range links {
		s.state.setLink(now, l, false)
		list := addrs[l.index]
		if partialAddrs {
			list = union(list, s.state.links[l.index])
		}
		s.state.setAddrs(l.index, list)
	}
	if partialLinks || partialAddrs {
		s.full.want(now, 0)
	}
	if err := s.readDefaults(); err != nil {
		return err
	}
	return s.askRoutes(ctx)
}

func (s *session) removeMissing(links []linkInfo, heard map[int]linkHint) {
	there := make(map[int]bool, len(links))
	for _, l := range links {
		there[l.index] = true
	}
	for _, index := range slices.Sorted(maps.Keys(s.state.links)) {
		if !there[index] {
			s.state.removeLink(s.now(), index, heard[index].reason())
		}
	}
}

// union adds the addresses known of a link to those of an incomplete dump.
func union(list []mihf.Address, l *link) []mihf.Address {
	if l == nil {
		return list
	}
	for _, old := range l.addrs {
		if !slices.ContainsFunc(list, func(a mihf.Address) bool { return a.Prefix == old.Prefix }) {
			list = append(list, old)
		}
	}
	return list
}

// followLinks looks at the links that were named in messages and publishes the difference.
func (s *session) followLinks(ctx context.Context) error {
	start := s.now()
	if err := s.lookAtLinks(); err != nil {
		return err
	}
	took := s.now().Sub(start)
	s.links.gap = min(2*s.links.gap, linkGapMax)
	if s.publish(ctx) > 0 {
		s.links.gap = linkGap
	}
	end := s.now()
	s.links.done(end.Add(-took), end) // how long the broker took is no reason to look away
	return nil
}

// lookAtLinks reads the links that were named in messages: first all of them, so that
// what is gone leaves its id to what came in its place.
func (s *session) lookAtLinks() error {
	s.links.begin()
	dirty := s.pending.links
	s.pending.links = nil
	order := slices.Sorted(maps.Keys(dirty))
	infos := make(map[int]linkInfo, len(order))
	for _, index := range order {
		info, err := s.kernel.link(index)
		switch {
		case err == nil:
			infos[index] = info
		case gone(err):
			s.vanished(index, dirty[index])
		default:
			return err
		}
	}
	for _, index := range order {
		if info, there := infos[index]; there {
			if err := s.take(info, dirty[index]); err != nil {
				return err
			}
		}
	}
	return nil
}

// vanished removes a link that is not there any more. The message that says whether it
// was removed or moved may be under way: it is given one more reading to come.
func (s *session) vanished(index int, h linkHint) {
	if s.state.links[index] == nil {
		s.state.removeLink(s.now(), index, mihf.DownRemoved)
		return
	}
	if !h.deleted && !h.waited {
		h.waited = true
		s.pending.link(index, h)
		s.links.want(s.now(), linkGap)
		return
	}
	s.state.removeLink(s.now(), index, h.reason())
	s.routesMayHaveChanged()
}

// take stores a link that was read, and reads its addresses where needed.
func (s *session) take(info linkInfo, h linkHint) error {
	isNew := s.state.links[info.index] == nil
	changed := s.state.setLink(s.now(), info, h.deleted)
	if s.state.links[info.index] == nil {
		return nil // the loopback
	}
	if isNew || changed || h.addrs || h.deleted {
		addrsChanged, err := s.readAddrs(info.index)
		if err != nil {
			return err
		}
		changed = changed || addrsChanged
	}
	if changed {
		s.routesMayHaveChanged()
	}
	return nil
}

func (s *session) readAddrs(index int) (changed bool, err error) {
	var addrs map[int][]mihf.Address
	partial, err := s.dump(func() (err error) { addrs, err = s.kernel.addrs(index); return err })
	switch {
	case gone(err):
		return false, nil // it went in between; its message is under way
	case err != nil:
		return false, err
	}
	list := addrs[index]
	if partial {
		list = union(list, s.state.links[index])
		s.pending.link(index, linkHint{addrs: true})
	}
	return s.state.setAddrs(index, list), nil
}

func (s *session) routesMayHaveChanged() {
	now := s.now()
	s.defaults.want(now, routeLag)
	s.resolve.want(now, routeLag)
}

// readDefaults reads the default routes of both families.
func (s *session) readDefaults() error {
	start := s.now()
	s.defaults.begin()
	s.pending.defaults = false
	var all []routeInfo
	missing := false
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		var routes []routeInfo
		s.sensor.count.dumps.Add(1)
		partial, err := s.dump(func() (err error) { routes, err = s.kernel.defaults(family); return err })
		if err != nil {
			return err
		}
		all = append(all, routes...)
		missing = missing || partial
	}
	for i := range all {
		for _, h := range all[i].hops {
			if err := s.know(h.index); err != nil {
				return err
			}
		}
	}
	s.state.setDefaults(s.now(), all, missing)
	s.defaults.done(start, s.now())
	if missing {
		s.defaults.want(s.now(), routeLag)
	}
	return nil
}

// know reads a link that a route leads to, if it is not known.
func (s *session) know(index int) error {
	if s.state.known(index) {
		return nil
	}
	info, err := s.kernel.link(index)
	switch {
	case gone(err):
		return nil
	case err != nil:
		return err
	}
	return s.take(info, linkHint{addrs: true})
}

// askRoutes asks for the ways to the outside and to the peers. Where an answer names a
// link that has just gone, the old answer stands: a message about it is under way.
func (s *session) askRoutes(ctx context.Context) error {
	start := s.now()
	s.resolve.begin()
	s.pending.resolve = false
	opt := &s.sensor.opt
	for _, probe := range []netip.Addr{opt.ProbeIPv4, opt.ProbeIPv6} {
		err := s.ask(probe, true, func(a answer) { s.state.setEgress(s.now(), probe.Is6(), a) })
		if err != nil {
			return err
		}
	}
	for i, peer := range s.sensor.watch.Load().peers {
		if i%peersAtOnce == peersAtOnce-1 {
			if err := s.linksFirst(ctx); err != nil {
				return err
			}
		}
		err := s.ask(peer, false, func(a answer) { s.state.setPeer(s.now(), peer, a) })
		if err != nil {
			return err
		}
	}
	s.resolve.done(start, s.now())
	return nil
}

// peersAtOnce is how many peers are asked for before links are looked at again.
const peersAtOnce = 256

// linksFirst looks at links in the middle of other work, so that a link that goes down
// does not wait for it.
func (s *session) linksFirst(ctx context.Context) error {
	h, err := s.box.take()
	s.pending.merge(h)
	if err != nil || ctx.Err() != nil {
		return cmp.Or(err, ctx.Err())
	}
	s.plan()
	if !s.links.due.Due(s.now()) {
		return nil
	}
	return s.followLinks(ctx)
}

func (s *session) ask(dst netip.Addr, withMetric bool, set func(answer)) error {
	a, err := s.kernel.route(dst, withMetric)
	if err != nil {
		return err
	}
	if err := s.know(a.index); err != nil {
		return err
	}
	if s.state.known(a.index) {
		set(a)
	}
	return nil
}
