package engine

import (
	"fmt"
	"net/netip"

	"mihf.dev/mihf"
	"mihf.dev/mihf/route"
)

// Register takes a flow. spec.ID must be set and new; the error wraps mihf.ErrInvalid,
// mihf.ErrExists or mihf.ErrLimit.
func (e *Engine) Register(now mihf.Time, spec *mihf.FlowSpec, owner uint32) (mihf.Registration, error) {
	if err := route.Check(spec); err != nil {
		return mihf.Registration{}, err
	}
	f, err := e.table.Add(spec, owner)
	if err != nil {
		return mihf.Registration{}, err
	}
	e.peersStale = true
	r := e.policy.Add(*spec, owner, f.Link)
	if l := e.links[f.Link]; l != nil {
		e.policy.Characteristics(now, f.ID, l.machine.LCI(), &e.hints)
		e.flush(now)
	}
	return r, nil
}

// Unregister forgets a flow.
func (e *Engine) Unregister(id mihf.FlowID) {
	e.peersStale = true
	e.policy.Remove(id)
	e.table.Remove(id)
}

// Update takes a transport's newer state. The error wraps mihf.ErrInvalid or
// mihf.ErrNotFound.
func (e *Engine) Update(now mihf.Time, u *mihf.FlowUpdate) error {
	f := e.table.Get(u.Flow)
	if f == nil {
		return fmt.Errorf("%w: flow %s", mihf.ErrNotFound, u.Flow)
	}
	link := u.Link.Or(f.Named)
	tuples := f.Tuples
	if u.Tuples != nil {
		tuples = u.Tuples
	}
	check := mihf.FlowSpec{
		Tuples: tuples, Link: link, RTT: u.RTT.Or(0), LocalDrain: u.LocalDrain.Or(0), Lead: u.Lead.Or(0),
	}
	if err := route.Check(&check); err != nil {
		return err
	}
	e.policy.Update(u)
	if u.Tuples != nil || u.Link.Known() {
		f.Tuples, f.Named = tuples, link
		e.peersStale = true
		e.place(f, e.table.Place(f))
		e.review(now, f)
		e.flush(now)
	}
	return nil
}

// Acknowledge notes what a transport did with a hint that was made at made (zero: not
// known any more).
func (e *Engine) Acknowledge(now mihf.Time, a *mihf.Ack, made mihf.Time) error {
	if e.table.Get(a.Flow) == nil {
		return fmt.Errorf("%w: flow %s", mihf.ErrNotFound, a.Flow)
	}
	e.policy.Acknowledge(now, a, made)
	return nil
}

// Flow returns what is known of a flow; nil if it is not registered.
func (e *Engine) Flow(id mihf.FlowID) *route.Flow { return e.table.Get(id) }

// Peers returns the peers whose routes are to be watched, and whether they changed since
// it was called last.
func (e *Engine) Peers() (peers []netip.Addr, changed bool) {
	if !e.peersStale {
		return nil, false
	}
	e.peersStale = false
	return e.table.Peers(), true
}

// reviewAll looks at every flow again after something that may move or thaw it.
func (e *Engine) reviewAll(now mihf.Time) {
	for _, f := range e.table.All() {
		e.review(now, f)
	}
	e.flush(now)
}

// thaw looks at the flows of one link after its path became usable.
func (e *Engine) thaw(now mihf.Time, id mihf.LinkID, cause mihf.UnfreezeCause) {
	l := e.links[id]
	for _, f := range e.table.All() {
		if f.Link == id && e.usable(l, f) {
			e.policy.Usable(now, f.ID, cause, l.machine.LCI(), &e.hints)
		}
	}
}

// review places, moves, thaws or gives up one flow by what is known now.
func (e *Engine) review(now mihf.Time, f *route.Flow) {
	if f.Link == "" || (f.Named == "" && f.Continuity == mihf.ContinuitySameAddress) {
		// A flow without a link goes where its address or peer is; one that keeps its address
		// follows it (a tunnel's underlay, a bridge).
		e.place(f, e.table.Place(f))
	}
	l := e.links[f.Link]
	if l != nil && e.usable(l, f) {
		e.policy.Usable(now, f.ID, mihf.UnfreezePathUsable, l.machine.LCI(), &e.hints)
	}
	switch f.Continuity {
	case mihf.ContinuityRebinds:
		if target := e.target(now, f); target != "" && target != f.Link {
			e.policy.Switch(now, f.ID, target, e.links[target].machine.LCI(), &e.hints)
			f.Link = target
		}
	case mihf.ContinuitySameAddress:
		if l != nil && e.addressGone(l, f) {
			e.policy.Abandon(now, f.ID, mihf.AbandonAddressGone, &e.hints)
		}
	default:
	}
}

// place moves a flow's bookkeeping, without a hint. Where its address is on no link just
// now it stays where it was.
func (e *Engine) place(f *route.Flow, to mihf.LinkID) {
	if to == "" || to == f.Link {
		return
	}
	if f.Link != "" && f.Named == "" && !e.table.HasAddress(f, to) {
		return
	}
	f.Link = to
	e.policy.Move(f.ID, to)
}

// usable reports whether the flow could send and receive over the link now: attached, its
// source address there if it needs that one, and the kernel's route to its peer over it.
func (e *Engine) usable(l *link, f *route.Flow) bool {
	m := l.machine
	if !m.Attached() {
		return false
	}
	if f.Continuity != mihf.ContinuityRebinds && !e.table.HasAddress(f, l.id) {
		return false
	}
	if over, known := e.table.PeerOver(f, l.id); known {
		return over
	}
	if ipv6, known := f.IPv6(); known {
		return m.Usable(ipv6)
	}
	return m.AnyUsable()
}

// addressGone reports whether the link came back in the flow's family, but without the
// address that the flow needs.
func (e *Engine) addressGone(l *link, f *route.Flow) bool {
	ipv6, known := f.IPv6()
	return known && l.machine.Attached() && l.machine.Usable(ipv6) && !e.table.HasAddress(f, l.id)
}

// target returns the link that a flow that rebinds should be on: the kernel's choice if it
// can be used and has proved stable, else where it is, else any that can be used.
func (e *Engine) target(now mihf.Time, f *route.Flow) mihf.LinkID {
	here := e.links[f.Link]
	stay := here != nil && (e.usable(here, f) || e.routeHeld(now, here))
	if l := e.links[e.table.Towards(f)]; l != nil && l != here && e.couldUse(l, f) && (!stay || !l.machine.HeldDown(now)) {
		return l.id
	}
	if stay {
		return f.Link
	}
	if here != nil && here.machine.Attached() && here.machine.Facts() == nil {
		return f.Link // no sensor says more of it than that it is attached
	}
	ipv6, known := f.IPv6()
	family := mihf.Opt[bool]{}
	if known {
		family = mihf.Some(ipv6)
	}
	return e.another(now, f.Link, family)
}

// couldUse is usable for a link that the flow is not on yet: its own address decides
// nothing there.
func (e *Engine) couldUse(l *link, f *route.Flow) bool {
	if ipv6, known := f.IPv6(); known {
		return l.machine.Attached() && l.machine.Usable(ipv6)
	}
	return l.machine.Attached() && l.machine.AnyUsable()
}

// routeHeld reports whether the link only lacks a default route, and not for long.
func (e *Engine) routeHeld(now mihf.Time, l *link) bool {
	return l.machine.Attached() && l.noRoute != 0 && now.Sub(l.noRoute) < e.cfg.RouteHold
}

// another returns the best other link with a usable path: not held down before held down,
// then by the metric of its default route, then in the order of appearance.
func (e *Engine) another(now mihf.Time, not mihf.LinkID, ipv6 mihf.Opt[bool]) mihf.LinkID {
	best, bestHeld, bestMetric := mihf.LinkID(""), false, uint32(0)
	for _, l := range e.order {
		m := l.machine
		v6, known := ipv6.Get()
		if l.id == not || !m.Attached() || (known && !m.Usable(v6)) || (!known && !m.AnyUsable()) {
			continue
		}
		held, metric := m.HeldDown(now), lowestMetric(m.Facts())
		if best == "" || (bestHeld && !held) || (bestHeld == held && metric < bestMetric) {
			best, bestHeld, bestMetric = l.id, held, metric
		}
	}
	return best
}

func lowestMetric(f *mihf.LinkFacts) uint32 {
	lowest := ^uint32(0)
	if f != nil {
		for _, r := range f.Defaults {
			lowest = min(lowest, r.Metric)
		}
	}
	return lowest
}
