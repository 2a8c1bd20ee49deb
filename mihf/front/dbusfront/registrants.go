package dbusfront

import (
	"maps"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/proto/dbusapi"
)

// registrants are the connections that registered flows, so that they can be told of them.
// A flow is forgotten when its object is gone, or its attachment. The zero registrants is
// empty.
type registrants struct {
	mu    sync.Mutex // guards the following
	flows map[mihf.FlowID]registrant
	looks uint64
}

type registrant struct {
	a     *attached
	since uint64 // the look that was the newest then
}

// set notes who registered a flow.
func (r *registrants) set(id mihf.FlowID, a *attached) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flows == nil {
		r.flows = map[mihf.FlowID]registrant{}
	}
	r.flows[id] = registrant{a, r.looks}
}

// name returns the name of the connection that registered a flow; "": none.
func (r *registrants) name(id mihf.FlowID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, ok := r.flows[id]; ok {
		return of.a.p.name
	}
	return ""
}

// drop forgets the flows of an attachment.
func (r *registrants) drop(a *attached) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.flows, func(_ mihf.FlowID, of registrant) bool { return of.a == a })
}

// look says that the objects are read from now on.
func (r *registrants) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks++
}

// prune forgets what was noted before the last look and is not among the objects that it
// found: also a flow that came and went between two looks.
func (r *registrants) prune(found objects) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.flows, func(id mihf.FlowID, of registrant) bool {
		return of.since < r.looks && found[dbusapi.FlowPath(id)] == nil
	})
}
