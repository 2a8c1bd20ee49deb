package manet

import (
	"container/heap"
	"slices"
)

// FlowID names an association within a Network. The caller gives it.
type FlowID uint32

// RegionID names an L-region by its central node. The caller gives it.
type RegionID uint32

// Share is what a flow was given.
type Share struct {
	CLoad      float64  // part of the load of each of its regions, 0 to 1
	Bottleneck RegionID // the full region that bounds it, where Bounded
	Bounded    bool     // false: the flow has all that it asked for
}

// Network holds which flow is in which regions. The zero value is an empty network.
type Network struct {
	flows   map[FlowID]*flow
	regions map[RegionID]*region
	touched []*region // what changed since the last allocation, and isn't looked at yet
	round   uint64    // of Allocate; what was visited in this round carries it
}

type flow struct {
	id      FlowID
	regions []*region // sorted by id, without repetition
	demand  *region   // a region of its own, as large as what it asks for
	share   Share
	fresh   bool // has no share in this round yet
	visited uint64
}

type region struct {
	id      RegionID
	own     bool // the demand of one flow, not a place
	limit   float64
	flows   []*flow
	left    float64 // load not assigned yet, in this round
	fresh   int     // flows without a share, in this round
	level   float64 // what it suggests to each of them, when last computed
	visited uint64
}

// SetFlow adds a flow that is in the regions, or moves it there. Where it is there
// already, nothing has changed. A flow in no region has all that it asks for.
func (n *Network) SetFlow(id FlowID, in ...RegionID) {
	in = slices.Clone(in)
	slices.Sort(in)
	in = slices.Compact(in)
	f := n.flow(id)
	if slices.EqualFunc(f.regions, in, func(r *region, id RegionID) bool { return r.id == id }) {
		return
	}
	n.leave(f)
	for _, id := range in {
		r := n.region(id)
		r.flows = append(r.flows, f)
		f.regions = append(f.regions, r)
	}
	n.touch(f)
}

// SetDemand says how much of the load the flow can use at most, 0 to 1: what it leaves
// is shared by the others. A flow is added with demand 1. Values beyond 0 to 1, and NaN,
// are taken as 1. A flow that is not there is added, in no region.
func (n *Network) SetDemand(id FlowID, cload float64) {
	if !(cload >= 0 && cload <= 1) {
		cload = 1
	}
	f := n.flow(id)
	if f.demand.limit != cload {
		f.demand.limit = cload
		n.touch(f)
	}
}

// RemoveFlow takes a flow out; one that is not there is no error.
func (n *Network) RemoveFlow(id FlowID) {
	f, ok := n.flows[id]
	if !ok {
		return
	}
	n.leave(f)
	delete(n.flows, id)
}

// Share returns what the last allocation gave to the flow.
func (n *Network) Share(id FlowID) (Share, bool) {
	f, ok := n.flows[id]
	if !ok {
		return Share{}, false
	}
	return f.share, true
}

// Len returns the numbers of flows and of regions with a flow in them.
func (n *Network) Len() (flows, regions int) { return len(n.flows), len(n.regions) }

func (n *Network) flow(id FlowID) *flow {
	if f, ok := n.flows[id]; ok {
		return f
	}
	if n.flows == nil {
		n.flows, n.regions = map[FlowID]*flow{}, map[RegionID]*region{}
	}
	f := &flow{id: id}
	f.demand = &region{own: true, limit: 1, flows: []*flow{f}}
	n.flows[id] = f
	n.touch(f)
	return f
}

func (n *Network) region(id RegionID) *region {
	r, ok := n.regions[id]
	if !ok {
		r = &region{id: id, limit: 1}
		n.regions[id] = r
	}
	return r
}

// leave takes the flow out of its regions. They count as touched: others have more now.
func (n *Network) leave(f *flow) {
	n.touch(f)
	for _, r := range f.regions {
		i := slices.Index(r.flows, f)
		last := len(r.flows) - 1
		r.flows[i] = r.flows[last]
		r.flows[last] = nil
		r.flows = r.flows[:last]
		if last == 0 {
			delete(n.regions, r.id)
		}
	}
	f.regions = nil
}

func (n *Network) touch(f *flow) {
	n.touched = append(append(n.touched, f.demand), f.regions...)
}

// Allocate gives every flow its share and returns the flows whose share is another one
// than before, in the order of their ids. Only what is connected by regions with a change
// since the last call is computed.
func (n *Network) Allocate() []FlowID {
	n.round++
	var changed []FlowID
	for _, r := range n.touched {
		if r.own && n.flows[r.flows[0].id] != r.flows[0] {
			continue // the demand of a flow that was removed
		}
		changed = n.allocate(r, changed)
	}
	n.touched = nil
	slices.Sort(changed)
	return changed
}

// allocate computes all that is connected with r, by itself: two parts of a network that
// share no region have nothing to do with each other, in rounding neither.
func (n *Network) allocate(r *region, changed []FlowID) []FlowID {
	flows, regions := n.connected(r)
	before := make([]Share, len(flows))
	for i, f := range flows {
		before[i] = f.share
		f.fresh = true
	}
	fill(regions)
	for i, f := range flows {
		if f.share != before[i] {
			changed = append(changed, f.id)
		}
	}
	return changed
}

// connected returns the regions that a change of r can reach, and the flows in them:
// none where this round has been there.
func (n *Network) connected(r *region) ([]*flow, []*region) {
	var flows []*flow
	var regions []*region
	visit := func(r *region) {
		if r.visited != n.round && len(r.flows) > 0 {
			r.visited = n.round
			regions = append(regions, r)
		}
	}
	visit(r)
	for i := 0; i < len(regions); i++ { // grows as it goes
		for _, f := range regions[i].flows {
			if f.visited == n.round {
				continue
			}
			f.visited = n.round
			flows = append(flows, f)
			visit(f.demand)
			for _, r := range f.regions {
				visit(r)
			}
		}
	}
	return flows, regions
}

// tie is how far apart, relatively, two suggestions may be and count as the same one:
// far above rounding, far below anything that a rate limit could show.
const tie = 1e-12

// fill is the central algorithm (3.3 of the paper). The regions with the smallest
// suggestion give it to the flows in them that have no share yet, until all have one.
func fill(regions []*region) {
	for _, r := range regions {
		r.left, r.fresh = r.limit, len(r.flows)
		r.suggest()
	}
	q := queue(regions)
	heap.Init(&q)
	var lowest []*region
	for len(q) > 0 {
		lowest = q.lowest(lowest[:0])
		for _, r := range lowest {
			level := lowest[0].level
			for _, f := range r.flows {
				if f.fresh {
					f.assign(Share{CLoad: level, Bottleneck: r.id, Bounded: !r.own})
				}
			}
		}
	}
}

func (f *flow) assign(s Share) {
	if !s.Bounded {
		s.Bottleneck = 0
	}
	f.share, f.fresh = s, false
	f.demand.take(s.CLoad)
	for _, r := range f.regions {
		r.take(s.CLoad)
	}
}

func (r *region) take(cload float64) {
	r.left = max(0, r.left-cload)
	r.fresh--
}

func (r *region) suggest() { r.level = r.left / float64(r.fresh) }

// queue is a heap by the suggested share. A suggestion only grows while others are
// assigned less, so that it is computed again only when it has come to the top.
type queue []*region

// lowest appends the regions that suggest the smallest share, the smallest first, and
// takes them off the queue.
func (q *queue) lowest(out []*region) []*region {
	for len(*q) > 0 {
		r := (*q)[0]
		if r.fresh == 0 {
			heap.Pop(q)
			continue
		}
		stale := r.level
		if r.suggest(); r.level > stale {
			heap.Fix(q, 0)
			continue
		}
		if len(out) > 0 && r.level > out[0].level*(1+tie) {
			break
		}
		out = append(out, heap.Pop(q).(*region))
	}
	return out
}

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*region)) }

func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.level != b.level:
		return a.level < b.level
	case a.own != b.own:
		return b.own // a place bounds, where it gives no more than was asked for
	}
	return a.id < b.id
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return r
}
