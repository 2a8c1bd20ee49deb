package radio

import (
	"fmt"
	"math"
	"slices"
	"time"

	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
)

// Range is how far frames of a rate can be read.
type Range struct {
	BPS    int64
	Meters float64
}

// Config describes a channel.
type Config struct {
	PHY          PHY
	Ranges       []Range // the rates that there are; the basic rate's range is an L-region
	SenseMeters  float64 // how far a frame is sensed, and spoils others
	QueuePackets int     // of each station, and of each gate
}

// A Channel is shared by its stations.
type Channel struct {
	sim      *sim.Sim
	config   Config
	stations []*Station
}

// NewChannel adds a channel to a run. It panics if it has no range.
func NewChannel(s *sim.Sim, c Config) *Channel {
	if len(c.Ranges) == 0 {
		panic("radio: a channel without a rate")
	}
	c.Ranges = slices.Clone(c.Ranges)
	slices.SortFunc(c.Ranges, func(a, b Range) int { return int(b.BPS - a.BPS) })
	return &Channel{sim: s, config: c}
}

// Place is where a station is, in metres.
type Place struct{ X, Y float64 }

func (a Place) distance(b Place) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }

// Add puts a station at a place.
func (c *Channel) Add(at Place) *Station {
	s := &Station{channel: c, number: len(c.stations), place: at, last: map[*Station]uint64{}}
	s.rand = c.sim.Rand(fmt.Sprintf("station %d", s.number))
	s.cw = c.config.PHY.CWMin
	s.count = c.sim.Timer(s.counted)
	s.wait = c.sim.Timer(s.unanswered)
	s.reply = c.sim.Timer(s.acknowledge)
	s.over = c.sim.Timer(s.finished)
	s.idleFrom = c.sim.Now()
	s.ifs = c.config.PHY.DIFS()
	c.stations = append(c.stations, s)
	c.near()
	return s
}

// near finds anew who senses whom.
func (c *Channel) near() {
	for _, a := range c.stations {
		a.sensed = nil // frames on the air keep the list that they began with
		for _, b := range c.stations {
			if a != b && a.place.distance(b.place) <= c.config.SenseMeters {
				a.sensed = append(a.sensed, b)
			}
		}
	}
}

// Fastest returns the highest rate that can be read over a distance, and 0 where none can.
func (c *Channel) Fastest(meters float64) int64 {
	for _, r := range c.config.Ranges {
		if meters <= r.Meters {
			return r.BPS
		}
	}
	return 0
}

// Reads returns, for each station, the numbers of the others that read its frames at the
// rate.
func (c *Channel) Reads(bps int64) [][]int {
	out := make([][]int, len(c.stations))
	for i, a := range c.stations {
		for j, b := range c.stations {
			if i != j && a.reach(bps) >= a.place.distance(b.place) {
				out[i] = append(out[i], j)
			}
		}
	}
	return out
}

// reach is how far frames at a rate are read: as far as those of the next faster rate that
// the channel has.
func (s *Station) reach(bps int64) float64 {
	best := 0.0
	for _, r := range s.channel.config.Ranges {
		if r.BPS >= bps {
			best = max(best, r.Meters)
		}
	}
	return best
}

// frame is on the air.
type frame struct {
	from, to *Station
	data     *job   // nil: an acknowledgement
	number   uint64 // of the packet, at its sender
	bps      int64
	nav      time.Duration // how long the channel is needed after it
	hearers  []*Station    // who sensed its begin
}

// signal is a frame as one station senses it.
type signal struct {
	frame   *frame
	damaged bool
}

// send puts a frame on the air.
func (s *Station) send(f *frame, air time.Duration) {
	now := s.channel.sim.Now()
	s.sending = f
	for i := range s.signals { // what comes meanwhile is not heard
		s.signals[i].damaged = true
	}
	s.busy(now)
	f.hearers = s.sensed
	for _, other := range f.hearers {
		other.hear(now, f)
	}
	s.over.Set(now.Add(air))
}

// finished ends the frame that this station has on the air.
func (s *Station) finished(now mihf.Time) {
	f := s.sending
	s.sending = nil
	s.ifs = s.channel.config.PHY.DIFS()
	for _, other := range f.hearers {
		other.heard(now, f)
	}
	if f.data != nil {
		s.waiting = true
		s.wait.Set(now.Add(s.channel.config.PHY.ackTimeout()))
	}
	s.idle(now)
}

// hear is the begin of a frame that this station senses.
func (s *Station) hear(now mihf.Time, f *frame) {
	damaged := s.sending != nil || len(s.signals) > 0
	for i := range s.signals {
		s.signals[i].damaged = true
	}
	s.signals = append(s.signals, signal{f, damaged})
	s.busy(now)
}

// heard is its end.
func (s *Station) heard(now mihf.Time, f *frame) {
	i := slices.IndexFunc(s.signals, func(g signal) bool { return g.frame == f })
	damaged := s.signals[i].damaged
	s.signals = slices.Delete(s.signals, i, i+1)
	if damaged || s.sending != nil || f.from.place.distance(s.place) > s.reach(f.bps) {
		s.ifs = s.channel.config.PHY.EIFS()
		s.idle(now)
		return
	}
	s.ifs = s.channel.config.PHY.DIFS()
	if f.to == s {
		s.read(now, f)
	} else if until := now.Add(f.nav); f.nav > 0 && s.nav.Before(until) {
		s.nav = until
	}
	s.idle(now)
}
