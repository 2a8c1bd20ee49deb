package radio

import (
	"math/rand/v2"
	"time"

	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
)

// Stats counts what a station did.
type Stats struct {
	Sent       uint64 // frames with a packet, retries included
	Delivered  uint64 // packets that were acknowledged
	Overflow   uint64 // packets that found the queue full
	GivenUp    uint64 // packets dropped after the last retry
	Duplicates uint64 // packets that came again
}

// A Station has a place on a channel.
type Station struct {
	channel *Channel
	number  int
	place   Place
	rand    *rand.Rand
	sensed  []*Station // who senses this station, and is sensed

	own, queue []*job // waiting; own packets of a gate go first
	current    *job   // contends for the channel, or waits for its acknowledgement
	sequence   uint64
	last       map[*Station]uint64 // number of the last packet read from each

	signals  []signal
	sending  *frame
	nav      mihf.Time
	idleFrom mihf.Time     // since when nothing is sensed; zero: something is
	ifs      time.Duration // how long it has to be idle
	cw       int
	slots    int // of backoff that are left
	retries  int
	countEnd mihf.Time  // when the backoff ends, while it counts; else zero
	waiting  bool       // for an acknowledgement
	count    *sim.Timer // the end of the backoff
	wait     *sim.Timer // for an acknowledgement
	reply    *sim.Timer // an acknowledgement is due
	over     *sim.Timer // the end of the own frame
	answer   *frame     // the acknowledgement that is due
	stats    Stats
}

type job struct {
	packet *sim.Packet // nil: it has come
	octets int
	way    *Way
	number uint64
}

// Number returns which station of the channel it is, from 0.
func (s *Station) Number() int { return s.number }

// Stats returns what it has counted.
func (s *Station) Stats() Stats { return s.stats }

// Move puts the station to another place. Frames on the air now are heard, or not, as if it
// had been there only for those that begin later.
func (s *Station) Move(to Place) {
	s.place = to
	s.channel.near()
	s.idle(s.channel.sim.Now())
}

// A Way is a hop from a station to another.
type Way struct {
	from, to *Station
	bps      int64
	own      bool
}

// Way returns the hop to another station. A rate of 0 is the fastest of the distance at the
// time of sending, or the slowest that the channel has.
func (s *Station) Way(to *Station, bps int64) *Way { return &Way{from: s, to: to, bps: bps} }

// First returns the same way for packets that go before all others of the station.
func (w *Way) First() *Way { return &Way{from: w.from, to: w.to, bps: w.bps, own: true} }

// Send queues the packet.
func (w *Way) Send(p *sim.Packet) {
	s := w.from
	q := &s.queue
	if w.own {
		q = &s.own
	}
	if len(*q) >= s.channel.config.QueuePackets {
		s.stats.Overflow++
		p.Free()
		return
	}
	s.sequence++
	*q = append(*q, &job{p, p.SizeBytes, w, s.sequence})
	now := s.channel.sim.Now()
	if s.current == nil && s.slots == 0 && (s.idleFrom.IsZero() || now < s.countFrom()) {
		s.draw() // the channel is not known to be idle
	}
	s.contend(now)
}

func (w *Way) rate() int64 {
	if w.bps > 0 {
		return w.bps
	}
	if r := w.from.channel.Fastest(w.from.place.distance(w.to.place)); r > 0 {
		return r
	}
	ranges := w.from.channel.config.Ranges
	return ranges[len(ranges)-1].BPS
}

// contend takes the next packet, where none is under way, and counts the backoff down while
// the channel allows it.
func (s *Station) contend(now mihf.Time) {
	if s.current == nil {
		s.current = s.next()
	}
	if s.current == nil && s.slots == 0 || s.idleFrom.IsZero() || s.sending != nil || s.answer != nil || s.waiting {
		return
	}
	s.countEnd = max(now, s.countFrom().Add(time.Duration(s.slots)*s.channel.config.PHY.Slot))
	s.count.Set(s.countEnd)
}

func (s *Station) next() *job {
	for _, q := range []*[]*job{&s.own, &s.queue} {
		if len(*q) > 0 {
			j := (*q)[0]
			*q = (*q)[1:]
			return j
		}
	}
	return nil
}

// countFrom is when slots begin to count.
func (s *Station) countFrom() mihf.Time { return max(s.idleFrom, s.nav).Add(s.ifs) }

// busy is the moment at which the station senses, or sends, a frame. A counter that ends at
// just this moment has ended: the frame of another can't be sensed in the slot that it begins.
func (s *Station) busy(now mihf.Time) {
	if s.idleFrom.IsZero() {
		return
	}
	if s.countEnd != now {
		if from := s.countFrom(); now > from && !s.countEnd.IsZero() {
			s.slots = max(0, s.slots-int(now.Sub(from)/s.channel.config.PHY.Slot))
		}
		s.stopCounting()
	}
	s.idleFrom = 0
}

func (s *Station) stopCounting() {
	s.countEnd = 0
	s.count.Set(0)
}

// idle is a moment at which the station may sense nothing any more.
func (s *Station) idle(now mihf.Time) {
	if len(s.signals) > 0 || s.sending != nil {
		return
	}
	if s.idleFrom.IsZero() {
		s.idleFrom = now
	}
	s.contend(now)
}

// counted is the end of the backoff.
func (s *Station) counted(mihf.Time) {
	s.slots, s.countEnd = 0, 0
	if s.current == nil || s.sending != nil || s.answer != nil {
		return
	}
	phy := &s.channel.config.PHY
	bps := s.current.way.rate()
	s.stats.Sent++
	s.send(&frame{
		from: s, to: s.current.way.to, data: s.current, number: s.current.number, bps: bps,
		nav: phy.SIFS + phy.Air(ackFrame, phy.BasicBPS),
	}, phy.Air(s.current.octets+dataHeader, bps))
}

// read takes a frame that came whole.
func (s *Station) read(now mihf.Time, f *frame) {
	if f.data == nil {
		if s.waiting && s.current.number == f.number {
			s.stats.Delivered++
			s.done(now)
		}
		return
	}
	if s.answer == nil {
		s.answer = &frame{from: s, to: f.from, number: f.number, bps: s.channel.config.PHY.BasicBPS}
		s.stopCounting()
		s.reply.Set(now.Add(s.channel.config.PHY.SIFS))
	}
	if s.last[f.from] == f.number {
		s.stats.Duplicates++
		return
	}
	s.last[f.from] = f.number
	p := f.data.packet
	f.data.packet = nil // it is the next hop's now, whatever becomes of the acknowledgement
	p.Forward()
}

// acknowledge sends the acknowledgement, whatever the channel is like.
func (s *Station) acknowledge(mihf.Time) {
	f := s.answer
	s.answer = nil
	if s.sending != nil {
		return
	}
	phy := &s.channel.config.PHY
	s.send(f, phy.Air(ackFrame, phy.BasicBPS))
}

// unanswered is the time at which an acknowledgement should have come.
func (s *Station) unanswered(now mihf.Time) {
	s.waiting = false
	phy := &s.channel.config.PHY
	if s.retries++; s.retries > phy.Retries {
		s.stats.GivenUp++
		if p := s.current.packet; p != nil {
			p.Free()
		}
		s.done(now)
		return
	}
	s.cw = min(2*s.cw+1, phy.CWMax)
	s.ifs = phy.EIFS() // as for all others that could not read the frame
	s.draw()
	s.contend(now)
}

// done ends the work on a packet; a backoff follows even if nothing waits.
func (s *Station) done(now mihf.Time) {
	s.waiting = false
	s.wait.Set(0)
	s.current, s.retries, s.cw = nil, 0, s.channel.config.PHY.CWMin
	s.draw()
	s.contend(now)
}

func (s *Station) draw() { s.slots = s.rand.IntN(s.cw + 1) }
