package link

import (
	"fmt"
	"math"
	"time"
)

// Outage is whether and how a line is interrupted.
type Outage uint8

// Outages.
const (
	NoOutage Outage = iota
	Blackout        // what is transmitted is lost, at the line's rate
	Stall           // nothing is transmitted; the queue stands
)

// Conditions are what a line is like. The zero Conditions pass everything at once.
type Conditions struct {
	RateBPS      float64       // of the transmitter, bit/s; 0: transmission takes no time
	Delay        time.Duration // from the end of transmission
	Loss         float64       // share of the transmitted packets that are lost, 0 to 1
	QueueBytes   int           // that may wait for the transmitter; 0: no bound in octets
	QueuePackets int           // likewise in packets; 0: [DefaultQueuePackets] where there is no bound in octets either
	Outage       Outage
}

// DefaultQueuePackets is the bound of a queue that is given none, as of a network device.
const DefaultQueuePackets = 1000

// MaxPackets bounds the packets of one direction that wait, and those that fly. The bound of a queue
// may not be above it.
const MaxPackets = 1 << 16

// Check says what is wrong with the conditions.
func (c Conditions) Check() error {
	switch {
	case !(c.RateBPS >= 0) || math.IsInf(c.RateBPS, 1):
		return fmt.Errorf("link: rate %v bit/s; want 0 for none or more", c.RateBPS)
	case c.Delay < 0 || c.Delay > time.Hour:
		return fmt.Errorf("link: delay %v; want 0 to 1h", c.Delay)
	case !(c.Loss >= 0 && c.Loss <= 1):
		return fmt.Errorf("link: loss %v; want 0 to 1", c.Loss)
	case c.QueueBytes < 0 || c.QueuePackets < 0 || c.QueuePackets > MaxPackets:
		return fmt.Errorf("link: queue of %d octets, %d packets; want 0 or more, and at most %d packets", c.QueueBytes, c.QueuePackets, MaxPackets)
	case c.Outage > Stall:
		return fmt.Errorf("link: outage %d is not known", c.Outage)
	}
	return nil
}

// takes reports whether a packet of that size has room beside what waits.
func (c Conditions) takes(packets, bytes, size int) bool {
	limit := c.QueuePackets
	if limit == 0 {
		limit = MaxPackets
		if c.QueueBytes == 0 {
			limit = DefaultQueuePackets
		}
	}
	return packets < limit && (c.QueueBytes == 0 || bytes+size <= c.QueueBytes)
}

// airtime is how long the transmitter takes for so many bits, rounded up to a nanosecond.
func (c Conditions) airtime(bits float64) time.Duration {
	if c.RateBPS == 0 {
		return 0
	}
	return time.Duration(min(math.Ceil(bits*1e9/c.RateBPS), float64(maxAirtime)))
}

// maxAirtime bounds what a packet takes at a rate near 0, so that moments do not overflow.
const maxAirtime = 1000 * time.Hour
