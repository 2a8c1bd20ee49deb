package link_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/integration/link"
	"mihf.dev/mihf"
)

const start = mihf.Time(time.Hour)

// lineTest drives a Line and writes down what comes out of it and when.
type lineTest struct {
	*link.Line
	now mihf.Time
	got []string
}

func newLineTest(c link.Conditions) *lineTest {
	lt := &lineTest{Line: link.NewLine(c, 1), now: start}
	lt.Watch = func(now mihf.Time, p *link.Packet, fate link.Fate) {
		lt.got = append(lt.got, fmt.Sprintf("%v %s %v", now.Sub(start), p.Data, fate))
	}
	return lt
}

// at goes to a moment and stops wherever something comes out before.
func (lt *lineTest) at(d time.Duration) {
	to := start.Add(d)
	for next := lt.Next(); next.Due(to); next = lt.Next() {
		lt.Advance(next, nil)
	}
	lt.Advance(to, nil)
	lt.now = to
}

func (lt *lineTest) push(size int, names ...string) {
	for _, n := range names {
		lt.Push(lt.now, link.Packet{Data: []byte(n), Size: size})
	}
}

func (lt *lineTest) change(f func(c *link.Conditions)) {
	c := lt.Conditions()
	f(&c)
	lt.Set(lt.now, c)
}

func (lt *lineTest) want(t *testing.T, want ...string) {
	t.Helper()
	lt.at(time.Hour)
	if diff := cmp.Diff(want, lt.got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// 1 Mbit/s: 1250 octets take 10 ms.
var megabit = link.Conditions{RateBPS: 1e6, Delay: 50 * time.Millisecond}

func TestRateAndDelay(t *testing.T) {
	lt := newLineTest(megabit)
	lt.push(1250, "a", "b")
	lt.at(15 * time.Millisecond)
	lt.push(625, "c")
	lt.at(100 * time.Millisecond)
	lt.push(1, "d")
	lt.want(t, "60ms a delivered", "70ms b delivered", "75ms c delivered", "150.008ms d delivered")
}

func TestNothingSetPassesAtOnce(t *testing.T) {
	lt := newLineTest(link.Conditions{})
	lt.push(1500, "a", "b")
	lt.want(t, "0s a delivered", "0s b delivered")
}

// "The queue drops what comes when it is full, and nothing else. The packet in transmission is not in it."
func TestQueue(t *testing.T) {
	for _, tc := range []struct {
		name           string
		packets, bytes int
	}{{"packets", 2, 0}, {"octets", 0, 2500}, {"octets, not full by less than a packet", 0, 3749}, {"the smaller of both", 2, 1e6}} {
		t.Run(tc.name, func(t *testing.T) {
			c := megabit
			c.QueuePackets, c.QueueBytes = tc.packets, tc.bytes
			lt := newLineTest(c)
			lt.push(1250, "a", "b", "c", "d")
			if s := lt.Stats(lt.now); s.WaitingBytes != 2500 || s.WaitingPackets != 2 {
				t.Errorf("%d octets in %d packets wait", s.WaitingBytes, s.WaitingPackets)
			}
			lt.at(10 * time.Millisecond)
			lt.push(1250, "e", "f")
			lt.want(t, "0s d queue full", "10ms f queue full", "60ms a delivered", "70ms b delivered", "80ms c delivered", "90ms e delivered")
			if s := lt.Stats(lt.now); s.MostWaitingBytes != 2500 || s.WaitingBytes != 0 || s.FlyingPackets != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestQueueHasADefaultBound(t *testing.T) {
	lt := newLineTest(megabit)
	for range link.DefaultQueuePackets + 10 {
		lt.push(100, "x")
	}
	if s := lt.Stats(lt.now); s.Packets[link.QueueFull] != 9 || s.WaitingPackets != link.DefaultQueuePackets {
		t.Errorf("%d dropped, %d wait", s.Packets[link.QueueFull], s.WaitingPackets)
	}
}

// "A changed rate holds for what is left of that packet."
func TestRateChanges(t *testing.T) {
	lt := newLineTest(link.Conditions{RateBPS: 1e6})
	lt.push(1250, "a", "b")
	lt.at(4 * time.Millisecond)
	lt.change(func(c *link.Conditions) { c.RateBPS = 2e6 })
	lt.at(6 * time.Millisecond)
	lt.change(func(c *link.Conditions) { c.RateBPS = 0.5e6 })
	lt.want(t, "10ms a delivered", "30ms b delivered")
}

func TestRateBecomesEndless(t *testing.T) {
	lt := newLineTest(link.Conditions{RateBPS: 1e6})
	lt.push(1250, "a", "b")
	lt.at(4 * time.Millisecond)
	lt.change(func(c *link.Conditions) { c.RateBPS = 0 })
	lt.push(1250, "c")
	lt.want(t, "4ms a delivered", "4ms b delivered", "4ms c delivered")
}

// "An outage takes no packet that is in flight. In a blackout the transmitter sends into the void."
func TestBlackout(t *testing.T) {
	lt := newLineTest(megabit)
	lt.push(1250, "a", "b", "c", "d")
	lt.at(15 * time.Millisecond)
	lt.change(func(c *link.Conditions) { c.Outage = link.Blackout })
	lt.at(35 * time.Millisecond)
	lt.change(func(c *link.Conditions) { c.Outage = link.NoOutage })
	lt.want(t, "20ms b lost in an outage", "30ms c lost in an outage", "60ms a delivered", "90ms d delivered")
}

// "In a stall it stands, the queue with it."
func TestStall(t *testing.T) {
	lt := newLineTest(megabit)
	lt.push(1250, "a", "b", "c")
	lt.at(14 * time.Millisecond)
	stall := func(c *link.Conditions) { c.Outage = link.Stall }
	lt.change(stall)
	lt.at(20 * time.Millisecond)
	lt.change(stall)
	lt.at(114 * time.Millisecond)
	if next := lt.Next(); !next.IsZero() {
		t.Errorf("something comes out at %v of a line that stalls", next)
	}
	lt.change(func(c *link.Conditions) { c.Outage, c.RateBPS = link.NoOutage, 2e6 })
	lt.want(t, "60ms a delivered", "167ms b delivered", "172ms c delivered")
}

func TestStallOfAnIdleLine(t *testing.T) {
	lt := newLineTest(link.Conditions{Outage: link.Stall, QueuePackets: 1})
	lt.push(1250, "a", "b", "c")
	lt.at(time.Second)
	lt.change(func(c *link.Conditions) { c.Outage = link.NoOutage })
	lt.want(t, "0s c queue full", "1s a delivered", "1s b delivered")
}

// "Order is kept when the delay shrinks."
func TestDelayShrinks(t *testing.T) {
	lt := newLineTest(megabit)
	lt.push(1250, "a")
	lt.at(10 * time.Millisecond)
	lt.change(func(c *link.Conditions) { c.Delay = time.Millisecond })
	lt.push(1250, "b")
	lt.at(60 * time.Millisecond)
	lt.push(1250, "c")
	lt.want(t, "60ms a delivered", "60ms b delivered", "71ms c delivered")
}

// Losses are as many as set, and "the same seed and the same packets at the same moments give the same losses".
func TestLoss(t *testing.T) {
	fates := func(seed uint64) (list []link.Fate) {
		l := link.NewLine(link.Conditions{RateBPS: 1e9, Loss: 0.1}, seed)
		l.Watch = func(_ mihf.Time, _ *link.Packet, fate link.Fate) { list = append(list, fate) }
		now := start
		for range 20_000 {
			l.Push(now, link.Packet{Size: 125})
			now = now.Add(time.Microsecond)
			l.Advance(now, nil)
		}
		lost := l.Stats(now).Packets[link.Lost]
		if math.Abs(float64(lost)-2000) > 4*math.Sqrt(20_000*0.1*0.9) {
			t.Errorf("%d of 20000 lost at 10 %%", lost)
		}
		return list
	}
	if a, b := fates(7), fates(7); !cmp.Equal(a, b) {
		t.Error("the same seed gives other losses")
	}
	if a, b := fates(7), fates(8); cmp.Equal(a, b) {
		t.Error("another seed gives the same losses")
	}
}

func TestOverflowOfWhatFlies(t *testing.T) {
	l := link.NewLine(link.Conditions{Delay: time.Minute}, 1)
	for range link.MaxPackets + 5 {
		l.Push(start, link.Packet{Size: 1})
	}
	if s := l.Stats(start); s.Packets[link.Overflow] != 5 || s.FlyingPackets != link.MaxPackets {
		t.Errorf("%d overflowed, %d fly", s.Packets[link.Overflow], s.FlyingPackets)
	}
}

func TestConditionsAreChecked(t *testing.T) {
	for _, c := range []link.Conditions{
		{RateBPS: -1},
		{RateBPS: math.NaN()},
		{RateBPS: math.Inf(1)},
		{Delay: -1},
		{Loss: 1.1},
		{Loss: math.NaN()},
		{QueueBytes: -1},
		{QueuePackets: -1},
		{QueuePackets: link.MaxPackets + 1},
		{Outage: 3},
	} {
		if c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a line of %+v", c)
				}
			}()
			link.NewLine(c, 1)
		}()
	}
}

// A packet comes out when its conditions say, whenever the line is asked, and each is counted once.
// The twin knows all packets beforehand and computes one after the other.
func TestAgainstATwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := link.Conditions{
			RateBPS:      rapid.SampledFrom([]float64{0, 1e5, 1e6, 3e7}).Draw(t, "rate"),
			Delay:        time.Duration(rapid.IntRange(0, 100).Draw(t, "delay")) * time.Millisecond,
			QueuePackets: rapid.IntRange(1, 5).Draw(t, "queue"),
		}
		l := link.NewLine(c, 1)
		var got, want []string
		l.Watch = func(now mihf.Time, p *link.Packet, fate link.Fate) {
			if fate == link.Delivered {
				got = append(got, fmt.Sprint(string(p.Data), now))
			}
		}
		now, free, dropped := start, start, 0
		var begins []mihf.Time // of those that the queue took
		n := rapid.IntRange(1, 40).Draw(t, "n")
		for i := range n {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "pause")) * time.Microsecond)
			if rapid.Bool().Draw(t, "ask") {
				l.Advance(now, nil)
			}
			size := rapid.IntRange(1, 1500).Draw(t, "size")
			name := fmt.Sprintf("%d at ", i)
			l.Push(now, link.Packet{Data: []byte(name), Size: size})

			waiting := 0
			for _, b := range begins {
				if b.Sub(now) > 0 {
					waiting++
				}
			}
			begin := max(free, now)
			if begin.Sub(now) > 0 && waiting >= c.QueuePackets {
				dropped++
				continue
			}
			begins = append(begins, begin)
			free = begin
			if c.RateBPS > 0 {
				free = begin.Add(time.Duration(math.Ceil(float64(size*8) * 1e9 / c.RateBPS)))
			}
			want = append(want, fmt.Sprint(name, free.Add(c.Delay)))
		}
		end := now.Add(time.Hour)
		l.Advance(end, nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if s := l.Stats(end); s.Packets[link.QueueFull] != uint64(dropped) || s.Packets[link.Delivered] != uint64(n-dropped) {
			t.Fatalf("%d dropped of %d, want %d: %+v", s.Packets[link.QueueFull], n, dropped, s)
		}
	})
}

// Whatever is changed, each packet is counted once, order is kept, and Next is never passed by.
func TestChangesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := link.NewLine(link.Conditions{}, rapid.Uint64().Draw(t, "seed"))
		var pushed, finished, lastSent int
		var lastOut mihf.Time
		l.Watch = func(now mihf.Time, p *link.Packet, fate link.Fate) {
			finished++
			if fate != link.Delivered {
				return
			}
			if n := p.Via.(int); n <= lastSent || now.Before(lastOut) {
				t.Fatalf("%d at %v comes after %d at %v", n, now, lastSent, lastOut)
			} else {
				lastSent, lastOut = n, now
			}
		}
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "pause")) * time.Microsecond)
			if rapid.Bool().Draw(t, "change") {
				l.Set(now, link.Conditions{
					RateBPS: rapid.SampledFrom([]float64{0, 1, 1e5, 1e7}).Draw(t, "rate"),
					Delay:   time.Duration(rapid.IntRange(0, 50).Draw(t, "delay")) * time.Millisecond,
					Loss:    rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "loss"), QueuePackets: 3,
					Outage: link.Outage(rapid.IntRange(0, 2).Draw(t, "outage")),
				})
			}
			pushed++
			l.Push(now, link.Packet{Size: rapid.IntRange(0, 1500).Draw(t, "size"), Via: pushed})
			if next := l.Next(); !next.IsZero() && next.Before(now) {
				if len(l.Advance(now, nil)) == 0 {
					t.Fatalf("at %v something was due at %v, but nothing came", now, next)
				}
			}
		}
		l.Set(now, link.Conditions{})
		l.Advance(now.Add(time.Hour), nil)
		if s := l.Stats(now.Add(time.Hour)); finished != pushed || s.WaitingPackets+s.FlyingPackets != 0 || !l.Next().IsZero() {
			t.Fatalf("%d of %d packets found an end: %+v", finished, pushed, s)
		}
	})
}

func BenchmarkLine(b *testing.B) {
	l := link.NewLine(link.Conditions{RateBPS: 1e8, Delay: 10 * time.Millisecond}, 1)
	now, data := start, make([]byte, 1500)
	var out []link.Packet
	for b.Loop() {
		now = now.Add(120 * time.Microsecond)
		l.Push(now, link.Packet{Data: data, Size: 1500})
		out = l.Advance(now, out[:0])
	}
}
