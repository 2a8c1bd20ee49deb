package manet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/transports/manet"
)

// member says which regions each flow is in.
type member map[manet.FlowID][]manet.RegionID

func build(m member) *manet.Network {
	n := &manet.Network{}
	for id, in := range m {
		n.SetFlow(id, in...)
	}
	n.Allocate()
	return n
}

func shares(t testing.TB, n *manet.Network, ids ...manet.FlowID) []float64 {
	t.Helper()
	out := make([]float64, len(ids))
	for i, id := range ids {
		s, ok := n.Share(id)
		if !ok {
			t.Fatalf("flow %d has no share", id)
		}
		out[i] = s.CLoad
	}
	return out
}

func TestPaperVectors(t *testing.T) {
	tests := map[string]struct {
		in   member
		want []float64
	}{
		"figure 2": {
			in:   member{1: {1}, 2: {1, 3}, 3: {1, 2}, 4: {2, 3}, 5: {2}, 6: {1}},
			want: []float64{1. / 4, 1. / 4, 1. / 4, 3. / 8, 3. / 8, 1. / 4},
		},
		"figure 7": {
			in:   member{1: {1, 2}, 2: {1}, 3: {1}, 4: {2}},
			want: []float64{1. / 3, 1. / 3, 1. / 3, 2. / 3},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := build(tt.in)
			for i, want := range tt.want {
				if got := shares(t, n, manet.FlowID(i+1))[0]; math.Abs(got-want) > 1e-15 {
					t.Errorf("flow %d: share %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

func TestFigure2Bottlenecks(t *testing.T) {
	n := build(member{1: {1}, 2: {1, 3}, 3: {1, 2}, 4: {2, 3}, 5: {2}, 6: {1}})
	for id, want := range map[manet.FlowID]manet.RegionID{1: 1, 2: 1, 3: 1, 6: 1, 4: 2, 5: 2} {
		if s, _ := n.Share(id); s.Bottleneck != want || !s.Bounded {
			t.Errorf("flow %d: %+v, want region %d as its bottleneck", id, s, want)
		}
	}
}

func TestAloneOrNowhereHasAll(t *testing.T) {
	n := build(member{1: {7}, 2: nil})
	if got := shares(t, n, 1, 2); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("shares %v, want both 1", got)
	}
}

func TestDemandLeavesTheRest(t *testing.T) {
	n := build(member{1: {1}, 2: {1}, 3: {1}})
	n.SetDemand(1, 0.1)
	if got, want := n.Allocate(), []manet.FlowID{1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("changed: %v, want %v", got, want)
	}
	if got, want := shares(t, n, 1, 2, 3), []float64{0.1, 0.45, 0.45}; !slices.Equal(got, want) {
		t.Errorf("shares %v, want %v", got, want)
	}
	if s, _ := n.Share(1); s.Bounded {
		t.Errorf("flow 1 has all it asked for, and is said to be bounded: %+v", s)
	}
	for _, all := range []float64{1, math.NaN(), -1, 2} {
		n.SetDemand(1, all)
		n.Allocate()
		if got := shares(t, n, 1)[0]; got != 1./3 {
			t.Errorf("demand %v: share %v, want a third", all, got)
		}
	}
}

func TestOnlyWhatIsConnectedIsAllocated(t *testing.T) {
	n := build(member{1: {1}, 2: {1}, 3: {2}, 4: {2}})
	n.RemoveFlow(2)
	n.RemoveFlow(99)
	n.SetFlow(3, 2, 2)
	if got, want := n.Allocate(), []manet.FlowID{1}; !slices.Equal(got, want) {
		t.Errorf("changed: %v, want %v", got, want)
	}
	if got := n.Allocate(); got != nil {
		t.Errorf("nothing happened, and %v changed", got)
	}
	if _, ok := n.Share(2); ok {
		t.Error("a removed flow has a share")
	}
	if flows, regions := n.Len(); flows != 3 || regions != 2 {
		t.Errorf("%d flows in %d regions, want 3 in 2", flows, regions)
	}
}

// TestMaxMin draws networks and holds each allocation against the definition: feasible,
// a bottleneck for each flow, and equal to the twin that does only what the paper says.
func TestMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMember(t)
		n := build(m)
		twin := paperTwin(m)
		load := map[manet.RegionID]float64{}
		for id, in := range m {
			s, _ := n.Share(id)
			if math.Abs(s.CLoad-twin[id]) > 1e-9 {
				t.Fatalf("flow %d: %v, the twin says %v", id, s.CLoad, twin[id])
			}
			for _, r := range unique(in) {
				load[r] += s.CLoad
			}
		}
		for r, sum := range load {
			if sum > 1+1e-9 {
				t.Fatalf("region %d carries %v", r, sum)
			}
		}
		for id, in := range m {
			if len(in) > 0 && !slices.ContainsFunc(in, func(r manet.RegionID) bool { return bottleneck(n, m, load, id, r) }) {
				t.Fatalf("flow %d has no bottleneck region", id)
			}
		}
	})
}

// TestRaisingOneLowersASmaller is the fairness criterion itself (D5 of the paper): more
// for one flow, within what is feasible, takes from one that has no more than it.
func TestRaisingOneLowersASmaller(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMember(t)
		n := build(m)
		for id, in := range m {
			mine, _ := n.Share(id)
			if len(in) == 0 {
				continue
			}
			room := 1.0 // what the flow could have if only larger ones gave way
			for _, r := range unique(in) {
				smaller := 0.0
				for other, its := range m {
					if s, _ := n.Share(other); other != id && slices.Contains(its, r) && s.CLoad <= mine.CLoad+1e-9 {
						smaller += s.CLoad
					}
				}
				room = min(room, 1-smaller)
			}
			if room > mine.CLoad+1e-6 {
				t.Fatalf("flow %d has %v and could have %v at the cost of larger ones alone", id, mine.CLoad, room)
			}
		}
	})
}

// TestIncrementalEqualsFresh changes a network step by step; after each the shares are
// those of a network built anew, bit by bit.
func TestIncrementalEqualsFresh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m, demand := &manet.Network{}, member{}, map[manet.FlowID]float64{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := manet.FlowID(rapid.IntRange(0, 12).Draw(t, "flow"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				n.RemoveFlow(id)
				delete(m, id)
				delete(demand, id)
			case 1:
				demand[id] = float64(rapid.IntRange(0, 10).Draw(t, "tenths")) / 10
				n.SetDemand(id, demand[id])
				m[id] = append([]manet.RegionID{}, m[id]...)
			default:
				m[id] = drawRegions(t)
				n.SetFlow(id, m[id]...)
			}
			if rapid.Bool().Draw(t, "allocate") {
				continue
			}
			n.Allocate()
			fresh := &manet.Network{}
			for id, in := range m {
				fresh.SetFlow(id, in...)
				if d, ok := demand[id]; ok {
					fresh.SetDemand(id, d)
				}
			}
			fresh.Allocate()
			for id := range m {
				got, _ := n.Share(id)
				want, _ := fresh.Share(id)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("flow %d (-fresh +incremental):\n%s", id, diff)
				}
			}
		}
	})
}

func drawRegions(t *rapid.T) []manet.RegionID {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) manet.RegionID {
		return manet.RegionID(rapid.IntRange(0, 8).Draw(t, "region"))
	}), 0, 5).Draw(t, "regions")
}

func drawMember(t *rapid.T) member {
	m := member{}
	for i := range rapid.IntRange(1, 15).Draw(t, "flows") {
		m[manet.FlowID(i)] = drawRegions(t)
	}
	return m
}

func unique(in []manet.RegionID) []manet.RegionID {
	in = slices.Clone(in)
	slices.Sort(in)
	return slices.Compact(in)
}

func bottleneck(n *manet.Network, m member, load map[manet.RegionID]float64, id manet.FlowID, r manet.RegionID) bool {
	if load[r] < 1-1e-9 {
		return false
	}
	mine, _ := n.Share(id)
	for other, its := range m {
		if s, _ := n.Share(other); slices.Contains(its, r) && s.CLoad > mine.CLoad+1e-9 {
			return false
		}
	}
	return true
}

// paperTwin is the algorithm in the words of 3.3, with nothing kept between rounds.
func paperTwin(m member) map[manet.FlowID]float64 {
	share := map[manet.FlowID]float64{}
	for {
		sum, fresh := map[manet.RegionID]float64{}, map[manet.RegionID]float64{}
		for id, in := range m {
			for _, r := range unique(in) {
				if s, ok := share[id]; ok {
					sum[r] += s
				} else {
					fresh[r]++
				}
			}
		}
		least := math.Inf(1)
		for r, count := range fresh {
			least = min(least, (1-sum[r])/count)
		}
		if math.IsInf(least, 1) {
			for id, in := range m {
				if len(in) == 0 {
					share[id] = 1
				}
			}
			return share
		}
		given := map[manet.FlowID]bool{}
		for id, in := range m {
			for _, r := range in {
				if _, ok := share[id]; !ok && (1-sum[r])/fresh[r] <= least+1e-12 {
					given[id] = true
				}
			}
		}
		for id := range given {
			share[id] = least
		}
	}
}

// randomNetwork places flows of one to nine hops in a world of regions, each next to its
// neighbours, as routes are.
func randomNetwork(flows, regions int) *manet.Network {
	rng := rand.New(rand.NewPCG(1, 2))
	n := &manet.Network{}
	for f := range flows {
		at := rng.IntN(regions)
		var in []manet.RegionID
		for range 1 + rng.IntN(9) {
			in = append(in, manet.RegionID(at), manet.RegionID((at+1)%regions))
			at = (at + 1 + rng.IntN(3)) % regions
		}
		n.SetFlow(manet.FlowID(f), in...)
	}
	return n
}

// BenchmarkAllocate allocates the whole network anew; a flow that is in all regions would
// hide how the cost grows, so that the density stays the same.
func BenchmarkAllocate(b *testing.B) {
	for _, size := range []struct{ flows, regions int }{{100, 10}, {1000, 100}, {10_000, 1000}, {100_000, 10_000}} {
		b.Run(fmt.Sprintf("flows=%d/regions=%d", size.flows, size.regions), func(b *testing.B) {
			n := randomNetwork(size.flows, size.regions)
			demand := 0.0
			for b.Loop() {
				b.StopTimer()
				demand = 1e-9 - demand // of every flow: all of it is to be computed
				for f := range size.flows {
					n.SetDemand(manet.FlowID(f), 1-demand)
				}
				b.StartTimer()
				n.Allocate()
			}
		})
	}
}

// BenchmarkOneFlowMoves is the incremental case.
func BenchmarkOneFlowMoves(b *testing.B) {
	n := randomNetwork(10_000, 1000)
	n.Allocate()
	i := 0
	for b.Loop() {
		i++
		n.SetFlow(5, manet.RegionID(i%1000), manet.RegionID((i+1)%1000))
		n.Allocate()
	}
}
