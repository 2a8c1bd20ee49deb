package manet_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/manet"
)

// TestOverhead: a connection over three hops costs at most 1.5 kbit/s, UDP and IP headers
// with it, signed.
func TestOverhead(t *testing.T) {
	for name, key := range map[string][]byte{"open": nil, "signed": []byte("a key")} {
		a := newAir(t, chain(4), 3, key)
		a.begin(0, 3, 0)
		a.run(10 * time.Second) // the beginning isn't the rule
		sent, octets := a.sent()
		const seconds = 300
		a.run(seconds * time.Second)
		sent2, octets2 := a.sent()
		bps := float64(octets2-octets+28*(sent2-sent)) * 8 / seconds
		t.Logf("%s: %.0f bit/s for a connection of three hops", name, bps)
		if bps > 1500 {
			t.Errorf("%s: %.0f bit/s, more than 1500", name, bps)
		}
	}
}

func (a *air) sent() (datagrams, octets uint64) {
	for _, n := range a.nodes {
		c := n.Counts()
		datagrams += c.Sent
		octets += c.SentOctets
	}
	return
}

// TestFlowEnds: six seconds after a source is silent nobody knows of its flow.
func TestFlowEnds(t *testing.T) {
	a := newAir(t, figure7(), 4, nil)
	a.begin(0, 5, 0)
	a.begin(6, 7, 0)
	a.run(20 * time.Second)
	a.end(0, 5)
	if _, ok := a.nodes[0].Path(flow(0, 5)); ok {
		t.Error("its source still has a path")
	}
	a.run(manet.Hold)
	for i, n := range a.nodes {
		want := 0
		for _, near := range append(a.near[6], a.near[7]...) {
			if near == i {
				want = 1
			}
		}
		if _, flows := n.Level(); flows != want {
			t.Errorf("node %d knows %d flows, want %d", i, flows, want)
		}
	}
	a.check("after the end")
}

// TestHalfOfAllIsLost: with every second datagram lost shares are found, kept nearly
// always, and right again when the loss ends.
func TestHalfOfAllIsLost(t *testing.T) {
	near, flows := figure2()
	right, samples := 0, 0
	for seed := range uint64(5) {
		a := newAir(t, near, seed, nil)
		a.loss = 0.5
		for _, f := range flows {
			a.begin(f[0], f[1], 0)
		}
		a.run(10 * manet.Refresh)
		for range 100 {
			a.run(time.Second)
			samples++
			if len(a.wrong()) == 0 {
				right++
			}
		}
		a.loss = 0
		a.run(3 * manet.Refresh)
		a.check("when nothing is lost any more")
	}
	t.Logf("all shares right in %d of %d seconds", right, samples)
	if right < samples*85/100 {
		t.Errorf("all shares were right in %d of %d seconds only", right, samples)
	}
}

func TestNodesDie(t *testing.T) {
	near := [][]int{{1, 2}, {0, 3}, {0, 3}, {1, 2}} // two ways from 0 to 3
	near = append(near, nil)
	join(near, 4, 1)
	a := newAir(t, near, 5, nil)
	a.begin(0, 3, 0)
	a.begin(4, 1, 0)
	a.run(2 * manet.Refresh)
	a.check("before")
	dead := a.nodes[0].hop[3]
	a.nodes[dead].dead = true
	for _, n := range a.nodes {
		clear(n.hop)
	}
	a.routes()
	a.run(manet.Hold + 2*manet.Refresh)
	p, _ := a.nodes[0].Path(flow(0, 3))
	if !p.Complete || p.Hops != 2 {
		t.Errorf("%+v, want the other way of two hops", p)
	}
	if dead == 1 {
		a.nodes[4].flows = nil // its destination is gone
		a.nodes[4].SetFlows(a.now, nil)
		a.run(manet.Hold)
	}
	a.check("after a node died")
	a.nodes[3-dead].dead = true
	a.run(manet.Hold + 2*manet.Refresh)
	if p, _ := a.nodes[0].Path(flow(0, 3)); p.Complete {
		t.Errorf("%+v, and no way is left", p)
	}
}

// TestMove: a flow's source comes near to its destination: hops and the slowest rate are
// those of the new way with the next stamp, at the latest within one refresh.
func TestMove(t *testing.T) {
	a := newAir(t, chain(5), 6, nil)
	for i, n := range a.nodes {
		n.rate[i-1], n.rate[i+1] = 11e6, 11e6
	}
	a.nodes[2].rate[3] = 2e6
	a.begin(0, 4, 0)
	a.run(2 * manet.Refresh)
	if p, _ := a.nodes[0].Path(flow(0, 4)); p.Hops != 4 || p.RateBps != 2e6 {
		t.Fatalf("%+v, want 4 hops at 2 Mbit/s", p)
	}
	a.near[0], a.near[3] = []int{3}, append(a.near[3], 0)
	a.near[1] = slices.DeleteFunc(a.near[1], func(i int) bool { return i == 0 })
	a.nodes[0].hop[4], a.nodes[0].rate[3] = 3, 5.5e6
	a.run(manet.Refresh + 200*time.Millisecond)
	if p, _ := a.nodes[0].Path(flow(0, 4)); p.Hops != 2 || p.RateBps != 5.5e6 || !p.Complete {
		t.Errorf("%+v, want 2 hops at 5.5 Mbit/s", p)
	}
}

// TestClocksDiffer: no message carries a time, so that no clock has to be right.
func TestClocksDiffer(t *testing.T) {
	a := newAir(t, figure7(), 7, nil)
	for i, n := range a.nodes {
		n.clock = time.Duration(i) * 1000 * time.Second
	}
	for _, f := range [][2]int{{0, 5}, {6, 7}, {8, 9}, {10, 11}} {
		a.begin(f[0], f[1], 0)
	}
	a.run(2 * manet.Refresh)
	a.check("with clocks that differ")
}

// TestUnusedShareGoesToOthers: what a flow doesn't ask for is given to those who can use
// it within two refreshes, and taken back within two.
func TestUnusedShareGoesToOthers(t *testing.T) {
	a := newAir(t, figure7(), 8, nil)
	for _, f := range [][2]int{{0, 5}, {6, 7}, {8, 9}} {
		a.begin(f[0], f[1], 0)
	}
	a.run(2 * manet.Refresh)
	for _, demand := range []float64{0.1, 1} {
		a.nodes[6].flows[0].Demand = demand
		a.nodes[6].SetFlows(a.now, a.nodes[6].flows)
		a.run(2 * manet.Refresh)
		a.check("after the demand changed")
	}
	if p, _ := a.nodes[0].Path(flow(0, 5)); math.Abs(p.Share-1./3) > 1e-6 {
		t.Errorf("share %v, want a third", p.Share)
	}
}

// eavesdrop returns datagrams of a node that has a flow.
func eavesdrop(t testing.TB, key []byte) [][]byte {
	t.Helper()
	a := newAir(t, chain(3), 9, key)
	a.begin(0, 2, 0)
	var out [][]byte
	for range 200 {
		a.now = a.now.Add(10 * time.Millisecond)
		a.nodes[0].Advance(a.now)
		for b, ok := a.nodes[0].Datagram(); ok; b, ok = a.nodes[0].Datagram() {
			out = append(out, b)
		}
	}
	if len(out) < 2 {
		t.Fatal("nothing was sent")
	}
	return out
}

func TestForgedReplayedMalformed(t *testing.T) {
	key := []byte("a key")
	signed := eavesdrop(t, key)
	a := newAir(t, chain(3), 10, key)
	n, now := a.nodes[1], a.now
	other := eavesdrop(t, []byte("another key"))
	n.Receive(now, addr(0), other[0])
	n.Receive(now, addr(0), eavesdrop(t, nil)[0])
	changed := bytes.Clone(signed[0])
	changed[16] ^= 1
	n.Receive(now, addr(0), changed)
	if c := n.Counts(); c.Forged != 3 {
		t.Errorf("%+v, want 3 forged", c)
	}
	if _, flows := n.Level(); flows != 0 {
		t.Errorf("a forged datagram was believed")
	}
	n.Receive(now, addr(0), signed[1])
	n.Receive(now, addr(0), signed[1])
	n.Receive(now, addr(0), signed[0])
	now = now.Add(5 * time.Minute)
	n.Advance(now)
	n.Receive(now, addr(0), signed[1]) // the node is long gone, and still can't be played again
	if c := n.Counts(); c.Replayed != 3 {
		t.Errorf("%+v, want 3 replayed", c)
	}
	for cut := range len(signed[0]) {
		n.Receive(now, addr(0), signed[0][:cut])
	}
	if c := n.Counts(); c.Malformed != uint64(len(signed[0])) {
		t.Errorf("%+v, want %d malformed", c, len(signed[0]))
	}
	n.Receive(now, addr(1), signed[0]) // its own address: an echo
	if c := n.Counts(); c.Malformed+c.Forged+c.Replayed != uint64(len(signed[0]))+6 {
		t.Errorf("%+v: an echo was counted", c)
	}
}

// TestFloodIsBounded: whatever is claimed, a node holds no more than its bounds.
func TestFloodIsBounded(t *testing.T) {
	a := newAir(t, chain(2), 11, nil)
	n := a.nodes[0]
	template := eavesdrop(t, nil)[0]
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 5000 {
		b := bytes.Clone(template)
		binary.BigEndian.PutUint64(b[8:], uint64(i)+1<<40)
		binary.BigEndian.PutUint32(b[22:], 0x0b000000|rng.Uint32()>>8)
		n.Receive(a.now, addr(1+i%1000), b)
	}
	if _, flows := n.Level(); flows != manet.MaxFlows {
		t.Errorf("%d flows held, want %d", flows, manet.MaxFlows)
	}
	if c := n.Counts(); c.Beyond < 3000 {
		t.Errorf("%+v: what is beyond the bounds isn't counted", c)
	}
	a.now = a.now.Add(manet.Hold)
	n.Advance(a.now)
	if _, flows := n.Level(); flows != 0 {
		t.Errorf("%d flows held after the flood, want none", flows)
	}
}

func FuzzReceive(f *testing.F) {
	for _, b := range eavesdrop(f, nil) {
		f.Add(b)
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := newAir(t, chain(3), 12, nil)
		n := a.nodes[1]
		n.Receive(a.now, addr(0), b)
		for range 20 {
			next := n.Next()
			if next.IsZero() {
				break
			}
			if next < a.now {
				t.Fatalf("wants to be woken at %v, before %v", next, a.now)
			}
			a.now = max(a.now, next)
			n.Advance(a.now)
			for d, ok := n.Datagram(); ok; d, ok = n.Datagram() {
				a.nodes[2].Receive(a.now, addr(1), d)
			}
		}
		if c := a.nodes[2].Counts(); c.Malformed > 0 {
			t.Fatalf("it sends what others can't read: %+v", c)
		}
		a.run(mihf.Time(2 * manet.Hold).Sub(0))
		if level, flows := n.Level(); flows != 0 || level != 1 {
			t.Fatalf("%d flows and level %v after all is over", flows, level)
		}
	})
}
