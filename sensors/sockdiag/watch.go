package sockdiag

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// MaxWatched is how many 5-tuples a [Sensor] watches.
const MaxWatched = 4096

// watchSet is the flows that matter most. It is never changed after it was made.
type watchSet struct {
	tuples []mihf.Endpoints // each once
	byPeer map[netip.Addr][]mihf.Endpoints
}

// newWatchSet also returns how many were left out: those above MaxWatched. What is not TCP, or has
// no peer, is none of this sensor's.
func newWatchSet(tuples []mihf.Endpoints) (*watchSet, int) {
	w := &watchSet{byPeer: map[netip.Addr][]mihf.Endpoints{}}
	seen := map[mihf.Endpoints]bool{}
	left := 0
	for _, t := range tuples {
		t = plainTuple(t)
		switch {
		case t.Protocol != 0 && t.Protocol != unix.IPPROTO_TCP, !t.Remote.Addr().IsValid(), seen[t]:
			continue
		case len(w.tuples) == MaxWatched:
			left++
			continue
		}
		seen[t] = true
		w.tuples = append(w.tuples, t)
		w.byPeer[t.Remote.Addr()] = append(w.byPeer[t.Remote.Addr()], t)
	}
	return w, left
}

// plainTuple brings a tuple into the form that sockets have here.
func plainTuple(t mihf.Endpoints) mihf.Endpoints {
	t.Local, t.Remote = plain(t.Local), plain(t.Remote)
	if t.Local.Addr().IsUnspecified() {
		t.Local = netip.AddrPortFrom(netip.Addr{}, t.Local.Port())
	}
	return t
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// has reports whether a socket's ends are those of a tuple; what a tuple leaves open matches.
func (w *watchSet) has(is *mihf.Endpoints) bool {
	for _, t := range w.byPeer[is.Remote.Addr()] {
		if (t.Remote.Port() == 0 || t.Remote.Port() == is.Remote.Port()) &&
			(!t.Local.Addr().IsValid() || t.Local.Addr() == is.Local.Addr()) &&
			(t.Local.Port() == 0 || t.Local.Port() == is.Local.Port()) {
			return true
		}
	}
	return false
}

// without returns the tuples that another set lacks.
func (w *watchSet) without(old *watchSet) *watchSet {
	had := make(map[mihf.Endpoints]bool, len(old.tuples))
	for _, t := range old.tuples {
		had[t] = true
	}
	var fresh []mihf.Endpoints
	for _, t := range w.tuples {
		if !had[t] {
			fresh = append(fresh, t)
		}
	}
	set, _ := newWatchSet(fresh)
	return set
}

// alternatives are what the kernel is to choose by: links' addresses, and tuples that these do not cover; more
// than the kernel takes means all.
func (w *watchSet) alternatives(links map[netip.Addr]mihf.LinkID) []alternative {
	var out []alternative
	for a := range links {
		out = append(out, alternative{local: endpoint{addr: a}})
	}
	for _, t := range w.tuples {
		if _, covered := links[t.Local.Addr()]; covered {
			continue
		}
		if len(out) > maxAlternatives {
			break
		}
		out = append(out, alternative{
			local: endpoint{t.Local.Addr(), t.Local.Port()}, remote: endpoint{t.Remote.Addr(), t.Remote.Port()},
		})
	}
	return out
}
