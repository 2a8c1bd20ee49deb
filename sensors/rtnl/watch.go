package rtnl

import (
	"net/netip"
	"slices"
)

// MaxPeers is how many peers a [Sensor] watches.
const MaxPeers = 4096

// watchSet is the set of addresses whose route matters: the peers and the two probes.
// It is never changed after it was made.
type watchSet struct {
	peers []netip.Addr // sorted, each once
	all   []netip.Addr // with the probes, sorted
}

// newWatchSet also returns how many peers were left out: those above MaxPeers, and
// those that are no addresses.
func newWatchSet(peers []netip.Addr, probes ...netip.Addr) (*watchSet, int) {
	w := &watchSet{}
	left := 0
	for _, p := range peers {
		if !p.IsValid() {
			left++
			continue
		}
		w.peers = append(w.peers, p.Unmap().WithZone(""))
	}
	w.peers = sortedSet(w.peers)
	if n := len(w.peers); n > MaxPeers {
		left += n - MaxPeers
		w.peers = w.peers[:MaxPeers]
	}
	w.all = sortedSet(slices.Concat(w.peers, probes))
	return w, left
}

func sortedSet(a []netip.Addr) []netip.Addr {
	slices.SortFunc(a, netip.Addr.Compare)
	return slices.Compact(a)
}

// covers reports whether a route to p could decide the way to one of the addresses.
func (w *watchSet) covers(p netip.Prefix) bool {
	p = p.Masked()
	i, _ := slices.BinarySearchFunc(w.all, p.Addr(), netip.Addr.Compare)
	return i < len(w.all) && p.Contains(w.all[i])
}
