package rtnl

import (
	"fmt"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// Numbers of the kernel that golang.org/x/sys does not name.
const rtmDelNexthop = unix.RTM_NEWNEXTHOP + 1

// maxDirty bounds how many links are looked at one by one; when more have changed,
// everything is read.
const maxDirty = 1024

// linkHint is a reason to look at one link.
type linkHint struct {
	link    bool // at the link itself
	addrs   bool // at its addresses
	virtual bool // it is not hardware
	deleted bool // it was gone for a moment at least
	alive   bool // by the last message about the link itself it is there
	moved   bool // into another namespace
	waited  bool // it was not found, and the message that tells why was waited for
}

func (h linkHint) reason() mihf.DownReason {
	if h.moved {
		return mihf.DownMoved
	}
	return mihf.DownRemoved
}

// hint is what one message means: never a fact, only a reason to look.
type hint struct {
	index int // 0: not about a link
	linkHint
	all      bool // look at everything
	defaults bool // default routes may have changed
	resolve  bool // the kernel's answers may have changed
}

// decodeHint says what a message is a reason for. The zero hint is none: the message is
// of no interest. covers says whether a destination is watched.
func decodeHint(typ uint16, data []byte, covers *watchSet) (hint, error) {
	switch typ {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		l, err := decodeLink(data)
		if err != nil {
			return hint{}, err
		}
		h := hint{index: l.index, linkHint: linkHint{link: true, alive: true, virtual: l.kind != ""}}
		if typ == unix.RTM_DELLINK && l.family != unix.AF_BRIDGE { // a port that leaves its bridge lives on
			h.alive, h.deleted, h.moved = false, true, l.moved
		}
		return h, nil
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		index, _, err := decodeAddr(data)
		if err != nil {
			return hint{}, err
		}
		return hint{index: index, linkHint: linkHint{addrs: true}}, nil
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		r, err := decodeRoute(data)
		if err != nil || r.cloned {
			return hint{}, err
		}
		if r.dst.Bits() == 0 {
			return hint{defaults: true, resolve: true}, nil
		}
		return hint{resolve: covers.covers(r.dst)}, nil
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return hint{resolve: true}, nil
	case unix.RTM_NEWNEXTHOP, rtmDelNexthop:
		return hint{defaults: true, resolve: true}, nil
	case unix.NLMSG_NOOP, unix.NLMSG_DONE:
		return hint{}, nil
	default:
		return hint{}, fmt.Errorf("message type %d was not subscribed to", typ)
	}
}

// hints gathers reasons to look until there is time for it.
type hints struct {
	links    map[int]linkHint
	all      bool
	defaults bool
	resolve  bool
}

func (hs *hints) add(h hint) {
	hs.all = hs.all || h.all
	hs.defaults = hs.defaults || h.defaults
	hs.resolve = hs.resolve || h.resolve
	if h.index != 0 {
		hs.link(h.index, h.linkHint)
	}
}

// link adds a reason to look at one link. A link that is deleted and made again between
// two looks stays marked as deleted.
func (hs *hints) link(index int, h linkHint) {
	old, known := hs.links[index]
	if !known && len(hs.links) >= maxDirty {
		hs.all = true
		return
	}
	if hs.links == nil {
		hs.links = make(map[int]linkHint)
	}
	if !h.link {
		h.alive = old.alive
	}
	hs.links[index] = linkHint{
		alive: h.alive,
		link:  h.link || old.link, addrs: h.addrs || old.addrs, virtual: h.virtual || old.virtual,
		deleted: h.deleted || old.deleted, moved: h.moved || (old.moved && !h.deleted), waited: h.waited || old.waited,
	}
}

func (hs *hints) merge(o hints) {
	hs.all = hs.all || o.all
	hs.defaults = hs.defaults || o.defaults
	hs.resolve = hs.resolve || o.resolve
	for i, h := range o.links {
		hs.link(i, h)
	}
}
