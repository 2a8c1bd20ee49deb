package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

const (
	counterValues = 16 // WCTRMAX
	roundTrip     = 4  // quarters
)

// counterClock reads the window counters of arriving packets: it unwraps them and
// estimates the round-trip time by them (RFC 4342, section 8.1).
type counterClock struct {
	now   int64 // unwrapped counter of the greatest sequence number
	first [counterValues]struct {
		counter int64 // unwrapped, plus one; zero: none
		at      mihf.Time
	}
	rtt   time.Duration // 0: none yet
	fresh bool          // the next sample begins a new estimate
}

// see takes the counter of a packet with a new greatest sequence number and reports
// whether the counter moved.
func (c *counterClock) see(now mihf.Time, counter uint8) bool {
	step := (int64(counter) - c.now) & (counterValues - 1)
	c.now += step
	f := &c.first[c.now&(counterValues-1)]
	if f.counter == c.now+1 {
		return false
	}
	f.counter, f.at = c.now+1, now
	if step <= roundTrip { // five means: this far apart or more
		c.sample(now)
	}
	return step > 0
}

// sample takes the time since the first packet of the counter four quarters ago, else of
// three or two.
func (c *counterClock) sample(now mihf.Time) {
	for d := int64(roundTrip); d >= 2; d-- {
		f := c.first[(c.now-d)&(counterValues-1)]
		if c.now < d || f.counter != c.now-d+1 {
			continue
		}
		s := now.Sub(f.at) * roundTrip / time.Duration(d)
		if c.rtt == 0 || c.fresh {
			c.rtt, c.fresh = s, false
		}
		c.rtt += (s - c.rtt) / 8
		return
	}
}
