package queue

import (
	"fmt"
	"slices"

	"mihf.dev/mihf"
)

// behind is a series whose newest item fell out of the ring before it was read.
type behind struct {
	*series
	sequence uint64
}

// lost are the DropOldest items that a cursor missed and has not stated yet.
type lost struct {
	from, to uint64 // to is the sequence of the newest; 0: none are lost
	items    uint64 // at most; 0: not known
}

// more adds what was lost up to a sequence, by a cursor whose last delivery is given.
func (x *lost) more(last, to, items uint64) {
	switch {
	case x.to == 0:
		x.from, x.items = last, items
	case x.items > 0:
		x.items += items
	}
	x.to = to
}

// owe notes the sequence of the oldest thing that the cursor must make up for.
func (c *Cursor) owe() {
	c.owed = none
	if len(c.behind) > 0 {
		c.owed = c.behind[0].sequence
	}
	if c.lost.to > 0 {
		c.owed = min(c.owed, c.lost.to)
	}
}

// makeUp delivers what is owed.
func (c *Cursor) makeUp(d *mihf.Delivery) bool {
	defer c.owe()
	if c.lost.to == c.owed {
		c.stateGap(d)
		return true
	}
	b := c.behind[0]
	if c.behind = c.behind[1:]; len(c.behind) == 0 {
		c.behind = nil
	}
	if b.newest.Sequence != b.sequence {
		return false // a newer one is in the ring
	}
	c.deliver(d, &b.newest, c.replaced(b.series))
	return true
}

func (c *Cursor) stateGap(d *mihf.Delivery) {
	reason := "link_detected dropped"
	if c.lost.items > 0 {
		reason = fmt.Sprintf("up to %d link_detected dropped", c.lost.items)
	}
	d.Previous, d.Conflated, d.Kind = c.last, 0, mihf.DeliverGap
	d.Gap = mihf.Gap{From: c.lost.from, To: c.lost.to, Reason: reason}
	c.last = c.lost.to
	c.lost = lost{}
}

// catchUp moves a cursor that the loose ring outran to its oldest item, and notes the
// newest item of each series that is not in the ring any more and how many detections
// were lost.
func (l *Log) catchUp(c *Cursor) {
	c.loose = l.loose.tail
	if n := min(l.detections.dropped, c.until.detections); n > c.passed {
		if c.filter.Kind(mihf.LinkDetected) {
			c.lost.more(c.last, min(l.detections.newest, c.until.detected), n-c.passed)
		}
		c.passed = n
	}
	oldest := l.loose.at(l.loose.tail).event.Sequence
	c.behind = c.behind[:0]
	for s := l.newest.ends.older; s != l.newest.ends && s.newest.Sequence > c.last; s = s.older {
		if s.newest.Sequence < oldest && s.newest.Sequence <= c.until.sequence && c.passes(&s.newest) {
			c.behind = append(c.behind, behind{s, s.newest.Sequence})
		}
	}
	slices.Reverse(c.behind)
	c.owe()
}
