package queue

import (
	"fmt"
	"io"
	"math"

	"mihf.dev/mihf"
)

// Filter decides what a cursor delivers. It must not change while the cursor is in use.
type Filter interface {
	// Whole returns the kinds whose events all pass: for them Event is not asked.
	Whole() mihf.KindSet
	// Kind reports whether events of the kind may pass at all.
	Kind(mihf.Kind) bool
	// Hints reports whether hints may pass at all.
	Hints() bool
	Event(*mihf.Event) bool
	Hint(*mihf.Hint) bool
}

// Cursor is one subscriber's place in a [Log].
type Cursor struct {
	// What every delivery needs comes first, within a cache line: a hundred readers that
	// have each other's core and cache in turn wait for little else.
	last   uint64 // sequence of the last delivery
	kept   uint64 // next place to look at; none: nothing in the ring is for it
	hints  uint64
	loose  uint64
	owed   uint64 // sequence of the oldest thing to make up for; none if there is none
	whole  mihf.KindSet
	passed uint64 // DropOldest items before loose
	until  bound

	filter    Filter
	behind    []behind
	lost      lost
	skipped   map[*series]uint32 // how many of a series were passed over; nil: none
	conflated uint64             // in total
}

// Start places a new cursor behind everything that is in the log. Its first delivery
// names the log's newest sequence as the one before it.
func (l *Log) Start(f Filter) Cursor {
	c := Cursor{
		filter: f, whole: f.Whole(), kept: l.kept.head, hints: none, loose: l.loose.head, passed: l.detections.appended,
		last: l.last, owed: none, until: unbounded,
	}
	if f.Hints() {
		c.hints = l.hints.head
	}
	return c
}

// Resume places a new cursor behind sequence after. It fails if a never-drop event that
// followed it is gone, or a hint where hints may pass; or if it is not reached yet.
func (l *Log) Resume(f Filter, after uint64) (c Cursor, ok bool) {
	if after > l.last || after < l.gone.event || (f.Hints() && after < l.gone.hint) {
		return c, false
	}
	c = l.Start(f)
	c.last = after
	for e := l.kept.at(c.kept - 1); e != nil && e.Sequence > after; e = l.kept.at(c.kept - 1) {
		c.kept--
	}
	for h := l.hints.at(c.hints - 1); h != nil && h.Sequence > after; h = l.hints.at(c.hints - 1) {
		c.hints--
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

// Unread returns how many items that may be for it the cursor has not looked at.
func (l *Log) Unread(c *Cursor) uint64 {
	return l.kept.after(c.kept) + l.hints.after(c.hints) + l.loose.after(c.loose)
}

// Overrun reports whether a never-drop event, or a hint where hints may pass, fell out of
// its ring before the cursor looked at it.
func (l *Log) Overrun(c *Cursor) bool { return c.kept < l.kept.tail || c.hints < l.hints.tail }

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
	if c.until.sequence != none && l.leaveRead(c) {
		return n, io.EOF
	}
	return n, nil
}

// none is the sequence of what is not there.
const none = math.MaxUint64

// step looks at what has the lowest sequence and delivers it if it is due.
func (l *Log) step(c *Cursor, d *mihf.Delivery) (more, delivered bool) {
	keptSeq, hintSeq, looseSeq := uint64(none), uint64(none), uint64(none)
	kept, hint, loose := l.kept.at(c.kept), l.hints.at(c.hints), l.loose.at(c.loose)
	if kept != nil {
		keptSeq = kept.Sequence
	}
	if hint != nil {
		hintSeq = hint.Sequence
	}
	if loose != nil {
		looseSeq = loose.event.Sequence
	}
	first := min(keptSeq, hintSeq, looseSeq)
	switch {
	case c.owed < first:
		return true, c.makeUp(d)
	case first > c.until.sequence || first == none:
		return false, false
	case first == keptSeq:
		c.kept++
		return true, c.offer(d, kept)
	case first == hintSeq:
		c.hints++
		return true, c.offerHint(d, hint)
	}
	c.loose++
	if loose.series == nil {
		c.passed++
	}
	return true, c.offerLoose(d, loose)
}

func (c *Cursor) passes(e *mihf.Event) bool { return c.whole.Has(e.Kind) || c.filter.Event(e) }

func (c *Cursor) offer(d *mihf.Delivery, e *mihf.Event) bool {
	if !c.passes(e) {
		return false
	}
	c.deliver(d, e, 0)
	return true
}

func (c *Cursor) offerHint(d *mihf.Delivery, h *mihf.Hint) bool {
	if !c.filter.Hint(h) {
		return false
	}
	d.Previous, d.Conflated, d.Kind = c.last, 0, mihf.DeliverHint
	d.Hint = *h
	c.last = h.Sequence
	return true
}

func (c *Cursor) offerLoose(d *mihf.Delivery, it *looseItem) bool {
	switch {
	case it.series == nil:
		return c.offer(d, &it.event)
	case !c.passes(&it.event):
		return false
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
