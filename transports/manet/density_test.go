package manet_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/transports/manet"
)

// air is a world of nodes in virtual time: a datagram is heard by all that are near, a
// millisecond or three later, or is lost.
type air struct {
	t     testing.TB
	rng   *rand.Rand
	now   mihf.Time
	nodes []*node
	near  [][]int
	queue arrivals
	loss  float64
}

type node struct {
	*manet.Density
	air   *air
	index int
	dead  bool
	flows []manet.Local
	hop   map[int]int    // destination -> next hop
	rate  map[int]uint64 // next hop -> bit/s
	clock time.Duration  // what this node's clock is ahead
}

type arrival struct {
	at       mihf.Time
	from, to int
	b        []byte
}

type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i) + 1}) }

func indexOf(a netip.Addr) int { b := a.As4(); return int(b[2])<<8 + int(b[3]) - 1 }

func (n *node) Mine(a netip.Addr) bool { return a == addr(n.index) }

func (n *node) NextHop(dst netip.Addr) (netip.Addr, uint64, bool) {
	next, ok := n.hop[indexOf(dst)]
	if !ok {
		return netip.Addr{}, 0, false
	}
	return addr(next), n.rate[next], true
}

func (n *node) now() mihf.Time { return n.air.now.Add(n.clock) }

// newAir makes a node for each row of near, with shortest routes.
func newAir(t testing.TB, near [][]int, seed uint64, key []byte) *air {
	t.Helper()
	a := &air{t: t, rng: rand.New(rand.NewPCG(seed, 9)), now: mihf.Time(time.Hour), near: near}
	for i := range near {
		n := &node{air: a, index: i, hop: map[int]int{}, rate: map[int]uint64{}}
		n.Density = manet.NewDensity(manet.Config{Node: uint32(i + 1), Boot: 1, Key: key, Router: n})
		a.nodes = append(a.nodes, n)
	}
	a.routes()
	return a
}

// routes gives every node its shortest ways to all others.
func (a *air) routes() {
	for dst := range a.near {
		dist := map[int]int{dst: 0}
		for todo := []int{dst}; len(todo) > 0; todo = todo[1:] {
			for _, i := range a.near[todo[0]] {
				if _, ok := dist[i]; !ok && !a.nodes[i].dead {
					dist[i] = dist[todo[0]] + 1
					a.nodes[i].hop[dst] = todo[0]
					todo = append(todo, i)
				}
			}
		}
	}
}

// path lists the nodes from one to the other.
func (a *air) path(src, dst int) []int {
	out := []int{src}
	for src != dst {
		next, ok := a.nodes[src].hop[dst]
		if !ok {
			return nil
		}
		src = next
		out = append(out, src)
	}
	return out
}

func (a *air) begin(src, dst int, demand float64) {
	n := a.nodes[src]
	n.flows = append(n.flows, manet.Local{Flow: flow(src, dst), Demand: demand})
	n.SetFlows(n.now(), n.flows)
}

func (a *air) end(src, dst int) {
	n := a.nodes[src]
	n.flows = slices.DeleteFunc(n.flows, func(l manet.Local) bool { return l.Flow == flow(src, dst) })
	n.SetFlows(n.now(), n.flows)
}

func flow(src, dst int) manet.Flow { return manet.Flow{Src: addr(src), Dst: addr(dst)} }

// run lets the time pass.
func (a *air) run(d time.Duration) {
	end := a.now.Add(d)
	for {
		at, who := end, -1
		for i, n := range a.nodes {
			if t := n.Next(); !n.dead && !t.IsZero() && t.Add(-n.clock) < at {
				at, who = t.Add(-n.clock), i
			}
		}
		if len(a.queue) > 0 && a.queue[0].at < at {
			x := heap.Pop(&a.queue).(arrival)
			a.now = max(a.now, x.at)
			if n := a.nodes[x.to]; !n.dead {
				n.Receive(n.now(), addr(x.from), x.b)
				a.transmit(n)
			}
			continue
		}
		a.now = max(a.now, at)
		if who < 0 {
			return
		}
		a.nodes[who].Advance(a.nodes[who].now())
		a.transmit(a.nodes[who])
	}
}

func (a *air) transmit(n *node) {
	for {
		b, ok := n.Datagram()
		if !ok {
			return
		}
		for _, to := range a.near[n.index] {
			if a.rng.Float64() >= a.loss {
				heap.Push(&a.queue, arrival{a.now.Add(time.Millisecond + time.Duration(a.rng.IntN(2e6))), n.index, to, b})
			}
		}
	}
}

// central is what the central algorithm gives to the flows that are there.
func (a *air) central() map[manet.Flow]float64 {
	network := &manet.Network{}
	var flows []manet.Local
	for _, n := range a.nodes {
		if !n.dead {
			flows = append(flows, n.flows...)
		}
	}
	paths := make([][]int, len(flows))
	for i, f := range flows {
		paths[i] = a.path(indexOf(f.Src), indexOf(f.Dst))
	}
	for i, in := range manet.Regions(a.near, paths) {
		network.SetFlow(manet.FlowID(i), slices.DeleteFunc(in, func(r manet.RegionID) bool { return a.nodes[r].dead })...)
		if flows[i].Demand > 0 {
			network.SetDemand(manet.FlowID(i), flows[i].Demand)
		}
	}
	network.Allocate()
	out := map[manet.Flow]float64{}
	for i, f := range flows {
		s, _ := network.Share(manet.FlowID(i))
		out[f.Flow] = s.CLoad
	}
	return out
}

// wrong lists the flows whose share isn't the central one.
func (a *air) wrong() []string {
	var out []string
	for f, want := range a.central() {
		p, ok := a.nodes[indexOf(f.Src)].Path(f)
		if !ok || math.Abs(p.Share-want) > 1e-6 {
			out = append(out, fmt.Sprintf("%v: share %.6f, the central one is %.6f", f, p.Share, want))
		}
	}
	slices.Sort(out)
	return out
}

func (a *air) check(when string) {
	a.t.Helper()
	for _, w := range a.wrong() {
		a.t.Errorf("%s: %s", when, w)
	}
}

// chain has nodes in a row.
func chain(n int) [][]int {
	near := make([][]int, n)
	for i := range near {
		if i > 0 {
			near[i] = append(near[i], i-1)
		}
		if i < n-1 {
			near[i] = append(near[i], i+1)
		}
	}
	return near
}

func join(near [][]int, a, b int) {
	near[a] = append(near[a], b)
	near[b] = append(near[b], a)
}

// figure7 has three flows in one region and, along the first one's path, a fourth.
func figure7() [][]int {
	near := chain(6)
	for range 6 {
		near = append(near, nil)
	}
	join(near, 6, 7) // flows 2 and 3, heard by node 0
	join(near, 8, 9)
	for _, i := range []int{6, 7, 8, 9} {
		join(near, 0, i)
	}
	join(near, 10, 11) // flow 4, heard by node 5
	join(near, 5, 10)
	join(near, 5, 11)
	return near
}

func TestDistributedFigure7(t *testing.T) {
	a := newAir(t, figure7(), 1, nil)
	for _, f := range [][2]int{{0, 5}, {6, 7}, {8, 9}, {10, 11}} {
		a.begin(f[0], f[1], 0)
	}
	a.run(2 * manet.Refresh)
	a.check("after two refreshes")
	for f, want := range map[manet.Flow]float64{flow(0, 5): 1. / 3, flow(6, 7): 1. / 3, flow(8, 9): 1. / 3, flow(10, 11): 2. / 3} {
		if p, _ := a.nodes[indexOf(f.Src)].Path(f); math.Abs(p.Share-want) > 1e-6 || !p.Complete {
			t.Errorf("%v: %+v, want %v", f, p, want)
		}
	}
	if p, _ := a.nodes[0].Path(flow(0, 5)); p.Hops != 5 {
		t.Errorf("%d hops, want 5", p.Hops)
	}
}

// figure2 has the memberships of the paper's figure 2 and no others: a hub is a node
// that hears the flows of its region and is on none of their paths.
func figure2() ([][]int, [][2]int) {
	in := [][]int{1: {1}, 2: {1, 3}, 3: {1, 2}, 4: {2, 3}, 5: {2}, 6: {1}}
	var near [][]int
	near = append(near, nil, nil, nil) // the hubs
	var flows [][2]int
	for _, regions := range in[1:] {
		src := len(near)
		near = append(near, nil, nil)
		join(near, src, src+1)
		for _, r := range regions {
			join(near, r-1, src)
		}
		flows = append(flows, [2]int{src, src + 1})
	}
	return near, flows
}

func TestDistributedFigure2(t *testing.T) {
	near, flows := figure2()
	a := newAir(t, near, 2, nil)
	for _, f := range flows {
		a.begin(f[0], f[1], 0)
	}
	a.run(2 * manet.Refresh)
	a.check("after two refreshes")
	for i, want := range []float64{1. / 4, 1. / 4, 1. / 4, 3. / 8, 3. / 8, 1. / 4} {
		if p, _ := a.nodes[flows[i][0]].Path(flow(flows[i][0], flows[i][1])); math.Abs(p.Share-want) > 1e-6 {
			t.Errorf("flow %d: %v, want %v", i+1, p.Share, want)
		}
	}
}

// TestDistributedEqualsCentral draws places of nodes and flows; within two refreshes of
// the last change the shares are the central ones.
func TestDistributedEqualsCentral(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		a := newAir(t, places(rng, 4+rng.IntN(17)), seed, nil)
		var began [][2]int
		for range 1 + rng.IntN(9) {
			src, dst := rng.IntN(len(a.near)), rng.IntN(len(a.near))
			if a.path(src, dst) == nil || src == dst || slices.Contains(began, [2]int{src, dst}) {
				continue
			}
			demand := 0.0
			if rng.IntN(3) == 0 {
				demand = 0.01 + 0.3*rng.Float64()
			}
			a.begin(src, dst, demand)
			began = append(began, [2]int{src, dst})
			a.run(time.Duration(rng.IntN(2000)) * time.Millisecond)
		}
		a.run(2 * manet.Refresh)
		if w := a.wrong(); len(w) > 0 {
			rt.Fatalf("after two refreshes: %q", w)
		}
		if len(began) == 0 {
			return
		}
		a.end(began[0][0], began[0][1])
		a.run(manet.Hold + 2*manet.Refresh)
		if w := a.wrong(); len(w) > 0 {
			rt.Fatalf("after a flow ended: %q", w)
		}
	})
}

// places scatters nodes over a square; those within reach hear each other.
func places(rng *rand.Rand, n int) [][]int {
	x, y := make([]float64, n), make([]float64, n)
	near := make([][]int, n)
	side := math.Sqrt(float64(n)) * 0.6
	for i := range n {
		x[i], y[i] = rng.Float64()*side, rng.Float64()*side
		for j := range i {
			if math.Hypot(x[i]-x[j], y[i]-y[j]) < 1 {
				join(near, i, j)
			}
		}
	}
	return near
}
