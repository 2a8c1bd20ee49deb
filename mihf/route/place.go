package route

import (
	"net/netip"
	"slices"

	"mihf.dev/mihf"
)

// SetAddresses notes which addresses a link has; none when it is gone.
func (t *Table) SetAddresses(link mihf.LinkID, f *mihf.LinkFacts) {
	var now []mihf.Address
	if f != nil {
		now = f.Addresses
	}
	for _, a := range t.owned[link] {
		if !holds(now, plain(a.Prefix.Addr())) {
			t.disown(link, plain(a.Prefix.Addr()))
		}
	}
	for _, a := range now {
		if addr := plain(a.Prefix.Addr()); !a.Tentative && !slices.Contains(t.locals[addr], link) {
			t.locals[addr] = append(t.locals[addr], link)
		}
	}
	if t.owned[link] = now; len(now) == 0 {
		delete(t.owned, link)
	}
}

// holds reports whether one of the addresses is a and not tentative.
func holds(list []mihf.Address, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(x mihf.Address) bool { return !x.Tentative && plain(x.Prefix.Addr()) == a })
}

func (t *Table) disown(link mihf.LinkID, a netip.Addr) {
	list := t.locals[a]
	if i := slices.Index(list, link); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if t.locals[a] = list; len(list) == 0 {
		delete(t.locals, a)
	}
}

// SetPeer notes the kernel's route to a peer.
func (t *Table) SetPeer(p *mihf.PeerRoute) {
	peer := plain(p.Peer)
	if _, known := t.peers[peer]; known || len(t.peers) < MaxPeers {
		t.peers[peer] = *p
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
		switch on := t.locals[plain(x.Local.Addr())]; {
		case slices.Contains(on, f.Link):
			return f.Link // of several links with one address it stays on its own
		case len(on) > 0:
			return on[0]
		}
	}
	return t.Towards(f)
}

// Towards returns the link over which the kernel reaches the flow's peer now: by its
// route, else by the default choice of its family; "" if it does not.
func (t *Table) Towards(f *Flow) mihf.LinkID {
	looked := false
	for _, x := range f.Tuples {
		p, ok := t.peers[plain(x.Remote.Addr())]
		if p.Link != "" {
			return p.Link
		}
		looked = looked || ok
	}
	if looked {
		return "" // the kernel says that it does not
	}
	if ipv6, known := f.IPv6(); known {
		return t.Egress(ipv6)
	}
	if l := t.egress[0]; l != "" {
		return l
	}
	return t.egress[1]
}

// Presence is whether a flow's own address is on a link.
type Presence uint8

// Presences.
const (
	AddressUnnamed   Presence = iota // the flow names no local address
	AddressAbsent                    // it is not there
	AddressTentative                 // it is there and cannot be used yet
	AddressUsable
)

// Address reports whether the flow's local address is on the link; of several the best.
func (t *Table) Address(f *Flow, link mihf.LinkID) Presence {
	best := AddressUnnamed
	for _, x := range f.Tuples {
		a := plain(x.Local.Addr())
		if !a.IsValid() || a.IsUnspecified() {
			continue
		}
		best = max(best, AddressAbsent)
		for _, has := range t.owned[link] {
			switch {
			case plain(has.Prefix.Addr()) != a:
			case has.Tentative:
				best = max(best, AddressTentative)
			default:
				return AddressUsable
			}
		}
	}
	return best
}

// PeerOver reports whether the kernel's route to one of the flow's peers goes over the
// link; ok is false where no such route was looked up.
func (t *Table) PeerOver(f *Flow, link mihf.LinkID) (over, ok bool) {
	for _, x := range f.Tuples {
		if p, known := t.peers[plain(x.Remote.Addr())]; known {
			over, ok = over || p.Link == link, true
		}
	}
	return over, ok
}

// routed reports whether the route to an address says where its flows are.
func routed(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsLinkLocalUnicast() && !a.IsMulticast()
}

// Peers returns the peers of all flows, each once, at most [MaxPeers], and forgets the
// routes of all others.
func (t *Table) Peers() []netip.Addr {
	seen := map[netip.Addr]bool{}
	var out []netip.Addr
	for _, f := range t.order {
		for _, x := range f.Tuples {
			a := plain(x.Remote.Addr())
			if routed(a) && !seen[a] && len(out) < MaxPeers {
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
