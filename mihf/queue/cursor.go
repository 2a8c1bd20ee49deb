package queue

import (
	"cmp"
	"fmt"
	"slices"

	"mihf.dev/mihf"
)

// Filter decides what a cursor delivers. It must not change while the cursor is in use.
type Filter interface {
	// Kind reports whether events of the kind may pass at all.
	Kind(mihf.Kind) bool
	Event(*mihf.Event) bool
	Hint(*mihf.Hint) bool
}

// Cursor is one subscriber's place in a [Log].
type Cursor struct {
	filter    Filter
	kept      uint64 // next place to look at
	loose     uint64
	droppable uint64 // DropOldest items before loose
	last      uint64 // sequence of the last delivery
	behind    []behind
	skipped   map[series]uint32 // ordinal of the first that was skipped
	dropped   uint64            // DropOldest items that were lost and not yet stated
	conflated uint64            // in total
}

// behind is a series whose newest item fell out of the ring before it was read.
type behind struct {
	key      series
	sequence uint64
}

// Start places a new cursor behind everything that is in the log; previous is what the
// first delivery names as the one before it.
func (l *Log) Start(f Filter, previous uint64) *Cursor {
	return &Cursor{filter: f, kept: l.kept.head, loose: l.loose.head, droppable: l.droppable, last: previous}
}

// Resume places a new cursor behind sequence after. It returns nil if what followed it
// may not be in the rings any more, or if it is not reached yet.
func (l *Log) Resume(f Filter, after uint64) *Cursor {
	if after > l.last {
		return nil
	}
	c := l.Start(f, after)
	for c.kept > l.kept.tail && l.kept.at(c.kept-1).Sequence > after {
		c.kept--
	}
	if c.kept == l.kept.tail && c.kept > 0 {
		return nil // the item before the oldest one is gone, and may have followed after
	}
	for c.loose > l.loose.tail && l.loose.at(c.loose-1).event.Sequence > after {
		c.loose--
	}
	if c.loose == l.loose.tail && c.loose > 0 {
		c.loose-- // lets Read catch up from the newest of each series
		if l.droppableBefore(l.loose.tail) > 0 && f.Kind(mihf.LinkDetected) {
			c.dropped = 1
		}
	}
	c.droppable = l.droppableBefore(c.loose)
	return c
}

func (l *Log) droppableBefore(place uint64) uint64 {
	if place == l.loose.head {
		return l.droppable
	}
	it := l.loose.at(max(place, l.loose.tail))
	if it.event.Kind.Admission() == mihf.DropOldest {
		return it.droppable - 1
	}
	return it.droppable
}

// Unread returns how many items of any kind the cursor has not looked at.
func (l *Log) Unread(c *Cursor) uint64 { return l.kept.head - c.kept + l.loose.head - c.loose }

// Overrun reports whether a never-drop item fell out of the ring unread.
func (l *Log) Overrun(c *Cursor) bool { return c.kept < l.kept.tail }

// Conflated returns how many items newer ones stood for so far.
func (c *Cursor) Conflated() uint64 { return c.conflated }

// Read fills buf with what follows and returns how many; fewer than len(buf) means that
// all is read. It fails with mihf.ErrSlow once a never-drop item was lost.
func (l *Log) Read(c *Cursor, buf []mihf.Delivery) (int, error) {
	if l.Overrun(c) {
		return 0, fmt.Errorf("%w: fell %d items behind", mihf.ErrSlow, l.Unread(c))
	}
	if c.loose < l.loose.tail {
		l.catchUp(c)
	}
	n := 0
	for n < len(buf) {
		if c.dropped > 0 {
			c.stateGap(&buf[n])
			n++
			continue
		}
		more, delivered := l.step(c, &buf[n])
		if !more {
			break
		}
		if delivered {
			n++
		}
	}
	return n, nil
}

// step looks at the item with the lowest sequence and delivers it if it is due.
func (l *Log) step(c *Cursor, d *mihf.Delivery) (more, delivered bool) {
	kept, loose := l.kept.at(c.kept), l.loose.at(c.loose)
	switch {
	case len(c.behind) > 0 && (kept == nil || c.behind[0].sequence < kept.Sequence):
		b := c.behind[0]
		c.behind = c.behind[1:]
		n := l.newest[b.key]
		if n == nil || n.event.Sequence != b.sequence {
			return true, false // a newer one is in the ring
		}
		c.deliver(d, &n.event, c.replaced(b.key, n.ordinal))
		return true, true
	case kept != nil && (loose == nil || kept.Sequence < loose.event.Sequence):
		c.kept++
		return true, c.offer(d, kept)
	case loose != nil:
		c.loose++
		c.droppable = loose.droppable
		return true, l.offerLoose(c, d, loose)
	}
	return false, false
}

func (c *Cursor) offer(d *mihf.Delivery, it *Item) bool {
	if it.IsHint {
		if !c.filter.Hint(&it.Hint) {
			return false
		}
		d.Previous, d.Conflated, d.Kind = c.last, 0, mihf.DeliverHint
		d.Hint = it.Hint
		c.last = it.Sequence
		return true
	}
	if !c.filter.Event(&it.Event) {
		return false
	}
	c.deliver(d, &it.Event, 0)
	return true
}

func (l *Log) offerLoose(c *Cursor, d *mihf.Delivery, it *looseItem) bool {
	if !c.filter.Event(&it.event) {
		return false
	}
	if it.ordinal == 0 {
		c.deliver(d, &it.event, 0)
		return true
	}
	key := seriesOf(&it.event)
	if n := l.newest[key]; n != nil && n.ordinal != it.ordinal {
		c.skip(key, it.ordinal)
		return false
	}
	c.deliver(d, &it.event, c.replaced(key, it.ordinal))
	return true
}

func (c *Cursor) deliver(d *mihf.Delivery, e *mihf.Event, conflated uint32) {
	d.Previous, d.Conflated, d.Kind = c.last, conflated, mihf.DeliverEvent
	d.Event = *e
	c.last = e.Sequence
	c.conflated += uint64(conflated)
}

func (c *Cursor) skip(key series, ordinal uint32) {
	if c.skipped == nil {
		c.skipped = map[series]uint32{}
	}
	if _, ok := c.skipped[key]; !ok {
		c.skipped[key] = ordinal
	}
}

// replaced returns how many older items of the series the one with that ordinal stands
// for; where the ring outran the cursor it is a lower bound.
func (c *Cursor) replaced(key series, ordinal uint32) uint32 {
	first, ok := c.skipped[key]
	if !ok {
		return 0
	}
	delete(c.skipped, key)
	return ordinal - first
}

func (c *Cursor) stateGap(d *mihf.Delivery) {
	d.Previous, d.Conflated, d.Kind = c.last, 0, mihf.DeliverGap
	d.Gap = mihf.Gap{From: c.last, To: c.last, Reason: fmt.Sprintf("at least %d link_detected dropped", c.dropped)}
	c.dropped = 0
}

// catchUp notes, for a cursor that the loose ring outran, the newest item of each series
// that is not in the ring any more, and how many detections were lost.
func (l *Log) catchUp(c *Cursor) {
	oldest := l.loose.at(l.loose.tail)
	if before := l.droppableBefore(l.loose.tail); before > c.droppable && c.filter.Kind(mihf.LinkDetected) {
		c.dropped += before - c.droppable
	}
	c.droppable = l.droppableBefore(l.loose.tail)
	c.behind = c.behind[:0]
	for key, n := range l.newest {
		s := n.event.Sequence
		if s > c.last && s < oldest.event.Sequence && c.filter.Event(&n.event) {
			c.behind = append(c.behind, behind{key, s})
		}
	}
	slices.SortFunc(c.behind, func(a, b behind) int { return cmp.Compare(a.sequence, b.sequence) })
	c.loose = l.loose.tail
}
