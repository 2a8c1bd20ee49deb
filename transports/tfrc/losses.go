package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

// lose takes a hole for lost: it belongs to the current loss event, or begins new ones.
func (r *Receiver) lose(h *hole) {
	r.Lost += h.to - h.from
	if r.resumed.tail {
		r.extend(h.from, h.to)
		return
	}
	if r.cfg.Variant == CCID3 {
		// However long the hole is: nothing tells when its packets were sent.
		if r.separateCounter(h.counter) {
			r.begin(h, h.from, h.to)
			return
		}
		r.extend(h.from, h.to)
		return
	}
	rtt := int64(r.lossRTT())
	from := h.from
	if r.history.n > 0 {
		from = h.after(r.history.events[0].at + rtt)
		r.extend(h.from, from)
	}
	if from < h.to {
		step := h.after(h.arrival(from)+rtt) - from
		if events := (h.to - from) / step; events > historyLength {
			// Only so many count; the packets before them end the interval before.
			from += (events - historyLength) * step
		}
	}
	for from < h.to {
		next := h.after(h.arrival(from) + rtt)
		r.begin(h, from, next)
		from = next
	}
}

// mark takes a marked packet for a loss event (RFC 5348, section 5.1): at once, after
// what may have been lost before it.
func (r *Receiver) mark(now mihf.Time, p *Packet) {
	if p.Seq == r.highest {
		for {
			h, ok := r.holes.ripe(true)
			if !ok {
				break
			}
			r.lose(&h)
		}
	}
	h := hole{from: p.Seq, to: p.Seq + 1, low: p.Seq - 1, high: p.Seq, before: now, past: now, counter: r.counterBefore}
	separate := r.separateTime(now)
	if r.cfg.Variant == CCID3 {
		separate = r.separateCounter(h.counter)
	}
	switch n := r.history.n; {
	case r.resumed.tail:
		r.extend(h.from, h.to)
	case separate && (n == 0 || p.Seq >= r.history.events[0].lossEnd):
		r.begin(&h, h.from, h.to)
	case n > 0 && p.Seq >= r.history.events[0].start:
		r.extend(h.from, h.to)
	}
}

// separateCounter says whether a loss behind a packet with the counter is a new event:
// more than four quarters passed (RFC 4342, section 10.2).
func (r *Receiver) separateCounter(counter int64) bool {
	return r.history.n == 0 || counter-r.history.events[0].counter > roundTrip
}

// separateTime says whether a loss at the time is a new event (RFC 5348, section 5.2).
func (r *Receiver) separateTime(at mihf.Time) bool {
	return r.history.n == 0 || int64(at) > r.history.events[0].at+int64(r.lossRTT())
}

// lossRTT is the round-trip time that tells loss events apart.
func (r *Receiver) lossRTT() time.Duration {
	if rtt := r.RTT(); rtt > 0 {
		return rtt
	}
	return unknownRTT
}

// extend adds lost packets to the current loss event.
func (r *Receiver) extend(from, to uint64) {
	if from == to {
		return
	}
	e := &r.history.events[0]
	e.lossEnd = max(e.lossEnd, to)
	e.lost += to - from
}

// begin starts a loss event with the packets from and up to and not including to.
func (r *Receiver) begin(h *hole, from, to uint64) {
	e := event{
		start: from, lossEnd: to, at: h.arrival(from), counter: h.counter,
		lost: to - from, nonData: h.laterNonData,
	}
	length := 0.0
	if r.history.n == 0 {
		length = r.firstInterval(h)
	} else if r.cfg.HistoryDiscounting {
		r.history.discount(from)
	}
	r.history.begin(e, length)
	r.LossEvents++
	if r.resumed.lost(from) {
		r.history.reset(r.currentInterval())
	}
}

// firstInterval is the length of the interval before the first loss (RFC 5348, section
// 6.3.1): that of the greatest X_recv so far, at least half a packet a round-trip.
func (r *Receiver) firstInterval(h *hole) float64 {
	rtt := r.lossRTT()
	s := r.segment()
	target := max(r.maxRate, Rate(s/2/rtt.Seconds()))
	if r.Reports > 0 && h.from > r.history.first {
		target = max(target, r.meter.rate(r.now, rtt, r.cfg.Variant))
	}
	return lossInterval(s, rtt, target)
}

// currentInterval is the loss interval that stands for the present X_recv.
func (r *Receiver) currentInterval() float64 {
	rtt, s := r.lossRTT(), r.segment()
	return lossInterval(s, rtt, max(r.meter.rate(r.now, rtt, r.cfg.Variant), Rate(s/2/rtt.Seconds())))
}

// segment is s as far as the receiver knows it.
func (r *Receiver) segment() float64 {
	switch {
	case r.cfg.SegmentBytes > 0:
		return float64(r.cfg.SegmentBytes)
	case r.Bytes > 0:
		return float64(r.Bytes) / float64(r.Packets)
	default:
		return 1460
	}
}
