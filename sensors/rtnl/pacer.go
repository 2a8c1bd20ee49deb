package rtnl

import (
	"time"

	"mihf.dev/mihf"
)

// rest is how many times as long as a piece of work took it is not done again.
const rest = 4

// pacer says when a piece of work is to be done: soon after it is wanted, but not right
// after it was done, and the later the more it costs.
type pacer struct {
	gap  time.Duration // least time between the end of one and the beginning of the next
	most time.Duration // longest rest; zero: no bound
	due  mihf.Time     // zero: not wanted
	free mihf.Time     // not before
}

// want asks for the work to be done in delay. An earlier wish stands.
func (p *pacer) want(now mihf.Time, delay time.Duration) {
	if p.due.IsZero() {
		p.due = max(now.Add(delay), p.free)
	}
}

// begin says that the work is being done; what is wanted from now on is wanted again.
func (p *pacer) begin() { p.due = 0 }

// done says that the work was done from start to end.
func (p *pacer) done(start, end mihf.Time) {
	pause := max(p.gap, rest*end.Sub(start))
	if p.most > 0 {
		pause = min(pause, p.most)
	}
	p.free = end.Add(pause)
	if !p.due.IsZero() {
		p.due = max(p.due, p.free)
	}
}
