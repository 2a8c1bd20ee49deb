package radio

import (
	"time"

	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
)

// A Gate throttles a flow at its source: it lets a packet through no earlier than a gap after
// the one before, whether others wait or not (the first stage of the paper's scheduler, its
// section 4.3). It has a drop-tail queue of its own.
type Gate struct {
	sim     *sim.Sim
	gap     time.Duration
	room    int
	queue   []*sim.Packet
	opens   mihf.Time
	open    *sim.Timer
	dropped uint64
}

// NewGate returns an open gate in front of stations of the channel.
func NewGate(c *Channel) *Gate {
	g := &Gate{sim: c.sim, room: c.config.QueuePackets}
	g.open = c.sim.Timer(g.pass)
	return g
}

// SetGap changes the time between two packets; 0 opens the gate. It counts from the last
// packet that passed.
func (g *Gate) SetGap(gap time.Duration) {
	g.opens = g.opens.Add(gap - g.gap)
	g.gap = gap
	g.pass(g.sim.Now())
}

// Dropped returns how many packets found the queue full.
func (g *Gate) Dropped() uint64 { return g.dropped }

// Send takes a packet of the flow.
func (g *Gate) Send(p *sim.Packet) {
	if len(g.queue) >= g.room {
		g.dropped++
		p.Free()
		return
	}
	g.queue = append(g.queue, p)
	g.pass(g.sim.Now())
}

func (g *Gate) pass(now mihf.Time) {
	for len(g.queue) > 0 {
		if now < g.opens {
			g.open.Set(g.opens)
			return
		}
		p := g.queue[0]
		g.queue = g.queue[1:]
		g.opens = now.Add(g.gap)
		p.Forward()
	}
}
