package engine

import (
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/route"
)

// reviewAll looks at every flow again after something that may move or thaw it.
func (e *Engine) reviewAll(now mihf.Time) {
	e.again, e.reviewAt = false, 0
	for _, f := range e.table.All() {
		e.review(now, f)
	}
	e.flush(now)
}

// reviewBy asks for a review of all flows at a moment in the future.
func (e *Engine) reviewBy(t mihf.Time) { e.reviewAt = mihf.Sooner(e.reviewAt, t) }

// review places, moves, thaws or gives up one flow by what is known now.
func (e *Engine) review(now mihf.Time, f *route.Flow) {
	if f.Link == "" || (f.Named == "" && f.Continuity == mihf.ContinuitySameAddress) {
		// A flow without a link goes where its address or peer is; one that keeps its address
		// follows it (a tunnel's underlay, a bridge).
		e.place(now, f, e.table.Place(f))
	}
	l := e.links[f.Link]
	if l != nil && e.usable(l, f) {
		e.policy.Usable(now, f.ID, mihf.UnfreezePathUsable, l.machine.LCI(), &e.hints)
	}
	switch f.Continuity {
	case mihf.ContinuityRebinds:
		if target := e.target(now, f); target != "" && target != f.Link {
			e.policy.Switch(now, f.ID, target, e.links[target].machine.LCI(), &e.hints)
			f.Link, f.SwitchedAt, f.Diverged = target, now, 0
			if f.Named != "" {
				f.Named = target
			}
		}
	case mihf.ContinuitySameAddress:
		if l != nil {
			e.reviewAddress(now, l, f)
		}
	default:
	}
}

// place moves a flow's bookkeeping, without Prepare or Switch. Once it is somewhere it
// moves only to where its own address is, or where it is said to be.
func (e *Engine) place(now mihf.Time, f *route.Flow, to mihf.LinkID) {
	if to == "" || to == f.Link || (f.Link != "" && f.Named == "" && e.table.Address(f, to) != route.AddressUsable) {
		return
	}
	f.Link = to
	e.policy.Move(now, f.ID, to)
	if l := e.links[to]; l != nil {
		e.policy.Characteristics(now, f.ID, l.machine.LCI(), &e.hints)
	}
}

// reviewAddress gives a flow up whose home came back in its address family, but for some
// time now without its address.
func (e *Engine) reviewAddress(now mihf.Time, l *link, f *route.Flow) {
	has := e.table.Address(f, l.id)
	if has == route.AddressUsable {
		f.Home = l.id
	}
	ipv6, known := f.IPv6()
	if has != route.AddressAbsent || f.Home != l.id || !known || !l.machine.Usable(ipv6) {
		f.AddressGone = 0
		return
	}
	if f.AddressGone == 0 {
		f.AddressGone = now
	}
	if due := f.AddressGone.Add(e.cfg.AddressHold); now.Before(due) {
		e.reviewBy(due)
		return
	}
	e.policy.Abandon(now, f.ID, mihf.AbandonAddressGone, &e.hints)
}

// usable reports whether the flow could send and receive over the link now: attached, its
// source address there if it needs that one, and the kernel's route to its peer over it.
func (e *Engine) usable(l *link, f *route.Flow) bool {
	m := l.machine
	if !m.Attached() {
		return false
	}
	if f.Continuity != mihf.ContinuityRebinds {
		if has := e.table.Address(f, l.id); has != route.AddressUsable && has != route.AddressUnnamed {
			return false
		}
	}
	if f.Local() {
		return true
	}
	if over, known := e.table.PeerOver(f, l.id); known && !f.Grouped {
		return over // subflows have rules of their own, by source or mark
	}
	return carries(l, f)
}

// lag is how long the views of links, default routes and peers, which come one after the
// other, may contradict each other.
const lag = 250 * time.Millisecond

// target returns the link that a flow that rebinds should be on: the kernel's choice if it
// can be used and has proved stable, else where it is, else any that can be used.
func (e *Engine) target(now mihf.Time, f *route.Flow) mihf.LinkID {
	here := e.links[f.Link]
	switch {
	case here == nil && e.removedIndex(f.Link) < 0:
		return f.Link // not seen yet
	case here != nil && e.routeHeld(now, here, f):
		return f.Link
	case here != nil && here.machine.Attached() && here.machine.Facts() == nil:
		return f.Link // no sensor says more of it than that it is attached
	}
	stay := here != nil && (e.usable(here, f) || here.machine.Withheld())
	l := e.links[e.table.Towards(f)]
	switch {
	case l == nil || l == here || !carries(l, f):
		f.Diverged = 0
	case !stay && (here == nil || !carries(here, f)):
		return l.id
	case !stay || f.Follows():
		return e.preferred(now, l, f)
	}
	if stay || (here != nil && carries(here, f)) {
		return f.Link
	}
	return e.another(now, f.Link, familyOf(f))
}

// preferred returns where a flow should be whose own link has a path, while the kernel
// prefers another: there once that has lasted, that link has proved stable, and the flow
// was not just moved.
func (e *Engine) preferred(now mihf.Time, l *link, f *route.Flow) mihf.LinkID {
	if f.Diverged == 0 {
		f.Diverged = now
	}
	until := max(f.Diverged.Add(lag), l.machine.HeldUntil(), e.settled(f))
	if now.Before(until) {
		e.reviewBy(until)
		return f.Link
	}
	return l.id
}

// settled returns until when a switch of ours is not followed by the next for a mere
// preference; zero if there was none.
func (e *Engine) settled(f *route.Flow) mihf.Time {
	if f.SwitchedAt == 0 {
		return 0
	}
	return f.SwitchedAt.Add(e.cfg.Link.HoldDown)
}

func familyOf(f *route.Flow) mihf.Opt[bool] {
	if ipv6, known := f.IPv6(); known {
		return mihf.Some(ipv6)
	}
	return mihf.Opt[bool]{}
}

// carries reports whether the link has a usable path in the flow's address family.
func carries(l *link, f *route.Flow) bool {
	if ipv6, known := f.IPv6(); known {
		return l.machine.Usable(ipv6)
	}
	return l.machine.AnyUsable()
}

// routeHeld reports whether the link only lacks the default route that it had, and not for
// long.
func (e *Engine) routeHeld(now mihf.Time, l *link, f *route.Flow) bool {
	if carries(l, f) {
		return false
	}
	lost := max(l.machine.RouteLost(false), l.machine.RouteLost(true))
	if ipv6, known := f.IPv6(); known {
		lost = l.machine.RouteLost(ipv6)
	}
	until := lost.Add(e.cfg.RouteHold)
	if lost == 0 || !now.Before(until) {
		return false
	}
	e.reviewBy(until)
	return true
}

// another returns the best other link with a usable path, by its rank, then by the metric
// of its default route, then in the order of appearance; "" if there is none.
func (e *Engine) another(now mihf.Time, not mihf.LinkID, ipv6 mihf.Opt[bool]) mihf.LinkID {
	best, bestRank, bestMetric := mihf.LinkID(""), 0, uint32(0)
	for _, l := range e.order {
		v6, known := ipv6.Get()
		if l.id == not || (known && !l.machine.Usable(v6)) || (!known && !l.machine.AnyUsable()) {
			continue
		}
		rank, metric := l.rank(now), lowestMetric(l.machine.Facts(), ipv6)
		if best == "" || rank < bestRank || (rank == bestRank && metric < bestMetric) {
			best, bestRank, bestMetric = l.id, rank, metric
		}
	}
	return best
}

// rank is lower for links on which a flow is better off: a tunnel may run over the very
// link that fails, a link with an open prediction is about to fail itself, and one in
// hold-down may.
func (l *link) rank(now mihf.Time) int {
	switch {
	case l.id.Type() == mihf.LinkTunnel:
		return 3
	case l.machine.Open() != nil:
		return 2
	case l.machine.HeldDown(now):
		return 1
	}
	return 0
}

func lowestMetric(f *mihf.LinkFacts, ipv6 mihf.Opt[bool]) uint32 {
	lowest := ^uint32(0)
	if f == nil {
		return lowest
	}
	for _, r := range f.Defaults {
		if v6, known := ipv6.Get(); !known || r.IPv6 == v6 {
			lowest = min(lowest, r.Metric)
		}
	}
	return lowest
}
