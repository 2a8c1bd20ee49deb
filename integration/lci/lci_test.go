package lci_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"mihf.dev/integration/link"
	"mihf.dev/mihf"
)

const patience = 30 * time.Second

// setting is what a link is set to in the loaded direction; the other way has only the delay.
type setting struct {
	control string
	up      bool
	mbit    float64
	rtt     time.Duration
	loss    float64
}

func (s setting) String() string {
	way := "down"
	if s.up {
		way = "up"
	}
	return fmt.Sprintf("%s/%s/%vMbit/%v/loss=%v", s.control, way, s.mbit, s.rtt, s.loss)
}

// queue is one round trip's worth, and room for twenty packets at least.
func (s setting) queue() int { return max(30_000, int(s.mbit*1e6/8*s.rtt.Seconds())) }

func (s setting) bed(t *testing.T) *bed {
	t.Helper()
	there := link.Conditions{RateBPS: s.mbit * 1e6, Delay: s.rtt / 2, QueueBytes: s.queue(), Loss: s.loss}
	back := link.Conditions{Delay: s.rtt / 2}
	if s.up {
		return newBed(t, there, back)
	}
	return newBed(t, back, there)
}

func (s setting) capacity(l *mihf.LCI) mihf.Characteristic {
	if s.up {
		return l.CapacityUpBPS
	}
	return l.CapacityDownBPS
}

func within(c mihf.Characteristic, want, share float64) bool {
	return c.Source == mihf.SourceMeasured && math.Abs(c.Value-want) <= share*want
}

// until feeds the estimator until what is known is right; a busy machine is late, but not wrong.
func (b *bed) until(what string, ok func(*mihf.LCI) bool) *mihf.LCI {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		l := b.watch(100 * time.Millisecond)
		if ok(l) {
			return l
		}
		if time.Now().After(end) {
			b.t.Fatalf("no %s: %+v", what, *l)
		}
	}
}

// Kernel TCP loads the link: the capacity is the one that is set, in both directions and by two congestion controls, and
// the RTT is that without the queue.
func TestCapacityOfALoadedLink(t *testing.T) {
	for _, s := range []setting{
		{"cubic", true, 5, 40 * time.Millisecond, 0},
		{"cubic", false, 5, 40 * time.Millisecond, 0},
		{"bbr", true, 5, 40 * time.Millisecond, 0}, // down it leaves too little of a queue for a busy machine
	} {
		t.Run(s.String(), func(t *testing.T) {
			needs(t, s.control)
			b := s.bed(t)
			b.load(s.control, s.up)
			l := b.until("capacity", func(l *mihf.LCI) bool { return within(s.capacity(l), s.mbit*1e6, 0.15) })
			if rtt := l.RTTSeconds.Value; rtt < s.rtt.Seconds() {
				t.Errorf("RTT %v s over a link of %v", rtt, s.rtt)
			}
			back := setting{up: !s.up}
			if c := back.capacity(l); c.Source == mihf.SourceMeasured && c.Value > 1e6 {
				t.Errorf("a capacity of %v bit/s in the direction that only acknowledgements take", c.Value)
			}
		})
	}
}

// "With two flows sharing the link the sum is right."
func TestTwoFlowsShare(t *testing.T) {
	s := setting{"cubic", true, 8, 40 * time.Millisecond, 0}
	b := s.bed(t)
	b.load("cubic", true)
	b.load("cubic", true)
	b.until("capacity", func(l *mihf.LCI) bool { return within(l.CapacityUpBPS, s.mbit*1e6, 0.15) })
}

// "After a change of the link's rate by half: the LCI follows."
func TestRateChanges(t *testing.T) {
	s := setting{"cubic", true, 8, 40 * time.Millisecond, 0}
	b := s.bed(t)
	b.load("cubic", true)
	for _, mbit := range []float64{8, 4, 8} {
		b.link.Change(link.Upward, func(c *link.Conditions) { c.RateBPS = mbit * 1e6 })
		b.until(fmt.Sprintf("capacity of %v Mbit/s", mbit), func(l *mihf.LCI) bool { return within(l.CapacityUpBPS, mbit*1e6, 0.15) })
	}
}

// Losses of the link are found, and no capacity is made of a rate that they hold down.
func TestLossyLink(t *testing.T) {
	s := setting{"cubic", true, 50, 40 * time.Millisecond, 0.02}
	b := s.bed(t)
	b.load("cubic", true)
	l := b.until("loss", func(l *mihf.LCI) bool { return within(l.LossRatio, s.loss, 0.3) })
	if c := l.CapacityUpBPS; c.Known() && c.Value > 1.15*s.mbit*1e6 {
		t.Errorf("capacity %v", c.Value)
	}
}
