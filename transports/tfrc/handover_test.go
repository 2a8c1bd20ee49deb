package tfrc

import (
	"testing"
	"time"
)

// technology is a link of one kind. Those of the paper, with their full rates, are in the
// freeze-handover experiment.
type technology struct {
	name  string
	bps   float64
	delay time.Duration
}

var (
	umts = technology{"UMTS", 384e3, 126 * time.Millisecond}
	wide = technology{"wide", 1.2e6, 41 * time.Millisecond}
	fast = technology{"fast", 1.6e6, 11 * time.Millisecond}
)

// capacity is what the link carries of application data.
func (l technology) capacity(p *path) Rate {
	return Rate(l.bps / 8 * float64(p.bytes) / float64(p.bytes+p.header))
}

type outcome struct {
	lostDown  int           // packets sent while the path was down
	wasted    float64       // packets: the integral of capacity less allowed rate, up to 95 %
	delivered int           // packets in the 20 s from reconnection
	settled   time.Duration // until 95 % of the capacity was allowed, at most 20 s
	maxRate   Rate          // while Restoring
	before    Rate          // at the freeze
	probes    uint64
}

// handover runs a flow for 40 s on one link, breaks it for 2.7 s and goes on on another.
// known is what the sender hears of its capacity, as a part of the truth; 0: nothing.
func handover(v Variant, from, to technology, freeze bool, known float64) outcome {
	s := NewSender(SenderConfig{Variant: v, SegmentBytes: 500})
	p := newPath(s, NewReceiver(ReceiverConfig{Variant: v}), from.bps, from.delay)
	p.run(39 * time.Second)
	lead := s.RTT() * 5 / 4
	p.run(time.Second - lead)
	var o outcome
	if o.before = s.Rate(); freeze {
		s.Freeze(p.now, 0)
		p.wakeSender()
	}
	p.run(lead)
	p.down = true
	p.run(2700 * time.Millisecond)
	o.lostDown = p.lostDown
	p.down = false
	p.link(to.bps, to.delay)
	if freeze {
		t := Thaw{}
		if known > 0 {
			t.Path = Path{Capacity: to.capacity(p) * Rate(known), RTT: 2 * to.delay}
		}
		s.Unfreeze(p.now, t)
		p.wakeSender()
	}
	p.watch(to.capacity(p), &o)
	p.run(20 * time.Second)
	o.delivered = p.arrived - o.delivered
	o.probes = s.FreezeCounts().Probes
	return o
}

// watch measures what a flow makes of a path that has just come.
func (p *path) watch(capacity Rate, o *outcome) {
	start, last, rate := p.now, p.now, p.s.Rate()
	o.delivered = p.arrived
	o.settled = 20 * time.Second
	done := false
	step := func() {
		if !done {
			o.wasted += float64(capacity-rate) * p.now.Sub(last).Seconds() / float64(p.bytes)
		}
		last, rate = p.now, p.s.Rate()
		if !done && rate >= capacity*95/100 {
			o.settled, done = p.now.Sub(start), true
		}
		if p.s.State() == Restoring {
			o.maxRate = max(o.maxRate, rate, p.s.PacedRate())
		}
	}
	step()
	p.turned = step
	p.reported = func(*Report) { step() }
}

// What the extension is for: nothing is sent into the void, and the new path is used
// sooner. What is known of the path has to help in every case.
func TestHandovers(t *testing.T) {
	for _, pair := range [][2]technology{
		{fast, fast}, {umts, fast}, {fast, umts}, {fast, wide}, {umts, umts}, {umts, wide},
	} {
		for _, v := range []Variant{RFC5348, CCID3} {
			from, to := pair[0], pair[1]
			t.Run(from.name+" to "+to.name+"/"+v.String(), func(t *testing.T) {
				plain := handover(v, from, to, false, 0)
				frozen := handover(v, from, to, true, 0)
				known := handover(v, from, to, true, 1)
				t.Logf("plain %+v\nfrozen %+v\nknown %+v", plain, frozen, known)
				if plain.lostDown == 0 || frozen.lostDown != 0 || known.lostDown != 0 {
					t.Errorf("lost while down: %d without, %d and %d with a freeze; want some, 0, 0", plain.lostDown, frozen.lostDown, known.lostDown)
				}
				if frozen.wasted >= plain.wasted || known.wasted >= plain.wasted {
					t.Errorf("wasted %.0f without, %.0f and %.0f with a freeze", plain.wasted, frozen.wasted, known.wasted)
				}
				if known.delivered < plain.delivered || float64(known.delivered) < 0.99*float64(frozen.delivered) {
					t.Errorf("delivered %d without, %d with a freeze, %d with the path known", plain.delivered, frozen.delivered, known.delivered)
				}
				for _, o := range []outcome{frozen, known} {
					if o.maxRate > o.before {
						t.Errorf("restoring at %.0f, above the %.0f before", o.maxRate, o.before)
					}
				}
			})
		}
	}
}

// What is said of a path may be wrong: then it must not make a handover worse than it is
// without a freeze, by more than the time to find out.
func TestWrongCapacity(t *testing.T) {
	for _, pair := range [][2]technology{{fast, fast}, {umts, fast}, {fast, umts}, {umts, umts}} {
		plain := handover(CCID3, pair[0], pair[1], false, 0)
		for _, known := range []float64{0.25, 0.5, 2, 4} {
			o := handover(CCID3, pair[0], pair[1], true, known)
			if float64(o.delivered) < 0.9*float64(plain.delivered) {
				t.Errorf("%s to %s, told %v of its capacity: delivered %d, without a freeze %d", pair[0].name, pair[1].name, known, o.delivered, plain.delivered)
			}
		}
	}
}
