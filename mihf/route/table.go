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

// Flow is what the table knows of a registered flow. Its owner may change the fields from
// Link on; the others are the table's.
type Flow struct {
	ID         mihf.FlowID
	Owner      uint32
	Continuity mihf.Continuity
	Tuples     []mihf.Endpoints
	Grouped    bool
	Named      mihf.LinkID // given by the registration, or the one it was switched to since

	Link        mihf.LinkID // where it is
	Home        mihf.LinkID // where its own address was seen last
	SwitchedAt  mihf.Time   // when it was last told to go to another link
	Diverged    mihf.Time   // since when the kernel has preferred another link
	AddressGone mihf.Time   // since when its home is usable, but without its address

	at int // place in Table.order
}

// Follows reports whether the flow goes where the kernel prefers to go, although it could
// stay: not if its transport chose the link (by name, or as one of several subflows),
// unless it was switched since.
func (f *Flow) Follows() bool { return f.SwitchedAt != 0 || (f.Named == "" && !f.Grouped) }

// IPv6 reports the flow's address family; it is not known where no address is given, or
// addresses of both.
func (f *Flow) IPv6() (ipv6, known bool) {
	for _, t := range f.Tuples {
		for _, a := range [...]netip.Addr{t.Remote.Addr(), t.Local.Addr()} {
			if !a.IsValid() {
				continue
			}
			six := a.Unmap().Is6()
			if known && six != ipv6 {
				return false, false
			}
			ipv6, known = six, true
		}
	}
	return ipv6, known
}

// Local reports whether the flow's peer is on the link itself, by its link-local address.
func (f *Flow) Local() bool {
	for _, t := range f.Tuples {
		if t.Remote.Addr().IsLinkLocalUnicast() {
			return true
		}
	}
	return false
}

// plain is the form of an address in the table.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Table holds the registered flows.
type Table struct {
	flows   map[mihf.FlowID]*Flow
	order   []*Flow
	remotes map[netip.Addr][]*Flow
	locals  map[netip.Addr][]mihf.LinkID // that have the address, in the order of arrival
	owned   map[mihf.LinkID][]mihf.Address
	peers   map[netip.Addr]mihf.PeerRoute
	egress  [2]mihf.LinkID
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		flows: map[mihf.FlowID]*Flow{}, remotes: map[netip.Addr][]*Flow{}, locals: map[netip.Addr][]mihf.LinkID{},
		owned: map[mihf.LinkID][]mihf.Address{}, peers: map[netip.Addr]mihf.PeerRoute{},
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
	case s.Hints&^mihf.AllHints != 0:
		return fmt.Errorf("%w: unknown kinds of hint", mihf.ErrInvalid)
	case s.Hints.Has(mihf.HintFreeze) && !s.Hints.Has(mihf.HintUnfreeze):
		return fmt.Errorf("%w: a flow that takes freeze must take unfreeze", mihf.ErrInvalid)
	}
	return checkDurations(s)
}

func checkDurations(s *mihf.FlowSpec) error {
	for _, x := range [...]struct {
		name   string
		d, max time.Duration
	}{
		{"rtt", s.RTT, MaxRTT},
		{"local_drain", s.LocalDrain, MaxRTT},
		{"lead", s.Lead, MaxRTT},
		{"recovery", s.Recovery, MaxRTT},
		{"cost_miss", s.CostMiss, MaxCost},
		{"cost_needless", s.CostNeedless, MaxCost},
		{"max_freeze", s.MaxFreeze, MaxCost},
	} {
		if x.d < 0 || x.d > x.max {
			return fmt.Errorf("%w: %s %v is outside 0 to %v", mihf.ErrInvalid, x.name, x.d, x.max)
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
	f := &Flow{
		ID: spec.ID, Owner: owner, Continuity: spec.Continuity, Grouped: spec.Group != "", Named: spec.Link, at: len(t.order),
	}
	t.setTuples(f, spec.Tuples)
	f.Link = t.Place(f)
	t.flows[spec.ID] = f
	t.order = append(t.order, f)
	return f, nil
}

// Readdress gives a flow other tuples, and another name of its link.
func (t *Table) Readdress(f *Flow, tuples []mihf.Endpoints, named mihf.LinkID) {
	f.Named = named
	t.setTuples(f, tuples)
}

func (t *Table) setTuples(f *Flow, tuples []mihf.Endpoints) {
	for _, x := range f.Tuples {
		a := plain(x.Remote.Addr())
		list := t.remotes[a]
		if i := slices.Index(list, f); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if t.remotes[a] = list; len(list) == 0 {
			delete(t.remotes, a)
		}
	}
	f.Tuples = slices.Clone(tuples)
	for _, x := range f.Tuples {
		if a := plain(x.Remote.Addr()); a.IsValid() && !slices.Contains(t.remotes[a], f) {
			t.remotes[a] = append(t.remotes[a], f)
		}
	}
}

// Remove forgets a flow.
func (t *Table) Remove(id mihf.FlowID) {
	f := t.flows[id]
	if f == nil {
		return
	}
	t.setTuples(f, nil)
	delete(t.flows, id)
	last := len(t.order) - 1
	t.order[f.at] = t.order[last]
	t.order[f.at].at = f.at
	t.order[last] = nil
	t.order = t.order[:last]
}

// Get returns a flow; nil if it is not registered.
func (t *Table) Get(id mihf.FlowID) *Flow { return t.flows[id] }

// All returns the flows; one that was removed has left its place to the last. The slice
// is the table's own.
func (t *Table) All() []*Flow { return t.order }

// Uses reports whether a flow has the address as its own.
func (t *Table) Uses(a netip.Addr) bool {
	a = plain(a)
	return slices.ContainsFunc(t.order, func(f *Flow) bool {
		return slices.ContainsFunc(f.Tuples, func(x mihf.Endpoints) bool { return plain(x.Local.Addr()) == a })
	})
}

// Matching calls yield for each flow one of whose tuples has these endpoints; what a tuple
// leaves open matches, but for its peer's address.
func (t *Table) Matching(is *mihf.Endpoints) func(yield func(*Flow) bool) {
	return func(yield func(*Flow) bool) {
		for _, f := range t.remotes[plain(is.Remote.Addr())] {
			for i := range f.Tuples {
				if !matches(&f.Tuples[i], is) {
					continue
				}
				if !yield(f) {
					return
				}
				break
			}
		}
	}
}

func matches(tuple, is *mihf.Endpoints) bool {
	local := plain(tuple.Local.Addr())
	return (tuple.Protocol == 0 || tuple.Protocol == is.Protocol) &&
		plain(tuple.Remote.Addr()) == plain(is.Remote.Addr()) &&
		(tuple.Remote.Port() == 0 || tuple.Remote.Port() == is.Remote.Port()) &&
		(!local.IsValid() || local.IsUnspecified() || local == plain(is.Local.Addr())) &&
		(tuple.Local.Port() == 0 || tuple.Local.Port() == is.Local.Port())
}

// To returns the flows with a peer. The slice is the table's own.
func (t *Table) To(peer netip.Addr) []*Flow { return t.remotes[plain(peer)] }
