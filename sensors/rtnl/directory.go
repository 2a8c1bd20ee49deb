package rtnl

import (
	"net/netip"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// directory tells other sensors the ids of links, and whose an address is.
type directory struct {
	mu        sync.Mutex // guards all following fields
	ids       map[int]mihf.LinkID
	addresses map[mihf.LinkID][]mihf.Address
	whose     map[netip.Addr]mihf.LinkID // given away, so never changed; nil: to be made anew
}

func (d *directory) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids, d.addresses, d.whose = make(map[int]mihf.LinkID), make(map[mihf.LinkID][]mihf.Address), nil
}

func (d *directory) set(f *mihf.LinkFacts, id mihf.LinkID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids[f.Index] = id
	d.addresses[id], d.whose = f.Addresses, nil
}

func (d *directory) remove(id mihf.LinkID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for index, has := range d.ids {
		if has == id {
			delete(d.ids, index)
		}
	}
	delete(d.addresses, id)
	d.whose = nil
}

// around returns emit with the directory kept: a link has its id there when it has been
// emitted, and none any more before its end is.
func (d *directory) around(emit sensors.Emit) sensors.Emit {
	return func(o *mihf.Observation) {
		if o.Kind == mihf.ObsLinkGone {
			d.remove(o.Link)
		}
		emit(o)
		if o.Kind == mihf.ObsLink {
			d.set(o.Facts, o.Link)
		}
	}
}

// Link returns the id of the link with an ifindex, false where none is published. It may
// be called by any goroutine.
func (s *Sensor) Link(index int) (mihf.LinkID, bool) {
	s.links.mu.Lock()
	defer s.links.mu.Unlock()
	id, ok := s.links.ids[index]
	return id, ok
}

// Addresses returns the addresses of all links that are published, each with its link; "" for
// an address that several have. It may be called by any goroutine; what it returns is not to
// be changed.
func (s *Sensor) Addresses() map[netip.Addr]mihf.LinkID {
	d := &s.links
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.whose == nil {
		d.whose = make(map[netip.Addr]mihf.LinkID)
		for id, list := range d.addresses {
			for _, a := range list {
				addr := a.Prefix.Addr()
				if _, taken := d.whose[addr]; taken {
					d.whose[addr] = ""
					continue
				}
				d.whose[addr] = id
			}
		}
	}
	return d.whose
}
