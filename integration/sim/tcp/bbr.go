package tcp

import (
	"time"

	"mihf.dev/mihf"
)

// The constants of BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00.
const (
	bbrHighGain  = 2.885 // 2/ln 2: doubles the rate each round trip
	bbrWindow    = 2     // of bandwidth-delay products
	bbrRounds    = 10    // for which the largest rate of delivery is kept
	bbrMinRTTFor = 10 * time.Second
	bbrProbeFor  = 200 * time.Millisecond
	bbrLeast     = 4    // segments
	bbrGrowth    = 1.25 // of the rate in a round trip, or the pipe counts as full
	bbrFlat      = 3    // round trips without that growth
	bbrMargin    = 0.99 // of the rate, so that a queue can empty
)

// bbrCycle are the pacing gains while the bandwidth is probed.
var bbrCycle = [...]float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}

// bbrState is where BBR is.
type bbrState uint8

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrProbeBandwidth
	bbrProbeRTT
)

// bbr models the path by the largest rate of delivery and the least RTT, and sends what that holds.
type bbr struct {
	state  bbrState
	initW  float64
	cwnd   float64
	prior  float64 // before a recovery or a probe of the RTT
	pacing float64 // segments/s

	rates     [bbrRounds]float64 // largest by round
	round     uint64
	roundEnds uint64 // total delivered at which it does
	began     bool   // a round began with this acknowledgement

	minRTT time.Duration
	minAt  mihf.Time

	best   float64 // rate when growth was last seen
	flat   int
	filled bool

	phase     int
	phaseAt   mihf.Time
	probeEnds mihf.Time
	probeHas  bool // a round has passed in it
	conserve  bool // the first round of a recovery
}

// NewBBR returns BBR, version 1, with an initial window in segments. It wants a recovery [BySACK]
// or [ByTime].
func NewBBR(initial float64) Control { return &bbr{initW: initial, cwnd: initial} }

func (b *bbr) Acked(Event) {}

// bandwidth is the filtered rate of delivery in segments/s.
func (b *bbr) bandwidth() float64 {
	most := 0.0
	for _, r := range b.rates {
		most = max(most, r)
	}
	return most
}

// bdp is a multiple of the bandwidth-delay product in segments.
func (b *bbr) bdp(gain float64) float64 {
	if b.minRTT == 0 {
		return float64(gain * b.initW)
	}
	return float64(gain * b.bandwidth() * b.minRTT.Seconds())
}

func (b *bbr) gains() (pacing, window float64) {
	switch b.state {
	case bbrStartup:
		return bbrHighGain, bbrHighGain
	case bbrDrain:
		return 1 / bbrHighGain, bbrHighGain
	case bbrProbeBandwidth:
		return bbrCycle[b.phase], bbrWindow
	default:
		return 1, 1
	}
}

// Delivered updates the model, then the state, then the rate and the window.
func (b *bbr) Delivered(d Delivery) {
	b.measure(d)
	b.checkFull(d)
	b.drain(d)
	b.turn(d)
	b.refreshRTT(d)
	b.setPacing(d)
	b.setWindow(d)
}

// measure counts rounds and keeps the largest rate of each.
func (b *bbr) measure(d Delivery) {
	b.began = false
	if d.Fresh > 0 && d.Prior >= b.roundEnds {
		b.roundEnds, b.began = d.Total, true
		b.round++
		b.rates[b.round%bbrRounds] = 0
		b.conserve = false
	}
	if d.Rate > 0 && (!d.AppLimit || d.Rate >= b.bandwidth()) {
		r := &b.rates[b.round%bbrRounds]
		*r = max(*r, d.Rate)
	}
}

// checkFull finds out whether the rate has stopped to grow.
func (b *bbr) checkFull(d Delivery) {
	if b.filled || !b.began || d.AppLimit {
		return
	}
	if rate := b.bandwidth(); rate >= b.best*bbrGrowth {
		b.best, b.flat = rate, 0
		return
	}
	b.flat++
	b.filled = b.flat >= bbrFlat
}

// drain lets the queue of the start run empty.
func (b *bbr) drain(d Delivery) {
	if b.state == bbrStartup && b.filled {
		b.state = bbrDrain
	}
	if b.state == bbrDrain && float64(d.Pipe) <= b.bdp(1) {
		b.cruise(d.Now)
	}
}

// cruise begins to probe the bandwidth, in any phase but that which drains: by the count of rounds,
// so that flows do not probe at once.
func (b *bbr) cruise(now mihf.Time) {
	b.state, b.phaseAt = bbrProbeBandwidth, now
	b.phase = (2 + int(b.round%7)) % len(bbrCycle)
}

// turn goes on to the next phase of the cycle.
func (b *bbr) turn(d Delivery) {
	if b.state != bbrProbeBandwidth {
		return
	}
	over := d.Now.Sub(b.phaseAt) > b.minRTT
	switch gain := bbrCycle[b.phase]; {
	case gain > 1:
		over = over && (d.NewLosses || float64(d.Pipe) >= b.bdp(gain))
	case gain < 1:
		over = over || float64(d.Pipe) <= b.bdp(1)
	}
	if over {
		b.phase, b.phaseAt = (b.phase+1)%len(bbrCycle), d.Now
	}
}

// refreshRTT keeps the least RTT of ten seconds, and empties the network for it when that is old.
func (b *bbr) refreshRTT(d Delivery) {
	old := !b.minAt.IsZero() && d.Now.Sub(b.minAt) > bbrMinRTTFor
	if d.RTT > 0 && (b.minRTT == 0 || d.RTT <= b.minRTT || old) {
		b.minRTT, b.minAt = d.RTT, d.Now
	}
	if old && b.state != bbrProbeRTT {
		b.state, b.probeEnds = bbrProbeRTT, 0
		b.prior = max(b.prior, b.cwnd)
	}
	if b.state != bbrProbeRTT {
		return
	}
	switch {
	case b.probeEnds.IsZero():
		if d.Pipe <= bbrLeast {
			b.probeEnds, b.probeHas = d.Now.Add(bbrProbeFor), false
			b.roundEnds = d.Total
		}
	case b.began:
		b.probeHas = true
		fallthrough
	default:
		if b.probeHas && b.probeEnds.Due(d.Now) {
			b.minAt = d.Now
			b.restore()
			if b.filled {
				b.cruise(d.Now)
			} else {
				b.state = bbrStartup
			}
		}
	}
}

func (b *bbr) restore() { b.cwnd, b.prior = max(b.cwnd, b.prior), 0 }

func (b *bbr) setPacing(d Delivery) {
	gain, _ := b.gains()
	rate := float64(gain * b.bandwidth() * bbrMargin)
	if b.pacing == 0 && d.SRTT > 0 {
		rate = bbrHighGain * b.initW / d.SRTT.Seconds()
	}
	if b.filled || rate > b.pacing {
		b.pacing = rate
	}
}

func (b *bbr) setWindow(d Delivery) {
	if d.Recovery && b.conserve {
		b.cwnd = max(b.cwnd, float64(d.Pipe+d.Fresh))
		return
	}
	_, gain := b.gains()
	target := b.bdp(gain) + 3 // three quanta, for delayed and stretched acknowledgements
	switch {
	case b.filled:
		b.cwnd = min(b.cwnd+float64(d.Fresh), target)
	case b.cwnd < target || float64(d.Total) < b.initW:
		b.cwnd += float64(d.Fresh)
	}
	b.cwnd = max(b.cwnd, bbrLeast)
	if b.state == bbrProbeRTT {
		b.cwnd = min(b.cwnd, bbrLeast)
	}
}

// Congestion sends, for a round, only as much as is delivered.
func (b *bbr) Congestion(_ mihf.Time, inFlight int) {
	b.prior = max(b.prior, b.cwnd)
	b.cwnd, b.conserve = min(b.cwnd, float64(max(inFlight, 1))), true
}

// Timeout begins with one segment; the model stands.
func (b *bbr) Timeout(mihf.Time, int, bool) {
	b.prior = max(b.prior, b.cwnd)
	b.cwnd = 1
}

// Recovered takes the window from before.
func (b *bbr) Recovered(mihf.Time, float64) {
	b.conserve = false
	b.restore()
}

// Idle keeps the model: pacing prevents a burst.
func (b *bbr) Idle(mihf.Time, float64) {}

// Window is the congestion window in segments.
func (b *bbr) Window() float64 { return b.cwnd }

// Threshold is none.
func (b *bbr) Threshold() float64 { return unlimited }

// PacingRate is in segments/s; 0 before the first RTT.
func (b *bbr) PacingRate() float64 { return b.pacing }
