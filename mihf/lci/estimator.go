package lci

import (
	"slices"
	"time"

	"mihf.dev/mihf"
)

// Estimator estimates one link.
type Estimator struct {
	link mihf.LinkID
	poa  mihf.PoA

	known   map[mihf.Endpoints]*flow
	flows   []*flow   // the same, in the order of appearance: sums do not depend on a map's
	round   mihf.Time // of the readings that are coming in; zero: none
	closeAt mihf.Time // when they are taken to be complete

	rates   [2]series // up, down
	busy    float64   // share of the channel; below 0: not known
	peak    queue
	lost    losses
	quantum [numQuantities]value
}

// Quantities.
const (
	up = iota
	down
	rtt
	jitter
	loss
	buffer
	numQuantities
)

// queue is the longest that stood lately, and whether a loss ended it.
type queue struct {
	long time.Duration
	at   mihf.Time
	full bool
}

// losses counts segments while no queue stood.
type losses struct {
	since       mihf.Time
	sent, again uint64
}

const (
	roundFor      = 20 * time.Millisecond // from the first of one moment's readings to the last
	peakFor       = 10 * time.Second
	lossFor       = 20 * time.Second
	firstSegments = 20  // whose RTT deviates as it began
	fewest        = 300 // segments that say something of losses
	phyShare      = 0.6 // of a PHY rate is left behind its headers, gaps and acknowledgements
)

// Confidences of what was measured, and of what a radio says.
const (
	sureQueue  = 0.9
	sureSteady = 0.7
	sureBuffer = 0.6
	surePHY    = 0.3
	sureRadio  = 0.4 // what the rate control expects
)

// New returns an estimator that knows nothing.
func New(link mihf.LinkID) *Estimator {
	return &Estimator{link: link, known: map[mihf.Endpoints]*flow{}, busy: -1}
}

// PoA returns the point of attachment that the values are of.
func (e *Estimator) PoA() mihf.PoA { return e.poa }

// Attach says that the link is attached to a point of attachment, of which history (nil: none) is known. At
// the same one again, what was measured goes on.
func (e *Estimator) Attach(poa mihf.PoA, history *mihf.LCI) {
	if poa != e.poa {
		e.poa = poa
		e.quantum, e.rates, e.peak, e.lost, e.busy = [numQuantities]value{}, [2]series{}, queue{}, losses{}, -1
		for _, f := range e.flows {
			f.moved()
		}
	}
	if history == nil {
		return
	}
	for i, c := range [numQuantities]mihf.Characteristic{
		history.CapacityUpBPS, history.CapacityDownBPS, history.RTTSeconds, history.JitterSeconds, history.LossRatio, history.BufferBytes,
	} {
		if c.Source == mihf.SourceMeasured || c.Source == mihf.SourceHistory {
			e.quantum[i].set(asHistory(c))
		}
	}
}

// Flow takes a reading that was made at a moment, of a flow that is on the link. Those of one moment
// are one picture of the link: what they say together is known [Estimator.Advance] later.
func (e *Estimator) Flow(now, at mihf.Time, r *mihf.FlowReading) {
	if at != e.round {
		e.close()
		e.sweep(at)
		e.round, e.closeAt = at, now.Add(roundFor)
	}
	f := e.known[r.Endpoints]
	if f == nil {
		if len(e.flows) >= MaxFlows {
			return
		}
		f = &flow{ends: r.Endpoints}
		e.known[r.Endpoints] = f
		e.flows = append(e.flows, f)
	}
	f.take(at, r)
}

// Advance does what is due.
func (e *Estimator) Advance(now mihf.Time) {
	if e.closeAt.Due(now) {
		e.close()
	}
}

// close takes what the readings of a round say together.
func (e *Estimator) close() {
	at := e.round
	e.round, e.closeAt = 0, 0
	if at.IsZero() {
		return
	}
	e.rate(at, up, func(f *flow) *direction { return &f.up })
	e.rate(at, down, func(f *flow) *direction { return &f.down })
	if at.Sub(e.peak.at) >= peakFor {
		e.peak = queue{at: at}
	}
	for _, f := range e.flows {
		if f.at == at {
			e.delay(at, f)
			e.overflow(at, f)
			e.losses(at, f)
		}
	}
}

// sweep forgets flows that are not read any more.
func (e *Estimator) sweep(at mihf.Time) {
	e.flows = slices.DeleteFunc(e.flows, func(f *flow) bool {
		gone := at.Sub(f.at) >= FlowGone
		if gone {
			delete(e.known, f.ends)
		}
		return gone
	})
}

// delay takes the RTT of the nearest peer, and the jitter of a flow.
func (e *Estimator) delay(at mihf.Time, f *flow) {
	q := &e.quantum[rtt]
	is := q.by[mihf.SourceMeasured]
	if f.base > 0 && (!is.Known() || is.At != at || f.base.Seconds() < is.Value) {
		q.set(mihf.Characteristic{Value: f.base.Seconds(), Source: mihf.SourceMeasured, At: at, Confidence: sureQueue})
	}
	if v, ok := f.last.RTTVar.Get(); ok && !f.up.queue && f.last.SentSegments.Or(0) >= firstSegments {
		e.quantum[jitter].set(mihf.Characteristic{Value: v.Seconds(), Source: mihf.SourceMeasured, At: at, Confidence: sureSteady})
	}
}

// rate takes what the flows of a round got together in one direction.
func (e *Estimator) rate(at mihf.Time, q int, of func(*flow) *direction) {
	total, sure := 0.0, 0.0
	for _, f := range e.flows {
		if f.at != at {
			continue
		}
		d := of(f)
		total += d.bps
		switch {
		case !d.saturates(at):
		case d.queue:
			sure = sureQueue
		default:
			sure = max(sure, sureSteady)
		}
	}
	is := e.quantum[q].by[mihf.SourceMeasured]
	more := is.Known() && total > (1+significant/4)*is.Value // it was carried, so the link can
	if total == 0 || (sure == 0 && !more) {
		return
	}
	e.rates[q].add(at, total)
	e.quantum[q].set(mihf.Characteristic{
		Value: e.rates[q].median(at), Source: mihf.SourceMeasured, At: at, Confidence: max(sure, sureSteady),
	})
}

// overflow takes the length of the queue; where it loses something it was full.
func (e *Estimator) overflow(at mihf.Time, f *flow) {
	is, ok := f.last.RTT.Get()
	if !ok || !f.up.queue || !f.up.full {
		return
	}
	e.peak.long = max(e.peak.long, is-f.base)
	e.peak.full = e.peak.full || f.again > 0
	capacity := e.quantum[up].by[mihf.SourceMeasured]
	if e.peak.full && capacity.Known() {
		e.quantum[buffer].set(mihf.Characteristic{
			Value: e.peak.long.Seconds() * capacity.Value / 8, Source: mihf.SourceMeasured, At: at, Confidence: sureBuffer,
		})
	}
}

// losses takes the segments that were sent again without a queue.
func (e *Estimator) losses(at mihf.Time, f *flow) {
	if f.up.queue || f.sent == 0 {
		return
	}
	l := &e.lost
	if l.since.IsZero() {
		l.since = at
	}
	l.sent, l.again = l.sent+f.sent, l.again+f.again
	if l.sent < fewest {
		return
	}
	e.quantum[loss].set(mihf.Characteristic{
		Value: min(float64(l.again)/float64(l.sent), 1), Source: mihf.SourceMeasured, At: at, Confidence: sureSteady,
	})
	if at.Sub(l.since) >= lossFor { // what is older counts half
		*l = losses{since: at, sent: l.sent / 2, again: l.again / 2}
	}
}

// Radio takes what a radio says at a moment, as far as it is about rates, and reports whether that is news.
func (e *Estimator) Radio(at mihf.Time, v *mihf.Values) (news bool) {
	if busy, ok := v.Get(mihf.ParamChannelBusy); ok {
		e.busy = busy
	}
	if x, ok := v.Get(mihf.ParamExpectedThroughput); ok {
		news = e.quantum[up].renew(mihf.Characteristic{Value: x, Source: mihf.SourcePHY, At: at, Confidence: sureRadio})
	} else if x, ok := v.Get(mihf.ParamTxPHYRate); ok && e.busy >= 0 {
		news = e.quantum[up].renew(e.class(at, x))
	}
	if x, ok := v.Get(mihf.ParamRxPHYRate); ok && e.busy >= 0 {
		news = e.quantum[down].renew(e.class(at, x)) || news
	}
	return news
}

// class is what a PHY rate leaves in the free share of the channel.
func (e *Estimator) class(at mihf.Time, bps float64) mihf.Characteristic {
	return mihf.Characteristic{Value: phyShare * (1 - e.busy) * bps, Source: mihf.SourcePHY, At: at, Confidence: surePHY}
}

// Now returns what is known; the MTU is not this package's.
func (e *Estimator) Now(now mihf.Time) *mihf.LCI {
	q := &e.quantum
	return &mihf.LCI{
		Link: e.link, PoA: e.poa,
		CapacityUpBPS: q[up].best(now), CapacityDownBPS: q[down].best(now), RTTSeconds: q[rtt].best(now),
		JitterSeconds: q[jitter].best(now), LossRatio: q[loss].best(now), BufferBytes: q[buffer].best(now),
	}
}

// Next returns when what is known changes by time alone; zero: never.
func (e *Estimator) Next(now mihf.Time) mihf.Time {
	t := e.closeAt
	for i := range e.quantum {
		t = mihf.Sooner(t, e.quantum[i].next(now))
	}
	return t
}
