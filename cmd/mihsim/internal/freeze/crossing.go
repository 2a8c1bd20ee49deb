package freeze

import (
	"math"
	"time"

	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
	"mihf.dev/transports/tfrc"
)

// A variant is how a flow is told of a hand-over.
type variant uint8

const (
	plain     variant = iota // not at all
	frozen                   // by Freeze and Unfreeze
	frozenLCI                // and what the new link is like
	variants
)

func (v variant) String() string { return [...]string{"tfrc", "freeze", "freeze_lci"}[v] }

// A crossing is one hand-over of one flow.
type crossing struct {
	from, to technology
	at       time.Duration // of the break
	outage   time.Duration
	variant  variant
	target   float64       // rate to be reached, bytes/s
	limit    time.Duration // from the reconnection, to reach it
	record   bool          // keep the allowed rate over time
}

// An outcome is what came of it. Times are in seconds from the reconnection.
type outcome struct {
	lostDown, lostBreak int
	first               float64 // arrival of the first packet; NaN: none
	restored            float64 // the target is reached; NaN: not within the limit
	wasted              float64 // packets
	delivered           int
	rates               []experiment.Point // Mbit/s
}

// watcher follows a flow over a crossing.
type watcher struct {
	p    *parameters
	c    crossing
	s    *sim.Sim
	flow *sim.TFRCFlow
	out  outcome

	back  time.Duration // the reconnection
	taken []mihf.Time   // when packets that the break took were sent
	timer mihf.Time     // when the last nofeedback timer before the reconnection was started
	rate  float64       // bytes/s, from moved on
	moved time.Duration
}

func (p *parameters) cross(seed uint64, c crossing) outcome {
	s := sim.New(seed)
	x := p.path(s, c.from)
	f := sim.NewTFRCFlow(s, p.flow(), x.forward, x.back)
	w := watch(p, s, x, f, c)
	f.Start(0)
	w.run()
	return w.end()
}

// watch lets the crossing happen and the flow be told of it, and measures what comes of it.
func watch(p *parameters, s *sim.Sim, x path, f *sim.TFRCFlow, c crossing) *watcher {
	w := &watcher{p: p, c: c, s: s, flow: f, back: c.at + c.outage}
	w.out.first, w.out.restored = math.NaN(), math.NaN()
	x.handover(c.at, c.outage, c.to)
	x.down.OnDrop = func(q *sim.Packet, why sim.Reason) {
		if q.Flow == 1 && (why == sim.Down || why == sim.Flushed || why == sim.Cut) {
			w.taken = append(w.taken, q.Sent)
		}
	}
	f.OnDeliver = func(now mihf.Time, _ *sim.Packet, _ uint64) { w.arrived(sim.Since(now) - w.back) }
	f.OnRate = func(now mihf.Time) { w.changed(sim.Since(now)) }
	s.At(w.back, func() {
		w.timer = f.LastFeedback()
		w.changed(w.back)
	})
	p.tell(s, f, c)
	return w
}

// tell freezes the flow when the time to the break is one of its round-trip times, by the last
// sample or smoothed, whichever is longer, and thaws it shortly after the link is back.
func (p *parameters) tell(s *sim.Sim, f *sim.TFRCFlow, c crossing) {
	if c.variant == plain {
		return
	}
	var look *sim.Timer
	look = s.Timer(func(now mihf.Time) {
		if lead := max(f.RTT(), f.Sender.RTT()); sim.Since(now)+lead < c.at {
			look.Set(now.Add(time.Millisecond))
			return
		}
		f.Freeze(c.outage + time.Minute)
	})
	look.Set(sim.Moment(c.at - min(c.at, 10*time.Second)))
	s.At(c.at+c.outage+seconds(p.Handover.UnfreezeSeconds), func() { f.Unfreeze(p.thaw(c.to, c.variant == frozenLCI)) })
}

// run lets time pass until all is measured.
func (w *watcher) run() {
	w.s.Run(w.back + seconds(w.p.Handover.DeliveredSeconds))
	for w.open() {
		w.s.Run(w.s.Elapsed() + time.Second)
	}
}

// longest is how long after the reconnection a first packet is waited for: longer than the
// slowest sender waits, which sends one in 64 s.
const longest = 130 * time.Second

// open reports whether something is still waited for.
func (w *watcher) open() bool {
	since := w.s.Elapsed() - w.back
	return (math.IsNaN(w.out.restored) && since < w.c.limit) || (math.IsNaN(w.out.first) && since < longest)
}

func (w *watcher) arrived(since time.Duration) {
	if since < 0 {
		return
	}
	if math.IsNaN(w.out.first) {
		w.out.first = since.Seconds()
	}
	if since < seconds(w.p.Handover.DeliveredSeconds) {
		w.out.delivered++
	}
}

// changed takes the allowed rate, which holds from now on.
func (w *watcher) changed(at time.Duration) {
	rate := float64(w.flow.Sender.Rate())
	if w.flow.Sender.State() == tfrc.Frozen {
		rate = 0
	}
	if w.c.record {
		w.out.rates = append(w.out.rates, experiment.Point{X: (at - w.back).Seconds(), Y: rate * 8 / 1e6})
	}
	if at < w.back || !math.IsNaN(w.out.restored) {
		return
	}
	w.waste(at)
	w.rate = rate
	if at <= w.back+w.c.limit && rate >= w.p.Handover.Restored*w.c.target {
		w.out.restored = (at - w.back).Seconds()
	}
}

// waste adds what could have been sent since the last change.
func (w *watcher) waste(at time.Duration) {
	from, to := max(w.moved, w.back), min(at, w.back+w.c.limit)
	if to > from {
		w.out.wasted += (w.c.target - w.rate) * (to - from).Seconds() / float64(w.p.TFRC.SegmentBytes)
	}
	w.moved = at
}

func (w *watcher) end() outcome {
	if math.IsNaN(w.out.restored) {
		w.waste(w.s.Elapsed())
	}
	for _, sent := range w.taken {
		w.out.lostBreak++
		if sent >= w.timer {
			w.out.lostDown++
		}
	}
	return w.out
}
