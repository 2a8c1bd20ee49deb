package link

import (
	"math/rand/v2"

	"mihf.dev/mihf"
)

// Packet is what passes a line.
type Packet struct {
	Data []byte
	Size int // octets on the line, headers that are not in Data included
	Via  any // carried along for the caller
}

// Fate is what became of a packet.
type Fate uint8

// Fates.
const (
	Delivered  Fate = iota
	QueueFull       // it came when the queue had no room
	Lost            // by the share of losses
	LostOutage      // transmitted in a blackout
	Overflow        // more than [MaxPackets] flew
	numFates
)

var fateNames = [numFates]string{"delivered", "queue full", "lost", "lost in an outage", "overflow"}

func (f Fate) String() string { return fateNames[f] }

// Stats are the counts of one direction.
type Stats struct {
	Packets [numFates]uint64 // by fate
	Bytes   [numFates]uint64
	// What is on the line now.
	WaitingPackets, WaitingBytes int
	FlyingPackets                int
	// The most that waited since the line began.
	MostWaitingBytes int
}

// Line is one direction of a link. It is pure: inputs take the moment, which never goes back,
// and [Line.Next] says when something comes out. Its caller serialises.
type Line struct {
	// Watch, where set, is told the fate of each packet when it is decided: for what is
	// delivered that is when it leaves the line.
	Watch func(now mihf.Time, p *Packet, fate Fate)

	c   Conditions
	rng *rand.Rand

	waiting      fifo[Packet]
	waitingBytes int

	sending  *Packet   // in transmission; nil: the transmitter is idle
	sent     Packet    // what sending points to
	end      mihf.Time // of its transmission, while the line does not stall
	leftBits float64   // of it, while the line stalls

	flying  fifo[flight]
	lastOut mihf.Time // when the newest that flies comes out
	stats   Stats
}

type flight struct {
	Packet
	out mihf.Time
}

// NewLine returns an idle line. The seed decides its losses. It panics unless the conditions pass their Check.
func NewLine(c Conditions, seed uint64) *Line {
	mustCheck(c)
	return &Line{c: c, rng: rand.New(rand.NewPCG(seed, 0x6c696e6b))}
}

func mustCheck(c Conditions) {
	if err := c.Check(); err != nil {
		panic(err)
	}
}

// Conditions returns what the line is like now.
func (l *Line) Conditions() Conditions { return l.c }

// Set changes the conditions. Packets that wait stay, also where the new queue would not have taken
// them. It panics unless the conditions pass their Check.
func (l *Line) Set(now mihf.Time, c Conditions) {
	mustCheck(c)
	l.run(now)
	if l.sending != nil {
		left := l.leftBits
		if l.c.Outage != Stall {
			left = min(l.end.Sub(now).Seconds()*l.c.RateBPS, bits(l.sending))
		}
		l.leftBits, l.end = left, now.Add(c.airtime(left))
	}
	l.c = c
	l.run(now)
}

func bits(p *Packet) float64 { return 8 * float64(p.Size) }

// Push puts a packet on the line and reports whether the queue took it. The line keeps p.Data.
func (l *Line) Push(now mihf.Time, p Packet) bool {
	l.run(now)
	if l.sending == nil {
		l.transmit(now, p)
		l.run(now)
		return true
	}
	if !l.c.takes(l.waiting.len(), l.waitingBytes, p.Size) {
		l.finish(now, &p, QueueFull)
		return false
	}
	l.waiting.push(p)
	l.waitingBytes += p.Size
	l.stats.MostWaitingBytes = max(l.stats.MostWaitingBytes, l.waitingBytes)
	return true
}

// transmit begins with a packet.
func (l *Line) transmit(now mihf.Time, p Packet) {
	l.sent = p
	l.sending = &l.sent
	l.leftBits = bits(&p)
	l.end = now.Add(l.c.airtime(l.leftBits))
}

// run does what the transmitter has done by now.
func (l *Line) run(now mihf.Time) {
	for l.sending != nil && l.c.Outage != Stall && !now.Before(l.end) {
		at := l.end
		l.launch(at)
		l.sending, l.sent = nil, Packet{}
		if l.waiting.len() > 0 {
			p := l.waiting.pop()
			l.waitingBytes -= p.Size
			l.transmit(at, p)
		}
	}
}

// launch decides about the packet whose transmission ended.
func (l *Line) launch(at mihf.Time) {
	// The number is drawn for every packet, so that an outage changes no later loss.
	lost := l.rng.Float64() < l.c.Loss
	switch {
	case l.c.Outage == Blackout:
		l.finish(at, l.sending, LostOutage)
	case lost:
		l.finish(at, l.sending, Lost)
	case l.flying.len() == MaxPackets:
		l.finish(at, l.sending, Overflow)
	default:
		l.lastOut = max(l.lastOut, at.Add(l.c.Delay))
		l.flying.push(flight{*l.sending, l.lastOut})
	}
}

func (l *Line) finish(now mihf.Time, p *Packet, fate Fate) {
	l.stats.Packets[fate]++
	l.stats.Bytes[fate] += uint64(p.Size)
	if l.Watch != nil {
		l.Watch(now, p, fate)
	}
}

// Next returns when something comes out if nothing changes; zero: never.
func (l *Line) Next() mihf.Time {
	switch {
	case l.flying.len() > 0:
		return l.flying.front().out
	case l.sending != nil && l.c.Outage != Stall:
		return max(l.lastOut, l.end.Add(l.c.Delay))
	default:
		return 0
	}
}

// Advance appends to out what has come out by now, in order.
func (l *Line) Advance(now mihf.Time, out []Packet) []Packet {
	l.run(now)
	for l.flying.len() > 0 && l.flying.front().out.Due(now) {
		f := l.flying.pop()
		l.finish(f.out, &f.Packet, Delivered)
		out = append(out, f.Packet)
	}
	return out
}

// Stats returns the counts at a moment.
func (l *Line) Stats(now mihf.Time) Stats {
	l.run(now)
	s := l.stats
	s.WaitingPackets, s.WaitingBytes, s.FlyingPackets = l.waiting.len(), l.waitingBytes, l.flying.len()
	return s
}
