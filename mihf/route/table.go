package route

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"mihf.dev/mihf"
)

// Bounds of the table.
const (
	MaxFlows = 1 << 16
	MaxPeers = 4096
	maxGroup = 128 // octets of a group's name
)

// Bounds of what a flow may state.
const (
	MaxRTT  = 60 * time.Second
	MaxCost = 24 * time.Hour
)

// Flow is what the table knows of a registered flow.
type Flow struct {
	ID         mihf.FlowID
	Owner      uint32
	Continuity mihf.Continuity
	Tuples     []mihf.Endpoints
	Named      mihf.LinkID // given by the registration
	Link       mihf.LinkID // where it is
}

// IPv6 reports the flow's address family, and whether it is known.
func (f *Flow) IPv6() (ipv6, known bool) {
	for _, t := range f.Tuples {
		for _, a := range []netip.Addr{t.Remote.Addr(), t.Local.Addr()} {
			if a.IsValid() {
				return a.Unmap().Is6(), true
			}
		}
	}
	return false, false
}

// Table holds the registered flows.
type Table struct {
	flows  map[mihf.FlowID]*Flow
	order  []*Flow
	locals map[netip.Addr]mihf.LinkID
	owned  map[mihf.LinkID][]netip.Addr
	peers  map[netip.Addr]mihf.PeerRoute
	egress [2]mihf.LinkID
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		flows: map[mihf.FlowID]*Flow{}, locals: map[netip.Addr]mihf.LinkID{},
		owned: map[mihf.LinkID][]netip.Addr{}, peers: map[netip.Addr]mihf.PeerRoute{},
	}
}

// Check says what is wrong with a registration.
func Check(s *mihf.FlowSpec) error {
	switch {
	case len(s.Tuples) > mihf.MaxTuples:
		return fmt.Errorf("%w: %d tuples, at most %d", mihf.ErrInvalid, len(s.Tuples), mihf.MaxTuples)
	case len(s.Tuples) == 0 && s.Link == "":
		return fmt.Errorf("%w: neither a link nor a tuple, so the flow cannot be placed", mihf.ErrInvalid)
	case s.Link != "" && !s.Link.Valid():
		return fmt.Errorf("%w: link id %q", mihf.ErrInvalid, string(s.Link))
	case len(s.Group) > maxGroup:
		return fmt.Errorf("%w: group name of %d octets, at most %d", mihf.ErrInvalid, len(s.Group), maxGroup)
	case s.Continuity > mihf.ContinuityNone:
		return fmt.Errorf("%w: continuity %d", mihf.ErrInvalid, s.Continuity)
	case s.Direction > mihf.DirectionSend:
		return fmt.Errorf("%w: direction %d", mihf.ErrInvalid, s.Direction)
	case s.Hints.Has(mihf.HintFreeze) && !s.Hints.Has(mihf.HintUnfreeze):
		return fmt.Errorf("%w: a flow that takes freeze must take unfreeze", mihf.ErrInvalid)
	}
	for name, d := range map[string]time.Duration{
		"rtt": s.RTT, "local_drain": s.LocalDrain, "lead": s.Lead, "recovery": s.Recovery,
	} {
		if d < 0 || d > MaxRTT {
			return fmt.Errorf("%w: %s %v is outside 0 to %v", mihf.ErrInvalid, name, d, MaxRTT)
		}
	}
	for name, d := range map[string]time.Duration{"cost_miss": s.CostMiss, "cost_needless": s.CostNeedless, "max_freeze": s.MaxFreeze} {
		if d < 0 || d > MaxCost {
			return fmt.Errorf("%w: %s %v is outside 0 to %v", mihf.ErrInvalid, name, d, MaxCost)
		}
	}
	return nil
}

// Add registers a flow with the id in spec, which must have passed [Check].
func (t *Table) Add(spec *mihf.FlowSpec, owner uint32) (*Flow, error) {
	if _, used := t.flows[spec.ID]; used {
		return nil, fmt.Errorf("%w: flow %s", mihf.ErrExists, spec.ID)
	}
	if len(t.flows) >= MaxFlows {
		return nil, fmt.Errorf("%w: %d flows are registered", mihf.ErrLimit, len(t.flows))
	}
	f := &Flow{ID: spec.ID, Owner: owner, Continuity: spec.Continuity, Tuples: slices.Clone(spec.Tuples), Named: spec.Link}
	f.Link = t.Place(f)
	t.flows[spec.ID] = f
	t.order = append(t.order, f)
	return f, nil
}

// Remove forgets a flow.
func (t *Table) Remove(id mihf.FlowID) {
	f := t.flows[id]
	if f == nil {
		return
	}
	delete(t.flows, id)
	t.order = slices.DeleteFunc(t.order, func(x *Flow) bool { return x == f })
}

// Get returns a flow; nil if it is not registered.
func (t *Table) Get(id mihf.FlowID) *Flow { return t.flows[id] }

// All returns the flows in the order of registration. The slice is the table's own.
func (t *Table) All() []*Flow { return t.order }

// SetAddresses notes which usable addresses a link has; none when it is gone.
func (t *Table) SetAddresses(link mihf.LinkID, f *mihf.LinkFacts) {
	for _, a := range t.owned[link] {
		if t.locals[a] == link {
			delete(t.locals, a)
		}
	}
	delete(t.owned, link)
	if f == nil {
		return
	}
	for _, a := range f.Addresses {
		if a.Usable() {
			t.locals[a.Prefix.Addr()] = link
			t.owned[link] = append(t.owned[link], a.Prefix.Addr())
		}
	}
}

// SetPeer notes the kernel's route to a peer.
func (t *Table) SetPeer(p *mihf.PeerRoute) {
	if _, known := t.peers[p.Peer]; known || len(t.peers) < MaxPeers {
		t.peers[p.Peer] = *p
	}
}

// SetEgress notes the kernel's choice for the outside.
func (t *Table) SetEgress(e *mihf.Egress) {
	t.egress[family(e.IPv6)] = e.Link
}

// Egress returns the kernel's choice for the outside; "" if there is none.
func (t *Table) Egress(ipv6 bool) mihf.LinkID { return t.egress[family(ipv6)] }

// Place returns the link that the flow is on by what is known; "" if by nothing.
func (t *Table) Place(f *Flow) mihf.LinkID {
	if f.Named != "" {
		return f.Named
	}
	for _, x := range f.Tuples {
		if l := t.locals[x.Local.Addr().Unmap()]; l != "" {
			return l
		}
	}
	return t.Towards(f)
}

// Towards returns the link over which the kernel reaches the flow's peer now: by its
// route, else by the default choice of its family; "" if it does not.
func (t *Table) Towards(f *Flow) mihf.LinkID {
	for _, x := range f.Tuples {
		if p, ok := t.peers[x.Remote.Addr().Unmap()]; ok {
			return p.Link
		}
	}
	if ipv6, known := f.IPv6(); known {
		return t.Egress(ipv6)
	}
	if l := t.egress[0]; l != "" {
		return l
	}
	return t.egress[1]
}

// HasAddress reports whether the flow's local address is usable on the link; true where
// the flow names none.
func (t *Table) HasAddress(f *Flow, link mihf.LinkID) bool {
	named := false
	for _, x := range f.Tuples {
		a := x.Local.Addr().Unmap()
		if !a.IsValid() || a.IsUnspecified() {
			continue
		}
		named = true
		if t.locals[a] == link {
			return true
		}
	}
	return !named
}

// PeerOver reports whether the kernel's route to the flow's peer goes over the link; ok is
// false where no such route was looked up.
func (t *Table) PeerOver(f *Flow, link mihf.LinkID) (over, ok bool) {
	for _, x := range f.Tuples {
		if p, known := t.peers[x.Remote.Addr().Unmap()]; known {
			return p.Link == link, true
		}
	}
	return false, false
}

// Peers returns the peers of all flows, each once, at most [MaxPeers], and forgets the
// routes of all others.
func (t *Table) Peers() []netip.Addr {
	seen := map[netip.Addr]bool{}
	var out []netip.Addr
	for _, f := range t.order {
		for _, x := range f.Tuples {
			a := x.Remote.Addr().Unmap()
			if a.IsValid() && !a.IsUnspecified() && !seen[a] && len(out) < MaxPeers {
				seen[a] = true
				out = append(out, a)
			}
		}
	}
	for a := range t.peers {
		if !seen[a] {
			delete(t.peers, a)
		}
	}
	return out
}

func family(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}
