package nl80211

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// maxRadios bounds the interfaces that are looked at.
const maxRadios = 64

// state is all interfaces as they were read last. It is pure: the shell puts in what it
// heard and read, and publishes what [state.flush] returns.
type state struct {
	cfg     *config
	alone   bool // no other sensor says that a link is gone
	radios  map[int]*radio
	ignored map[int]bool // interfaces of other types
	left    int          // interfaces beyond maxRadios
	listAt  mihf.Time    // when the interfaces are to be listed
	out     []mihf.Observation
}

func newState(cfg *config, alone bool) *state {
	return &state{cfg: cfg, alone: alone, radios: make(map[int]*radio), ignored: make(map[int]bool)}
}

// ordered returns the radios by ifindex.
func (st *state) ordered() []*radio {
	return slices.SortedFunc(maps.Values(st.radios), func(a, b *radio) int { return cmp.Compare(a.info.index, b.info.index) })
}

// list asks for the interfaces to be listed.
func (st *state) list(at mihf.Time) { st.listAt = mihf.Sooner(st.listAt, at) }

// heard takes a message of the kernel.
func (st *state) heard(now mihf.Time, e *event) {
	switch e.cmd {
	case unix.NL80211_CMD_DEL_INTERFACE:
		st.remove(now, e.index)
		st.list(now)
		return
	case unix.NL80211_CMD_NEW_INTERFACE, unix.NL80211_CMD_SET_INTERFACE, unix.NL80211_CMD_NEW_WIPHY, unix.NL80211_CMD_DEL_WIPHY:
		st.list(now)
	}
	if r := st.radios[e.index]; r != nil {
		r.heard(now, e)
	} else if e.index != 0 && !st.ignored[e.index] {
		st.list(now)
	}
}

// lost says that messages were lost: what they told is not known.
func (st *state) lost(now mihf.Time) {
	st.list(now)
	for _, r := range st.radios {
		r.end, r.scanning = ending{}, false
		r.look(now)
		r.results(now)
	}
}

// setInterfaces stores the list of all interfaces.
func (st *state) setInterfaces(now mihf.Time, list []iface) {
	st.listAt = now.Add(st.cfg.reconcile)
	there := make(map[int]bool, len(list))
	clear(st.ignored)
	st.left = 0
	for _, i := range list {
		if !i.follows() {
			if r := st.radios[i.index]; r != nil {
				st.retire(now, r)
			}
			if i.index > 0 && len(st.ignored) < maxRadios {
				st.ignored[i.index] = true
			}
			continue
		}
		r := st.radios[i.index]
		if r != nil && r.info.peers() != i.peers() {
			st.retire(now, r)
			r = nil
		}
		if r == nil && len(st.radios) >= maxRadios {
			st.left++
			st.ignored[i.index] = true
			continue
		}
		there[i.index] = true
		if r == nil {
			st.radios[i.index] = newRadio(now, st.cfg, i)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(st.radios)) {
		if !there[index] {
			st.remove(now, index)
		}
	}
}

// retire forgets an interface that is there, but is nothing that attaches any more: whether
// its link is up is for the kernel's own state to say.
func (st *state) retire(now mihf.Time, r *radio) {
	delete(st.radios, r.info.index)
	if r.sent != nil {
		st.out = append(st.out, mihf.Observation{
			At: now, Sensor: Name, Link: r.id, Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationNone},
		})
	}
}

// remove forgets an interface. That the link is gone is for the sensor of links to say.
func (st *state) remove(now mihf.Time, index int) {
	r := st.radios[index]
	if r == nil {
		return
	}
	delete(st.radios, index)
	if st.alone && r.sent != nil {
		st.out = append(st.out, mihf.Observation{At: now, Sensor: Name, Link: r.id, Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
	}
}

// flush returns what is to be published.
func (st *state) flush(now mihf.Time) []mihf.Observation {
	out := st.out
	st.out = nil
	for _, r := range st.ordered() {
		out = append(out, r.flush(now)...)
	}
	return out
}

// next returns when there is something to do.
func (st *state) next() mihf.Time {
	next := st.listAt
	for _, r := range st.radios {
		next = mihf.Sooner(next, r.next())
	}
	return next
}
