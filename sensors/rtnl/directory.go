package rtnl

import (
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// directory tells other sensors the ids of links.
type directory struct {
	mu  sync.Mutex // guards all following fields
	ids map[int]mihf.LinkID
}

func (d *directory) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = make(map[int]mihf.LinkID)
}

func (d *directory) set(index int, id mihf.LinkID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids[index] = id
}

func (d *directory) remove(id mihf.LinkID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for index, has := range d.ids {
		if has == id {
			delete(d.ids, index)
		}
	}
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
			d.set(o.Facts.Index, o.Link)
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
