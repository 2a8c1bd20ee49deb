package radio_test

import (
	"math"
	"testing"
	"time"

	"mihf.dev/integration/sim"
	"mihf.dev/integration/sim/radio"
	"mihf.dev/integration/sim/tcp"
)

var config = radio.Config{
	PHY:          radio.DSSS,
	Ranges:       []radio.Range{{1e6, 250}, {2e6, 200}, {55e5, 150}, {11e6, 30}},
	SenseMeters:  500,
	QueuePackets: 50,
}

func TestAir(t *testing.T) {
	for _, tt := range []struct {
		phy    radio.PHY
		octets int
		bps    int64
		want   time.Duration
	}{
		{radio.DSSS, 14, 1e6, 304 * time.Microsecond},
		{radio.DSSS, 668, 11e6, 677819 * time.Nanosecond},
		{radio.DSSS, 668, 2e6, 2864 * time.Microsecond},
		{radio.OFDM, 14, 6e6, 44 * time.Microsecond},     // 134 bits are 6 symbols of 24
		{radio.OFDM, 1528, 54e6, 248 * time.Microsecond}, // 12246 bits are 57 symbols of 216
	} {
		if got := tt.phy.Air(tt.octets, tt.bps); got != tt.want {
			t.Errorf("%d octets at %d bit/s: %v, want %v", tt.octets, tt.bps, got, tt.want)
		}
	}
	if got := radio.DSSS.EIFS(); got != 364*time.Microsecond {
		t.Errorf("EIFS %v, want 364 µs", got)
	}
}

// source keeps a hop's queue full.
type source struct {
	pool     *sim.Pool
	received int
	octets   int
}

func saturate(s *sim.Sim, flow, octets int, path ...sim.Hop) *source {
	src := &source{octets: octets}
	src.pool = sim.NewPool(s, flow, sim.Data, path, func() any { return nil }, func(p *sim.Packet) {
		src.received++
		p.Free()
		src.pool.Get(0, octets).Forward()
	})
	for range 10 {
		s.At(0, func() { src.pool.Get(0, octets).Forward() })
	}
	return src
}

// saturated is how long the sources of these tests send.
const saturated = 20 * time.Second

func (src *source) bps() float64 { return float64(src.received*src.octets*8) / saturated.Seconds() }

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.4g, want %.4g within %g %%", what, got, want, part*100)
	}
}

// TestOneStation: a packet takes its exchange and the mean backoff of half a window.
func TestOneStation(t *testing.T) {
	s := sim.New(1)
	c := radio.NewChannel(s, config)
	a, b := c.Add(radio.Place{}), c.Add(radio.Place{X: 10})
	src := saturate(s, 1, 640, a.Way(b, 0))
	s.Run(saturated)
	each := radio.DSSS.Exchange(640, 11e6) + 310*time.Microsecond
	near(t, "throughput", src.bps(), 640*8/each.Seconds(), 0.01)
	if n := a.Stats(); n.GivenUp > 0 || n.Sent-n.Delivered > 1 {
		t.Errorf("%+v: something was lost", n)
	}
}

// TestBianchi: saturated stations that all sense each other reach what Bianchi's model says
// ("Performance Analysis of the IEEE 802.11 DCF", IEEE JSAC 18(3), 2000).
func TestBianchi(t *testing.T) {
	for _, n := range []int{2, 5, 10, 20} {
		s := sim.New(uint64(n))
		c := radio.NewChannel(s, config)
		sink := c.Add(radio.Place{})
		var all []*source
		for i := range n {
			st := c.Add(radio.Place{X: 1, Y: float64(i)})
			all = append(all, saturate(s, i, 1000, st.Way(sink, 11e6)))
		}
		s.Run(saturated)
		sum, least, most := 0.0, math.Inf(1), 0.0
		for _, src := range all {
			sum += src.bps()
			least, most = min(least, src.bps()), max(most, src.bps())
		}
		near(t, "throughput", sum, bianchi(n, 1000, 11e6), 0.03)
		if least < 0.5*most {
			t.Errorf("%d stations: from %.0f to %.0f bit/s", n, least, most)
		}
	}
}

// bianchi is the saturation throughput in bit/s of n stations.
func bianchi(n, octets int, bps int64) float64 {
	phy := radio.DSSS
	w, m := float64(phy.CWMin+1), 5.0
	tau := 0.1
	for range 1000 {
		p := 1 - math.Pow(1-tau, float64(n-1))
		next := 2 * (1 - 2*p) / ((1-2*p)*(w+1) + p*w*(1-math.Pow(2*p, m)))
		tau = (tau + next) / 2
	}
	some := 1 - math.Pow(1-tau, float64(n))
	one := float64(n) * tau * math.Pow(1-tau, float64(n-1))
	busy := phy.Exchange(octets, bps).Seconds()
	spoilt := (phy.Air(octets+28, bps) + phy.EIFS()).Seconds()
	slot := (1-some)*phy.Slot.Seconds() + one*busy + (some-one)*spoilt
	return one * float64(octets*8) / slot
}

// TestHidden: two stations that don't sense each other spoil each other's frames at a third,
// two that do don't.
func TestHidden(t *testing.T) {
	lost := func(apart float64) float64 {
		s := sim.New(3)
		c := radio.NewChannel(s, config)
		a, mid, b := c.Add(radio.Place{X: -apart / 2}), c.Add(radio.Place{}), c.Add(radio.Place{X: apart / 2})
		saturate(s, 1, 1000, a.Way(mid, 1e6))
		saturate(s, 2, 1000, b.Way(mid, 1e6))
		s.Run(10 * time.Second)
		return 1 - float64(a.Stats().Delivered+b.Stats().Delivered)/float64(a.Stats().Sent+b.Stats().Sent)
	}
	if got := lost(480); got > 0.1 {
		t.Errorf("%.0f %% of the frames lost by stations that sense each other", got*100)
	}
	if got := lost(499.9 + 0.2); got < 0.4 {
		t.Errorf("%.0f %% of the frames lost by stations that don't sense each other", got*100)
	}
}

// TestOutOfReach: who can't read a frame doesn't get it, and the sender gives up.
func TestOutOfReach(t *testing.T) {
	s := sim.New(4)
	c := radio.NewChannel(s, config)
	a, b := c.Add(radio.Place{}), c.Add(radio.Place{X: 100})
	src := saturate(s, 1, 500, a.Way(b, 11e6))
	s.Run(10 * time.Second)
	if n := a.Stats(); src.received > 0 || n.GivenUp != 10 || n.Sent != 70 {
		t.Errorf("%d received, %+v; want none, and 10 given up after 7 tries each", src.received, n)
	}
	if got := c.Fastest(100); got != 5.5e6 {
		t.Errorf("fastest rate over 100 m: %d", got)
	}
	if got := c.Fastest(251); got != 0 {
		t.Errorf("fastest rate over 251 m: %d", got)
	}
}

// TestEveryPacketEndsOnce counts what becomes of packets on a crowded channel.
func TestEveryPacketEndsOnce(t *testing.T) {
	s := sim.New(5)
	c := radio.NewChannel(s, config)
	var path []*radio.Station
	for i := range 5 {
		path = append(path, c.Add(radio.Place{X: float64(i) * 126}))
	}
	sent, came := 0, 0
	for _, hops := range [][]*radio.Station{{path[0], path[1], path[2], path[3], path[4]}, {path[4], path[3], path[2], path[1], path[0]}} {
		var way []sim.Hop
		for i := range hops[1:] {
			way = append(way, hops[i].Way(hops[i+1], 2e6))
		}
		pool := sim.NewPool(s, 1, sim.Data, way, func() any { return nil }, func(p *sim.Packet) { came++; p.Free() })
		for i := range 4000 {
			s.At(time.Duration(i)*2*time.Millisecond, func() { sent++; pool.Get(0, 600).Forward() })
		}
	}
	s.Run(time.Minute)
	lost := 0
	for _, st := range path {
		n := st.Stats()
		lost += int(n.Overflow + n.GivenUp)
	}
	// A packet that came, and whose acknowledgements were all lost, is given up by its sender too.
	if came > sent || came+lost < sent {
		t.Errorf("%d sent, %d came, %d lost", sent, came, lost)
	}
	if came < sent/20 || lost == 0 {
		t.Errorf("%d of %d came, %d were lost: not the crowd that this is about", came, sent, lost)
	}
}

func chain(s *sim.Sim, c *radio.Channel, hops int, bps int64, meters float64) *sim.TCPFlow {
	var st []*radio.Station
	for i := range hops + 1 {
		st = append(st, c.Add(radio.Place{X: float64(i) * meters}))
	}
	var forward, back []sim.Hop
	for i := range hops {
		forward = append(forward, st[i].Way(st[i+1], bps))
		back = append(back, st[hops-i].Way(st[hops-i-1], bps))
	}
	return sim.NewTCPFlow(s, sim.TCPConfig{Flow: 1, SegmentBytes: 640, Sender: tcp.Config{MaxWindow: 20}, Receiver: tcp.ReceiverConfig{AckDelay: -1}}, forward, back)
}

// TestTCPAlone: what a TCP connection carries alone over one to three hops, beside what the
// paper's table implies (2265.6, 1153.2 and 786.4 kbit/s of 600-octet segments at 11 Mbit/s).
func TestTCPAlone(t *testing.T) {
	for hops, want := range map[int]float64{1: 2265.6e3, 2: 1153.2e3, 3: 786.4e3} {
		s := sim.New(6)
		f := chain(s, radio.NewChannel(s, config), hops, 11e6, 30)
		f.Start(0)
		s.Run(10 * time.Second)
		from := f.Receiver.Delivered
		s.Run(70 * time.Second)
		got := float64(f.Receiver.Delivered-from) * 600 * 8 / 60
		t.Logf("%d hops: %.1f kbit/s, the paper's %.1f", hops, got/1e3, want/1e3)
		near(t, "throughput", got, want, 0.1)
	}
}

func TestGate(t *testing.T) {
	s := sim.New(7)
	c := radio.NewChannel(s, config)
	a, b := c.Add(radio.Place{}), c.Add(radio.Place{X: 10})
	g := radio.NewGate(c)
	g.SetGap(10 * time.Millisecond)
	var at []time.Duration
	pool := sim.NewPool(s, 1, sim.Data, []sim.Hop{g, a.Way(b, 0).First()}, func() any { return nil }, func(p *sim.Packet) {
		at = append(at, s.Elapsed())
		p.Free()
	})
	for range 60 {
		s.At(0, func() { pool.Get(0, 600).Forward() })
	}
	s.At(105*time.Millisecond, func() { g.SetGap(20 * time.Millisecond) })
	s.Run(2 * time.Second)
	if len(at) != 51 || g.Dropped() != 9 {
		t.Fatalf("%d came and %d were dropped, want 51 and 9", len(at), g.Dropped())
	}
	if got := at[10] - at[0]; got < 99*time.Millisecond || got > 102*time.Millisecond {
		t.Errorf("ten gaps took %v, want 100 ms", got)
	}
	if got := at[50] - at[20]; got < 598*time.Millisecond || got > 602*time.Millisecond {
		t.Errorf("thirty gaps took %v, want 600 ms", got)
	}
}

// TestSeed: one seed is one run, octet for octet; another is another.
func TestSeed(t *testing.T) {
	run := func(seed uint64) uint64 {
		s := sim.New(seed)
		f := chain(s, radio.NewChannel(s, config), 3, 2e6, 126)
		f.Start(0)
		s.Run(20 * time.Second)
		return f.Receiver.Delivered<<32 | f.Sender.Stats().Sent
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("the same seed gave %x and %x", a, b)
	}
	if a, b := run(1), run(2); a == b {
		t.Errorf("two seeds gave %x", a)
	}
}
