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
	e.catchUp(now)
	f, err := e.table.Add(spec, owner)
	if err != nil {
		return mihf.Registration{}, err
	}
	e.peersStale = true
	own := *spec
	own.Tuples = f.Tuples
	// Every hint takes a sequence number, so that a flow which comes back under its id
	// begins above all epochs that it had.
	r := e.policy.Add(own, owner, f.Link, e.sequence)
	if l := e.links[f.Link]; l != nil {
		e.policy.Characteristics(now, f.ID, l.machine.LCI(), &e.hints)
		if l.machine.EverUp() && !l.machine.Attached() {
			e.policy.Late(now, f.ID, &e.hints)
		}
	}
	e.review(now, f)
	e.flush(now)
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
	e.catchUp(now)
	own := *u
	if u.Tuples != nil || u.Link.Known() {
		e.table.Readdress(f, tuples, link)
		e.peersStale = true
		if own.Tuples != nil {
			own.Tuples = f.Tuples
		}
	}
	e.policy.Update(&own)
	if u.Tuples != nil || u.Link.Known() {
		e.place(now, f, e.table.Place(f))
		e.review(now, f)
		e.flush(now)
	}
	return nil
}

// observeFlow takes how a live flow fares: it has its registered flow know its RTT, and its link what
// it carries. An RTT is
// the same whichever side takes it; the sending side's stands still while it only receives.
func (e *Engine) observeFlow(now mihf.Time, o *mihf.Observation) {
	r := o.Flow
	if r == nil {
		return
	}
	rtt := max(r.RTT.Or(0), r.ReceiveRTT.Or(0))
	for f := range e.table.Matching(&r.Endpoints) {
		e.policy.Measure(now, f.ID, rtt)
	}
	e.fared(now, o)
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

// Tuples returns the 5-tuples of the flows whose RTT is to be measured, at most [MaxTuples].
func (e *Engine) Tuples() []mihf.Endpoints {
	var out []mihf.Endpoints
	for _, f := range e.table.All() {
		for _, t := range f.Tuples {
			if len(out) == MaxTuples {
				return out
			}
			if t.Remote.IsValid() {
				out = append(out, t)
			}
		}
	}
	return out
}
