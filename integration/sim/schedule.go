package sim

import "time"

// A Change is what becomes of a link at a moment; what is zero stays as it is.
type Change struct {
	At           time.Duration // since the beginning of the run
	Down, Up     bool          // Up is done last
	RateBPS      int64
	Delay        time.Duration
	QueuePackets int
}

// Schedule makes changes when their moment comes.
func (l *Link) Schedule(changes ...Change) {
	for _, c := range changes {
		l.sim.At(c.At, func() { l.change(c) })
	}
}

func (l *Link) change(c Change) {
	if c.Down {
		l.SetDown()
	}
	if c.RateBPS > 0 {
		l.SetRate(c.RateBPS)
	}
	if c.Delay > 0 {
		l.SetDelay(c.Delay)
	}
	if c.QueuePackets > 0 {
		l.SetQueue(c.QueuePackets)
	}
	if c.Up {
		l.SetUp()
	}
}

// Outage returns the changes of a link that is down from a moment on for a while.
func Outage(at, length time.Duration) []Change {
	return []Change{{At: at, Down: true}, {At: at + length, Up: true}}
}
