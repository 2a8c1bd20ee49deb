package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"mihf.dev/mihf"
)

// A Reason says why a packet was dropped.
type Reason uint8

// Reasons.
const (
	Overflow Reason = iota // the queue was full
	Down                   // it came while the link was down
	Flushed                // it waited in the queue when the link went down
	Cut                    // it was in transmission or in flight when the link went down
	Random                 // by the loss ratio of the link
	reasons
)

var reasonNames = [reasons]string{"overflow", "down", "flushed", "cut", "random"}

func (r Reason) String() string { return reasonNames[r] }

// LinkConfig describes a link in one direction.
type LinkConfig struct {
	Name         string        // in the trace, and of the link's random stream
	RateBPS      int64         // bit/s, above 0
	Delay        time.Duration // from the end of the transmission to the arrival
	QueuePackets int           // that wait, besides the one in transmission

	LossRatio    float64       // of the packets are lost on the way, each by itself
	ReorderRatio float64       // of the packets take ReorderDelay longer, and are overtaken
	ReorderDelay time.Duration //
}

// LinkStats counts what a link did with packets.
type LinkStats struct {
	Delivered    uint64
	Dropped      [reasons]uint64
	Reordered    uint64 // that were held back
	LongestQueue int    // packets that waited at once
}

// A Link sends packets one after another at its rate; each arrives after the delay.
type Link struct {
	sim     *Sim
	config  LinkConfig
	rand    *rand.Rand
	queue   ring
	sending *Packet
	sent    *Timer // the end of the transmission
	down    bool
	outages uint64
	stats   LinkStats

	// OnDrop, if set, sees each packet that is dropped, before it is freed.
	OnDrop func(p *Packet, why Reason)
	// OnArrive, if set, sees each packet that is delivered.
	OnArrive func(p *Packet)
}

// NewLink adds a link to a run. It panics if the rate is not above 0 or a value is negative.
func NewLink(s *Sim, c LinkConfig) *Link {
	if c.RateBPS <= 0 || c.Delay < 0 || c.QueuePackets < 0 || c.ReorderDelay < 0 {
		panic(fmt.Sprintf("sim: link %q: impossible %+v", c.Name, c))
	}
	l := &Link{sim: s, config: c, rand: s.Rand("link " + c.Name)}
	l.sent = s.Timer(l.transmitted)
	return l
}

// Config returns the link as it is now.
func (l *Link) Config() LinkConfig { return l.config }

// Stats returns what it has counted.
func (l *Link) Stats() LinkStats { return l.stats }

// QueuedPackets returns how many packets wait.
func (l *Link) QueuedPackets() int { return l.queue.len() }

// IsDown reports whether the link is down.
func (l *Link) IsDown() bool { return l.down }

// Send takes a packet.
func (l *Link) Send(p *Packet) {
	switch {
	case l.down:
		l.drop(p, Down)
		return
	case l.sending != nil && l.queue.len() >= l.config.QueuePackets:
		l.drop(p, Overflow)
		return
	}
	l.sim.record(opQueued, l, p)
	if l.sending != nil {
		l.queue.push(p)
		l.stats.LongestQueue = max(l.stats.LongestQueue, l.queue.len())
		return
	}
	l.transmit(p)
}

func (l *Link) transmit(p *Packet) {
	l.sending = p
	l.sim.record(opTransmit, l, p)
	l.sent.Set(l.sim.now.Add(TransmissionTime(p.SizeBytes, l.config.RateBPS)))
}

// TransmissionTime returns how long sizeBytes take at a rate in bit/s, rounded down to the
// nanosecond.
func TransmissionTime(sizeBytes int, rateBPS int64) time.Duration {
	return time.Duration(int64(sizeBytes) * 8 * int64(time.Second) / rateBPS)
}

// transmitted is the end of a transmission: the packet flies, the next one is sent.
func (l *Link) transmitted(now mihf.Time) {
	p := l.sending
	l.sending = nil
	delay := l.config.Delay
	lost := l.happens(l.config.LossRatio)
	if l.happens(l.config.ReorderRatio) {
		delay += l.config.ReorderDelay
		l.stats.Reordered++
	}
	if lost {
		l.drop(p, Random)
	} else {
		p.link, p.cut = l, l.outages
		p.flight.Set(now.Add(delay))
	}
	if next := l.queue.pop(); next != nil {
		l.transmit(next)
	}
}

// happens draws; a ratio of 0 draws nothing.
func (l *Link) happens(ratio float64) bool { return ratio > 0 && l.rand.Float64() < ratio }

// arrive is the end of a flight.
func (l *Link) arrive(p *Packet) {
	if p.cut != l.outages {
		l.drop(p, Cut)
		return
	}
	l.stats.Delivered++
	l.sim.record(opArrive, l, p)
	if l.OnArrive != nil {
		l.OnArrive(p)
	}
	p.Forward()
}

func (l *Link) drop(p *Packet, why Reason) {
	l.stats.Dropped[why]++
	l.sim.recordDrop(l, p, why)
	if l.OnDrop != nil {
		l.OnDrop(p, why)
	}
	p.Free()
}

// SetDown takes the link down: what is in it is lost, what comes is dropped. What was in flight
// counts when it would have arrived.
func (l *Link) SetDown() {
	if l.down {
		return
	}
	l.down = true
	l.outages++
	l.sim.recordLink(opDown, l)
	if p := l.sending; p != nil {
		l.sending = nil
		l.sent.Set(0)
		l.drop(p, Cut)
	}
	for p := l.queue.pop(); p != nil; p = l.queue.pop() {
		l.drop(p, Flushed)
	}
}

// SetUp brings the link back.
func (l *Link) SetUp() {
	if l.down {
		l.down = false
		l.sim.recordLink(opUp, l)
	}
}

// SetRate changes the rate, in bit/s above 0, from the next transmission on.
func (l *Link) SetRate(bps int64) {
	if bps <= 0 {
		panic(fmt.Sprintf("sim: link %q: rate %d bit/s", l.config.Name, bps))
	}
	l.config.RateBPS = bps
}

// SetDelay changes the delay of what is transmitted from now on; it may overtake what is in
// flight.
func (l *Link) SetDelay(d time.Duration) { l.config.Delay = max(d, 0) }

// SetQueue changes the room for packets that wait; those that wait already stay.
func (l *Link) SetQueue(packets int) { l.config.QueuePackets = max(packets, 0) }
