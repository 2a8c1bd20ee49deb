package queue

import (
	"fmt"
	"io"
	"math"
	"slices"

	"mihf.dev/mihf"
)

// Filter decides what a cursor delivers. It must not change while the cursor is in use.
type Filter interface {
	// Whole returns the kinds whose events all pass: for them Event is not asked.
	Whole() mihf.KindSet
	// Kind reports whether events of the kind may pass at all.
	Kind(mihf.Kind) bool
	Event(*mihf.Event) bool
	Hint(*mihf.Hint) bool
}

// Cursor is one subscriber's place in a [Log].
type Cursor struct {
	// What every delivery needs comes first, within a cache line: a hundred readers that
	// have each other's core and cache in turn wait for little else.
	last  uint64 // sequence of the last delivery
	kept  uint64 // next place to look at; none: a bounded cursor has left the ring
	loose uint64
	owed  uint64 // sequence of the oldest thing to make up for; none if there is none
	until bound
	whole mihf.KindSet

	filter    Filter
	passed    uint64 // DropOldest items before loose
	behind    []behind
	lost      lost
	skipped   map[*series]uint32 // how many of a series were passed over; nil: none
	conflated uint64             // in total
}

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

// Start places a new cursor behind everything that is in the log. Its first delivery
// names the log's newest sequence as the one before it.
func (l *Log) Start(f Filter) Cursor {
	return Cursor{
		filter: f, whole: f.Whole(), kept: l.kept.head, loose: l.loose.head, passed: l.detections.appended,
		last: l.last, owed: none, until: unbounded,
	}
}

// Resume places a new cursor behind sequence after. It fails if a never-drop item that
// followed it is gone, or if it is not reached yet.
func (l *Log) Resume(f Filter, after uint64) (c Cursor, ok bool) {
	if after > l.last || after < l.gone {
		return c, false
	}
	c = l.Start(f)
	c.last = after
	for it := l.kept.at(c.kept - 1); it != nil && it.Sequence > after; it = l.kept.at(c.kept - 1) {
		c.kept--
	}
	for it := l.loose.at(c.loose - 1); it != nil && it.event.Sequence > after; it = l.loose.at(c.loose - 1) {
		c.loose--
		if it.series == nil {
			c.passed--
		}
	}
	if c.loose == l.loose.tail && c.loose > 0 {
		l.catchUp(&c)
		if l.detections.newest > after && f.Kind(mihf.LinkDetected) {
			c.lost = lost{from: after, to: l.detections.newest}
			c.owe()
		}
	}
	return c, true
}

// Unread returns how many items of any kind the cursor has not looked at.
func (l *Log) Unread(c *Cursor) uint64 {
	return l.kept.head - min(c.kept, l.kept.head) + l.loose.head - min(c.loose, l.loose.head)
}

// Overrun reports whether a never-drop item fell out of the ring before the cursor
// looked at it.
func (l *Log) Overrun(c *Cursor) bool { return c.kept < l.kept.tail }

// Conflated returns how many items newer ones stood for so far.
func (c *Cursor) Conflated() uint64 { return c.conflated }

// Read fills buf with what follows and returns how many; fewer than len(buf) means that
// all is read. It fails with mihf.ErrSlow once the cursor is overrun. With the last items
// of a bounded cursor, and ever after, comes io.EOF.
func (l *Log) Read(c *Cursor, buf []mihf.Delivery) (int, error) {
	if l.Overrun(c) {
		return 0, fmt.Errorf("%w: fell %d items behind", mihf.ErrSlow, l.Unread(c))
	}
	if c.loose < l.loose.tail {
		l.catchUp(c)
	}
	n := 0
	for n < len(buf) {
		more, delivered := l.step(c, &buf[n])
		if !more {
			if len(c.skipped) > 0 {
				clear(c.skipped) // of series that were forgotten meanwhile
			}
			break
		}
		if delivered {
			n++
		}
	}
	if c.until != unbounded && l.leaveRead(c) {
		return n, io.EOF
	}
	return n, nil
}

// none is the sequence of what is not there.
const none = math.MaxUint64

// step looks at what has the lowest sequence and delivers it if it is due.
func (l *Log) step(c *Cursor, d *mihf.Delivery) (more, delivered bool) {
	keptSeq, looseSeq := uint64(none), uint64(none)
	kept, loose := l.kept.at(c.kept), l.loose.at(c.loose)
	if kept != nil {
		keptSeq = kept.Sequence
	}
	if loose != nil {
		looseSeq = loose.event.Sequence
	}
	first := min(keptSeq, looseSeq)
	switch {
	case c.owed < first:
		return true, c.makeUp(d)
	case first > c.until.sequence || first == none:
		return false, false
	case first == keptSeq:
		c.kept++
		return true, c.offer(d, kept)
	}
	c.loose++
	if loose.series == nil {
		c.passed++
	}
	return true, c.offerLoose(d, loose)
}

func (c *Cursor) passes(e *mihf.Event) bool { return c.whole.Has(e.Kind) || c.filter.Event(e) }

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
	if !c.passes(&it.Event) {
		return false
	}
	c.deliver(d, &it.Event, 0)
	return true
}

func (c *Cursor) offerLoose(d *mihf.Delivery, it *looseItem) bool {
	switch {
	case !c.passes(&it.event):
		return false
	case it.series == nil:
		c.deliver(d, &it.event, 0)
	case it.series.newest.Sequence != it.event.Sequence && it.series.newest.Sequence <= c.until.sequence:
		if c.skipped == nil {
			c.skipped = map[*series]uint32{}
		}
		c.skipped[it.series]++
		return false
	default:
		c.deliver(d, &it.event, c.replaced(it.series))
	}
	return true
}

func (c *Cursor) deliver(d *mihf.Delivery, e *mihf.Event, conflated uint32) {
	d.Previous, d.Conflated, d.Kind = c.last, conflated, mihf.DeliverEvent
	d.Event = *e
	c.last = e.Sequence
	c.conflated += uint64(conflated)
}

// replaced returns how many items of the series were passed over since one was delivered.
func (c *Cursor) replaced(s *series) uint32 {
	if len(c.skipped) == 0 {
		return 0
	}
	n := c.skipped[s]
	delete(c.skipped, s)
	return n
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
