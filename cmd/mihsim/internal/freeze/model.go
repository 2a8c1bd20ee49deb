package freeze

import (
	"math"
	"time"

	"mihf.dev/transports/tfrc"
)

// disconnection is the model of a break (the paper's equations 5 to 7): from the last start of the
// nofeedback timer the rate is halved each time that this expires, and what is sent is lost.
type disconnection struct {
	halvings int
	rate     float64 // bytes/s at the reconnection
	lost     float64 // packets
}

// modelBreak computes it for a rate in bytes/s, a round trip and a length in seconds, and the size
// of a packet in bytes.
func modelBreak(rate, rtt, length, size float64) disconnection {
	d := disconnection{rate: rate}
	least := size / tfrc.MaxBackoff.Seconds()
	for t := 0.0; ; d.halvings++ {
		step := max(4*rtt, 2*size/d.rate)
		if t+step > length {
			d.lost += d.rate * (length - t) / size
			return d
		}
		d.lost += d.rate * step / size
		t += step
		d.rate = max(d.rate/2, least)
	}
}

// modelWaste computes the wasted capacity after a break (equations 10 to 14), in packets: idle
// until the next packet, the rate doubled each round trip up to what the equation allows, then
// its growth as the loss interval does. from is the flow before the break, to what it settles to.
func (p *parameters) modelWaste(from, to stationary, d disconnection, length float64) float64 {
	size, limit := float64(p.TFRC.SegmentBytes), p.Handover.WastedLimitSeconds
	idle := size / d.rate / 2
	t := idle + to.rtt
	waste := (to.rate - d.rate) * min(t, limit) / size
	history := shiftedHistory(from.lossRate)
	// The first report covers the break: what came since the last one before it, over all that time.
	received := size * (from.rate*from.rtt/(2*size) + 1) / (length + idle)
	x, rtt := 2*received, from.rtt
	for t < limit && x < p.Handover.Restored*to.rate {
		rtt = 0.9*rtt + 0.1*to.rtt
		step := min(max(rtt, size/x), limit-t)
		waste += (to.rate - x) * step / size
		t += step
		history[0] += x * step / size
		calc := float64(tfrc.Throughput(size, time.Duration(rtt*float64(time.Second)), lossRateOf(history)))
		x = min(2*x, max(calc, size/tfrc.MaxBackoff.Seconds()))
	}
	return waste
}

// shiftedHistory is a history of equal loss intervals into which a loss event came at a random
// place, so that the newest complete one is half as long.
func shiftedHistory(lossRate float64) (h [9]float64) {
	for i := range h {
		h[i] = 1 / lossRate
	}
	h[0], h[1] = 1, h[1]/2
	return h
}

// lossRateOf is the loss event rate of nine intervals (RFC 5348, section 5.4).
func lossRateOf(h [9]float64) float64 {
	weights := [8]float64{1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2}
	var with, without, sum float64
	for i, w := range weights {
		with += float64(w * h[i])
		without += float64(w * h[i+1])
		sum += w
	}
	return sum / math.Max(with, without)
}
