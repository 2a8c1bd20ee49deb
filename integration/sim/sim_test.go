package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/integration/sim/tcp"
	"mihf.dev/mihf"
)

// "What is due at the same moment happens in the order in which it was asked for"
func TestOrder(t *testing.T) {
	s := New(1)
	var got []string
	note := func(what string) func() { return func() { got = append(got, what) } }
	s.At(2*time.Second, note("c"))
	s.At(time.Second, note("a"))
	s.At(time.Second, note("b"))
	moved := s.Timer(func(mihf.Time) { got = append(got, "moved") })
	moved.Set(Moment(time.Second))
	moved.Set(Moment(3 * time.Second))
	stopped := s.Timer(func(mihf.Time) { got = append(got, "stopped") })
	stopped.Set(Moment(time.Second))
	stopped.Set(0)
	s.At(4*time.Second, note("too late"))
	s.Run(3 * time.Second)
	if d := cmp.Diff([]string{"a", "b", "c", "moved"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if s.Elapsed() != 3*time.Second {
		t.Errorf("elapsed %v", s.Elapsed())
	}
}

// A moment that has passed is the present: time never goes back.
func TestPastIsPresent(t *testing.T) {
	s := New(1)
	var at []time.Duration
	s.At(time.Second, func() {
		s.At(0, func() { at = append(at, s.Elapsed()) })
	})
	s.Run(2 * time.Second)
	if d := cmp.Diff([]time.Duration{time.Second}, at); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// "A run that stands still … ends in a panic"
func TestStandsStill(t *testing.T) {
	s := New(1)
	var again *Timer
	again = s.Timer(func(now mihf.Time) { again.Set(now) })
	again.Set(Moment(time.Second))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	s.Run(2 * time.Second)
}

// "A stream depends on the seed and its name alone"
func TestStreams(t *testing.T) {
	a, other := New(7), New(7)
	other.Rand("somebody else").Uint64()
	if a.Rand("link").Uint64() != other.Rand("link").Uint64() {
		t.Error("a stream was shifted by another")
	}
	if a.Rand("link").Uint64() == a.Rand("path").Uint64() {
		t.Error("two names give one stream")
	}
	if a.Rand("link").Uint64() == New(8).Rand("link").Uint64() {
		t.Error("two seeds give one stream")
	}
}

// count is an endpoint that frees what it gets.
type count struct {
	at  []time.Duration
	seq []uint64
}

func source(s *Sim, path ...Hop) (*Pool, *count) {
	c := &count{}
	return NewPool(s, 1, Data, path, func() any { return nil }, func(p *Packet) {
		c.at = append(c.at, s.Elapsed())
		c.seq = append(c.seq, p.Seq)
		p.Free()
	}), c
}

// The time of a transmission and the delay, to the nanosecond: 532 octets at 10 Mbit/s take
// 425.6 µs.
func TestLinkTimes(t *testing.T) {
	s := New(1)
	a := NewLink(s, LinkConfig{Name: "a", RateBPS: 100e6, Delay: time.Millisecond, QueuePackets: 50})
	b := NewLink(s, LinkConfig{Name: "b", RateBPS: 10e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	pool, got := source(s, a, b)
	for seq := range uint64(3) {
		pool.Get(seq, 532).Forward()
	}
	s.Run(time.Second)
	first := 42560*time.Nanosecond + time.Millisecond + 425600*time.Nanosecond + 10*time.Millisecond
	want := []time.Duration{first, first + 425600*time.Nanosecond, first + 2*425600*time.Nanosecond}
	if d := cmp.Diff(want, got.at); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// "A queue holds at most the packets that its link was given room for, besides the one in
// transmission"
func TestDropTail(t *testing.T) {
	s := New(1)
	l := NewLink(s, LinkConfig{Name: "l", RateBPS: 1e6, QueuePackets: 5})
	pool, got := source(s, l)
	for seq := range uint64(10) {
		pool.Get(seq, 125).Forward()
	}
	s.Run(time.Second)
	if d := cmp.Diff([]uint64{0, 1, 2, 3, 4, 5}, got.seq); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	want := LinkStats{Delivered: 6, LongestQueue: 5}
	want.Dropped[Overflow] = 4
	if d := cmp.Diff(want, l.Stats()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// "While a link is down nothing is delivered over it. What was in it when it went down is lost."
// The trace tells each packet's fate, with its reason.
func TestOutageAndTrace(t *testing.T) {
	s := New(1)
	var trace bytes.Buffer
	s.TraceTo(&trace)
	l := NewLink(s, LinkConfig{Name: "l", RateBPS: 1e6, Delay: 2 * time.Millisecond, QueuePackets: 5})
	l.Schedule(Outage(3500*time.Microsecond, 2*time.Millisecond)...)
	pool, got := source(s, l)
	for i := range uint64(7) {
		s.At(time.Duration(i)*time.Millisecond, func() { pool.Get(i, 125).Forward() })
	}
	s.At(3*time.Millisecond, func() { pool.Get(9, 125).Forward() }) // waits behind 3
	s.Run(time.Second)
	if d := cmp.Diff([]uint64{0, 6}, got.seq); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	want := strings.TrimLeft(`
0.000000000 + l 1 data 0 125
0.000000000 - l 1 data 0 125
0.001000000 + l 1 data 1 125
0.001000000 - l 1 data 1 125
0.002000000 + l 1 data 2 125
0.002000000 - l 1 data 2 125
0.003000000 + l 1 data 3 125
0.003000000 + l 1 data 9 125
0.003000000 r l 1 data 0 125
0.003000000 - l 1 data 3 125
0.003500000 v l
0.003500000 d l 1 data 3 125 cut
0.003500000 d l 1 data 9 125 flushed
0.004000000 d l 1 data 4 125 down
0.004000000 d l 1 data 1 125 cut
0.005000000 d l 1 data 5 125 down
0.005000000 d l 1 data 2 125 cut
0.005500000 ^ l
0.006000000 + l 1 data 6 125
0.006000000 - l 1 data 6 125
0.009000000 r l 1 data 6 125
`, "\n")
	if d := cmp.Diff(want, trace.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Changes of rate and delay hold from the next transmission on.
func TestChange(t *testing.T) {
	s := New(1)
	l := NewLink(s, LinkConfig{Name: "l", RateBPS: 1e6, Delay: 10 * time.Millisecond, QueuePackets: 5})
	l.Schedule(Change{At: 500 * time.Microsecond, RateBPS: 2e6, Delay: time.Millisecond, QueuePackets: 1})
	pool, got := source(s, l)
	pool.Get(0, 125).Forward()                                        // 1 ms, arrives at 2 ms: the change came during its transmission
	pool.Get(1, 125).Forward()                                        // 0.5 ms
	s.At(600*time.Microsecond, func() { pool.Get(2, 125).Forward() }) // the only place is taken
	s.Run(time.Second)
	if d := cmp.Diff([]time.Duration{2 * time.Millisecond, 2500 * time.Microsecond}, got.at); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The ratios of loss and reordering are those asked for, within 5 standard deviations.
func TestRatios(t *testing.T) {
	s := New(3)
	l := NewLink(s, LinkConfig{Name: "l", RateBPS: 1e9, QueuePackets: 50, LossRatio: 0.03, ReorderRatio: 0.01, ReorderDelay: time.Millisecond})
	pool, got := source(s, l)
	const n = 20000
	for i := range uint64(n) {
		s.At(time.Duration(i)*10*time.Microsecond, func() { pool.Get(i, 125).Forward() })
	}
	s.Run(time.Second)
	if lost := l.Stats().Dropped[Random]; lost < n*3/100-120 || lost > n*3/100+120 {
		t.Errorf("lost %d of %d, want 3 %%", lost, n)
	}
	late := 0
	for i := 1; i < len(got.seq); i++ {
		if got.seq[i] < got.seq[i-1] {
			late++
		}
	}
	if late < n/100-70 || late > n/100+70 {
		t.Errorf("%d of %d were overtaken, want 1 %%", late, n)
	}
}

// "A packet that enters a link leaves it once", whatever becomes of the link.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.Uint64().Draw(t, "seed"))
		l := NewLink(s, LinkConfig{
			Name: "l", RateBPS: 1e6, Delay: 3 * time.Millisecond, QueuePackets: rapid.IntRange(0, 6).Draw(t, "room"),
			LossRatio: 0.1, ReorderRatio: 0.1, ReorderDelay: 5 * time.Millisecond,
		})
		l.OnArrive = func(*Packet) {
			if l.IsDown() {
				t.Fatal("delivered over a link that is down")
			}
		}
		ms := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 100_000).Draw(t, name)) * time.Microsecond
		}
		for range rapid.IntRange(0, 4).Draw(t, "outages") {
			l.Schedule(Outage(ms("at"), ms("length"))...)
			l.Schedule(Change{At: ms("change"), RateBPS: 5e5, Delay: time.Millisecond, QueuePackets: 2})
		}
		pool, got := source(s, l)
		n := rapid.IntRange(1, 60).Draw(t, "packets")
		for i := range n {
			s.At(ms("send"), func() { pool.Get(uint64(i), 125).Forward() })
		}
		s.Run(time.Minute)
		dropped := uint64(0)
		for _, d := range l.Stats().Dropped {
			dropped += d
		}
		if l.Stats().Delivered+dropped != uint64(n) || len(got.seq) != int(l.Stats().Delivered) {
			t.Fatalf("%d sent, %d delivered, %d arrived, %d dropped", n, l.Stats().Delivered, len(got.seq), dropped)
		}
		if l.QueuedPackets() != 0 {
			t.Fatalf("%d wait at the end", l.QueuedPackets())
		}
	})
}

// run plays two TCP flows over a lossy bottleneck with an outage.
func run(seed uint64) (trace string) {
	s := New(seed)
	var b bytes.Buffer
	s.TraceTo(&b)
	down := NewLink(s, LinkConfig{Name: "down", RateBPS: 5e6, Delay: 10 * time.Millisecond, QueuePackets: 20, LossRatio: 0.01})
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 5e6, Delay: 10 * time.Millisecond, QueuePackets: 20})
	down.Schedule(Outage(2*time.Second, time.Second)...)
	for i, c := range []tcp.Config{{Recovery: tcp.BySACK, Control: tcp.NewCUBIC}, {}} {
		NewTCPFlow(s, TCPConfig{Flow: i, Sender: c}, []Hop{down}, []Hop{up}).Start(0)
	}
	s.Run(5 * time.Second)
	return b.String()
}

// "a seed gives one run, and its Trace is equal octet for octet"
func TestSameSeedSameTrace(t *testing.T) {
	first := run(1)
	if again := run(1); again != first {
		t.Error("two runs of one seed differ")
	}
	if run(2) == first {
		t.Error("two seeds give one run")
	}
}

func TestTraceError(t *testing.T) {
	s := New(1)
	tr := s.TraceTo(failing{})
	l := NewLink(s, LinkConfig{Name: "l", RateBPS: 1e6})
	l.SetDown()
	if tr.Err() == nil {
		t.Error("the writer's error is not reported")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }

// The sender fills the path: 11 Mbit/s within 1 %, with a queue of a bandwidth-delay product.
func TestTCPFillsTheLink(t *testing.T) {
	for name, c := range map[string]tcp.Config{
		"NewReno": {}, "Reno with SACK": {Recovery: tcp.BySACK}, "CUBIC with SACK": {Recovery: tcp.BySACK, Control: tcp.NewCUBIC},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(1)
			l := LinkConfig{Name: "down", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50}
			down := NewLink(s, l)
			l.Name = "up"
			f := NewTCPFlow(s, TCPConfig{Sender: c}, []Hop{down}, []Hop{NewLink(s, l)})
			f.Start(0)
			s.Run(15 * time.Second)
			if mbps := float64(f.Receiver.Delivered) * 1500 * 8 / 15 / 1e6; mbps < 10.7 || mbps > 11 {
				t.Errorf("%.2f Mbit/s", mbps)
			}
			if st := f.Sender.Stats(); st.Timeouts > 0 {
				t.Errorf("%+v: timeouts where recovery was possible", st)
			}
		})
	}
}

// Two flows of one kind share a link alike: neither has more than twice the other.
func TestTCPShares(t *testing.T) {
	for name, control := range map[string]func(float64) tcp.Control{"Reno": tcp.NewReno, "CUBIC": tcp.NewCUBIC} {
		t.Run(name, func(t *testing.T) {
			s := New(1)
			down := NewLink(s, LinkConfig{Name: "down", RateBPS: 10e6, Delay: 10 * time.Millisecond, QueuePackets: 50, LossRatio: 1e-4})
			up := NewLink(s, LinkConfig{Name: "up", RateBPS: 10e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
			var got [2]uint64
			for i := range got {
				f := NewTCPFlow(s, TCPConfig{Flow: i, Sender: tcp.Config{Recovery: tcp.BySACK, Control: control}}, []Hop{down}, []Hop{up})
				f.OnDeliver = func(_ mihf.Time, n uint64) { got[i] += n }
				f.Start(time.Duration(i) * time.Second)
			}
			s.Run(25 * time.Second)
			if r := float64(got[0]) / float64(got[1]); r < 0.5 || r > 2 {
				t.Errorf("%v, ratio %.2f", got, r)
			}
		})
	}
}

func BenchmarkTCPFlow(b *testing.B) {
	s := New(1)
	down := NewLink(s, LinkConfig{Name: "down", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	f := NewTCPFlow(s, TCPConfig{Sender: tcp.Config{Recovery: tcp.BySACK, Control: tcp.NewCUBIC}}, []Hop{down}, []Hop{up})
	f.Start(0)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		s.Run(time.Duration(i) * time.Second)
	}
	b.ReportMetric(float64(f.Receiver.Delivered)/b.Elapsed().Seconds(), "segments/s")
}
