package lci

import (
	"time"

	"mihf.dev/mihf"
)

// Bounds of what is kept of flows.
const (
	MaxFlows  = 256
	FlowGone  = 3 * time.Second
	shortest  = 50 * time.Millisecond // between two readings that make an interval
	longest   = 5 * time.Second
	fullShare = 0.9  // of an interval that a flow must have been busy
	heldShare = 0.1  // of it that something else may have held it up
	steady    = 0.1  // by how much a steady rate may differ
	ramp      = 1.25 // times the rate before: still growing
	steadyFor = 1500 * time.Millisecond
)

// headers are the octets that IPv4 and TCP with timestamps put before a segment's data.
const headers = 52

// flow is one live flow.
type flow struct {
	ends mihf.Endpoints
	at   mihf.Time // of the reading
	last mihf.FlowReading

	base time.Duration // RTT without a queue; 0: not known
	// own says that the base is the lowest that was read here, as the transport's is from before the handover.
	own bool

	up, down direction
	sent     uint64 // segments in the interval
	again    uint64
}

// direction is what a flow did in one direction in the interval that its newest reading ended.
type direction struct {
	bps    float64   // with headers
	queue  bool      // one stood on the way at the end of the interval
	queued bool      // and at its beginning
	full   bool      // the network alone held the flow up
	steady mihf.Time // since when the rate has been the same; zero: it has not
	about  float64   // that rate
}

// saturates reports whether the flow's rate says what the way carries.
func (d *direction) saturates(now mihf.Time) bool {
	return d.full && ((d.queue && d.queued) || (!d.steady.IsZero() && now.Sub(d.steady) >= steadyFor))
}

// take takes the flow's next reading.
func (f *flow) take(now mihf.Time, r *mihf.FlowReading) {
	old, dt := f.last, now.Sub(f.at)
	first := f.at.IsZero()
	if !first && dt < shortest {
		return
	}
	f.at, f.last = now, *r
	f.rebase(r)
	f.up.queued, f.down.queued = f.up.queue, f.down.queue
	f.up.queue, f.down.queue = f.stands(r.RTT, r.RTTVar), f.stands(r.ReceiveRTT, mihf.Opt[time.Duration]{})
	if first || dt > longest || wentBack(&old, r) {
		f.up, f.down, f.sent, f.again = direction{}, direction{}, 0, 0
		return
	}
	s := dt.Seconds()
	f.sent, f.again = grew(old.SentSegments, r.SentSegments), grew(old.RetransSegments, r.RetransSegments)
	f.up.carry(f.sentBits(&old, r) / s)
	f.down.carry(withHeaders(grew(old.ReceivedBytes, r.ReceivedBytes), r) / s)
	share := func(a, b mihf.Opt[time.Duration]) float64 { return (b.Or(0) - a.Or(0)).Seconds() / s }
	f.up.full = !r.AppLimited && r.Busy.Known() && share(old.Busy, r.Busy) >= fullShare &&
		share(old.WindowLimited, r.WindowLimited) <= heldShare && share(old.BufferLimited, r.BufferLimited) <= heldShare
	f.down.full = f.down.queue // nothing else is known of a far sender
	if rate, ok := r.DeliveryRateBPS.Get(); ok && f.up.full && f.up.queue && !f.up.queued {
		// The flow has just reached what the way carries: the last round trip counts, not the whole interval.
		f.up.bps, f.up.queued = max(f.up.bps, rate*withHeaders(1, r)/8), true
	}
	f.up.settle(now, dt, f.again == 0)
}

// carry takes the rate of the interval. One that has just grown much is on its way up, whatever the RTT says.
func (d *direction) carry(bps float64) {
	d.queued = d.queued && bps <= ramp*d.bps
	d.bps = bps
}

// settle watches whether the rate stays the same.
func (d *direction) settle(now mihf.Time, dt time.Duration, lossless bool) {
	if lossless && !d.steady.IsZero() && d.bps >= (1-steady)*d.about && d.bps <= (1+steady)*d.about {
		return
	}
	d.steady, d.about = 0, d.bps
	if lossless && d.bps > 0 {
		d.steady = now.Add(-dt / 2)
	}
}

// sentBits is what arrived at the peer, with headers: by segments where they are counted, since octets are
// acknowledged in jumps when a loss is repaired.
func (f *flow) sentBits(old, r *mihf.FlowReading) float64 {
	if old.DeliveredSegments.Known() && r.DeliveredSegments.Known() && f.fullSegments(old, r) {
		return 8 * float64(grew(old.DeliveredSegments, r.DeliveredSegments)) * float64(r.PathMTUBytes.Or(1500))
	}
	return withHeaders(grew(old.AckedBytes, r.AckedBytes), r)
}

// fullSegments reports whether segments were about as large as they may be.
func (f *flow) fullSegments(old, r *mihf.FlowReading) bool {
	n := grew(old.DeliveredSegments, r.DeliveredSegments)
	return n >= 20 && float64(grew(old.AckedBytes, r.AckedBytes)) > 0.5*float64(n)*float64(r.PathMTUBytes.Or(1500)-headers)
}

// withHeaders is the size of so many octets on the way, in bits.
func withHeaders(bytes uint64, r *mihf.FlowReading) float64 {
	mtu := max(float64(r.PathMTUBytes.Or(1500)), 2*headers)
	return 8 * float64(bytes) * mtu / (mtu - headers)
}

// rebase keeps the RTT without a queue.
func (f *flow) rebase(r *mihf.FlowReading) {
	if least, ok := r.MinRTT.Get(); ok && !f.own {
		f.base = least
	}
	for _, o := range [...]mihf.Opt[time.Duration]{r.RTT, r.ReceiveRTT} {
		if rtt, ok := o.Get(); ok && (f.base == 0 || rtt < f.base) {
			f.base = rtt
		}
	}
}

// moved forgets what is of the path before.
func (f *flow) moved() {
	f.own, f.base = true, 0
	f.up, f.down = direction{}, direction{}
}

// stands reports whether an RTT has a queue in it.
func (f *flow) stands(rtt, deviation mihf.Opt[time.Duration]) bool {
	d, ok := rtt.Get()
	if !ok || f.base == 0 {
		return false
	}
	queue := d - f.base
	return queue >= max(2*time.Millisecond, f.base*15/100) && queue >= deviation.Or(0)
}

func grew(old, is mihf.Opt[uint64]) uint64 {
	a, known := old.Get()
	b, also := is.Get()
	if !known || !also || b < a {
		return 0
	}
	return b - a
}

// wentBack reports whether a count is lower than before: another connection, or nonsense.
func wentBack(old, is *mihf.FlowReading) bool {
	less := func(a, b mihf.Opt[uint64]) bool { return a.Known() && b.Known() && b.Or(0) < a.Or(0) }
	return less(old.AckedBytes, is.AckedBytes) || less(old.ReceivedBytes, is.ReceivedBytes) || less(old.SentSegments, is.SentSegments) ||
		less(old.RetransSegments, is.RetransSegments) || less(old.DeliveredSegments, is.DeliveredSegments)
}
