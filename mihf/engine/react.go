package engine

import "mihf.dev/mihf"

// react lets the flows follow an event.
func (e *Engine) react(now mihf.Time, ev *mihf.Event) {
	switch ev.Kind {
	case mihf.LinkGoingDown:
		e.announced(now, ev)
	case mihf.LinkEventRollback, mihf.PredictionExpired:
		e.policy.Ended(now, &ev.Prediction, e.resuming, &e.hints)
		e.ended(now, ev)
	case mihf.LinkDown:
		e.policy.Down(now, ev.Link, &e.hints)
		e.ended(now, ev)
		e.again = true
	case mihf.LinkRemoved:
		e.policy.Removed(now, ev.Link, &e.hints)
	case mihf.LinkHandoverComplete:
		if h := ev.Handover; h.OldLink == h.NewLink {
			e.policy.HandedOver(now, ev.Link, ev.Prediction.ID, &e.hints)
			e.ended(now, ev)
			e.handedOver(now, ev)
		}
	case mihf.PathUsable:
		e.thaw(now, e.links[ev.Link])
		e.prepareOthers(now, ev.Link)
	default:
	}
}

// announced records why, and tells the flows that rebind where they would go.
func (e *Engine) announced(now mihf.Time, ev *mihf.Event) {
	l, p := e.links[ev.Link], &ev.Prediction
	if p.Revision == 0 {
		e.explain.opened(l, p, e.cfg.Link.Horizon)
	} else {
		e.explain.revised(p)
		e.policy.Revised(now, l.id, p)
	}
	e.prepare(now, l, p)
}

func (e *Engine) ended(now mihf.Time, ev *mihf.Event) {
	if !ev.Prediction.ID.IsZero() {
		e.explain.ended(now, e.links[ev.Link], &ev.Prediction)
	}
}

// prepare tells the flows of a link that is about to be lost and that rebind where they
// would go, each once.
func (e *Engine) prepare(now mihf.Time, l *link, p *mihf.Prediction) {
	if p.Cause != mihf.CauseLoss {
		return
	}
	any4, any6, anyOf := e.another(now, l.id, mihf.Some(false)), e.another(now, l.id, mihf.Some(true)), e.another(now, l.id, mihf.Opt[bool]{})
	if anyOf == "" {
		return
	}
	for _, f := range e.table.All() {
		if f.Link != l.id || f.Continuity != mihf.ContinuityRebinds {
			continue
		}
		target := anyOf
		switch ipv6, known := f.IPv6(); {
		case known && ipv6:
			target = any6
		case known:
			target = any4
		}
		if target != "" {
			e.policy.Prepare(now, f.ID, target, p, &e.hints)
		}
	}
}

// prepareOthers looks at the links with a prediction after a path over another one became
// usable.
func (e *Engine) prepareOthers(now mihf.Time, not mihf.LinkID) {
	for _, l := range e.order {
		if l.id != not && l.machine.Open() != nil {
			p := l.machine.Expected(now)
			e.prepare(now, l, &p)
		}
	}
}

// handedOver thaws the flows of a link after a handover inside it: at once where no path
// was lost, else when one is usable again, which its own event says.
func (e *Engine) handedOver(now mihf.Time, ev *mihf.Event) {
	l := e.links[ev.Link]
	l.thawAs = mihf.UnfreezeHandoverComplete
	if gap, known := ev.Handover.DataGap.Get(); known && gap == 0 {
		e.thaw(now, l)
	}
}

// thaw looks at the flows of one link after its path became usable.
func (e *Engine) thaw(now mihf.Time, l *link) {
	for _, f := range e.table.All() {
		if f.Link == l.id && e.usable(l, f) {
			e.policy.Usable(now, f.ID, l.thawAs, l.machine.LCI(), &e.hints)
		}
	}
}

// weighAddress corrects an address change that the link alone takes for minor: the coming
// or going of an address that a flow uses is not.
func (e *Engine) weighAddress(ev *mihf.Event) {
	if ev.Kind != mihf.AddressChanged || !ev.Address.Minor {
		return
	}
	was, is := ev.Address.Old.Prefix, ev.Address.New.Prefix
	switch {
	case !is.IsValid():
		ev.Address.Minor = !e.table.Uses(was.Addr())
	case !was.IsValid():
		ev.Address.Minor = !e.table.Uses(is.Addr())
	}
}
