package linkstate

import (
	"net/netip"
	"slices"

	"mihf.dev/mihf"
)

// pathState is whether a flow could go on over the link in one address family.
type pathState struct {
	usable    bool
	source    netip.Addr
	gateway   netip.Addr
	routeLost mihf.Time // since when only the default route is missing that was there
}

// setPaths compares the paths with what was known before. lost is the reason of a
// Path_Lost that the link itself causes.
func (m *Machine) setPaths(now mihf.Time, lost mihf.DownReason, ev *Events) {
	for i := range m.paths {
		p, why := m.path(i == 1)
		old := m.paths[i]
		if !p.usable && why == mihf.DownNoRoute {
			p.routeLost = old.routeLost
			if old.usable {
				p.routeLost = now
			}
		}
		m.paths[i] = p
		switch {
		case p.usable && !old.usable:
			m.holdPath(now, old.routeLost)
			ev.add(now, m.link, mihf.PathUsable).Path = &mihf.Path{IPv6: i == 1, Source: p.source, Gateway: p.gateway, LCI: m.lci}
		case !p.usable && old.usable:
			if !m.attached {
				why = lost
			}
			ev.add(now, m.link, mihf.PathLost).Path = &mihf.Path{IPv6: i == 1, Source: old.source, Gateway: old.gateway, Reason: why}
		}
	}
	switch usable := m.AnyUsable(); {
	case usable:
		m.gapSince = 0
	case m.gapSince == 0:
		m.gapSince = now
	}
}

// holdPath begins the hold-down of a path that has come back: after the link had been
// down, or after its route had been away so long that flows may have left.
func (m *Machine) holdPath(now, routeLost mihf.Time) {
	if m.returned || (routeLost != 0 && now.Sub(routeLost) >= m.cfg.HoldDown) {
		m.heldUntil, m.returned = now.Add(m.cfg.HoldDown), false
	}
}

// path derives the state of one family, and why it is not usable.
func (m *Machine) path(ipv6 bool) (pathState, mihf.DownReason) {
	if !m.attached || m.facts == nil {
		return pathState{}, mihf.DownLink
	}
	var p pathState
	for _, a := range m.facts.Addresses {
		if a.Usable() && a.Prefix.Addr().Is6() == ipv6 && (!p.source.IsValid() || !a.Deprecated) {
			p.source = a.Prefix.Addr()
			if !a.Deprecated {
				break
			}
		}
	}
	if !p.source.IsValid() {
		return pathState{}, mihf.DownNoAddress
	}
	for _, r := range m.facts.Defaults {
		if r.IPv6 == ipv6 {
			p.gateway = r.Gateway
			p.usable = true
			return p, 0
		}
	}
	return pathState{}, mihf.DownNoRoute
}

// diffAddresses reports addresses that came, went or changed in what decides their use.
func (m *Machine) diffAddresses(now mihf.Time, old, cur *mihf.LinkFacts, ev *Events) {
	var before []mihf.Address
	if old != nil {
		before = old.Addresses
	}
	for _, a := range cur.Addresses {
		if slices.Contains(before, a) {
			continue
		}
		was, ok := findAddress(before, a.Prefix)
		ev.add(now, m.link, mihf.AddressChanged).Address = &mihf.AddressChange{Old: was, New: a, Minor: minor(was, a, ok)}
	}
	for _, a := range before {
		if _, still := findAddress(cur.Addresses, a.Prefix); !still {
			ev.add(now, m.link, mihf.AddressChanged).Address = &mihf.AddressChange{Old: a, Minor: a.Deprecated || a.Temporary || a.LinkLocal}
		}
	}
}

// minor reports whether no flow would care, unless it uses just this address: privacy
// addresses that come, and addresses that are only deprecated.
func minor(was, is mihf.Address, existed bool) bool {
	if !existed {
		return is.Temporary || is.Deprecated || is.LinkLocal
	}
	return was.Usable() == is.Usable()
}

func findAddress(list []mihf.Address, p netip.Prefix) (mihf.Address, bool) {
	for _, a := range list {
		if a.Prefix == p {
			return a, true
		}
	}
	return mihf.Address{}, false
}

// learnLCI rebuilds the characteristics from what the link itself says. Measured ones
// come by [Machine.Characterise], and go with their point of attachment.
func (m *Machine) learnLCI(now mihf.Time) {
	if m.facts == nil || m.facts.MTUBytes <= 0 {
		return
	}
	if m.lci != nil && m.lci.PoA == m.poa && m.lci.MTUBytes.Value == float64(m.facts.MTUBytes) {
		return
	}
	fresh := mihf.LCI{Link: m.link, PoA: m.poa}
	if m.lci != nil && m.lci.PoA == m.poa {
		fresh = *m.lci
	}
	fresh.MTUBytes = mihf.Characteristic{Value: float64(m.facts.MTUBytes), Source: mihf.SourcePHY, At: now, Confidence: 1}
	m.lci = &fresh
}

// Characterise takes what was measured of the link at its point of attachment; the MTU stays the
// link's own.
func (m *Machine) Characterise(measured *mihf.LCI) {
	fresh := *measured
	fresh.Link, fresh.PoA, fresh.MTUBytes = m.link, m.poa, mihf.Characteristic{}
	if m.lci != nil && m.lci.PoA == m.poa {
		fresh.MTUBytes = m.lci.MTUBytes
	}
	m.lci = &fresh
}
