package queue

// bound is where a cursor ends: behind what was in the log at one moment.
type bound struct {
	sequence   uint64 // of the newest item
	detections uint64 // DropOldest items
	detected   uint64 // sequence of the newest of them
}

// unbounded is the bound of a cursor that has none.
var unbounded = bound{none, none, none}

// Bound ends the cursor behind what is in the log now: what is published from now on does
// not belong to it, and [Log.Read] says io.EOF where the rest is read.
func (l *Log) Bound(c *Cursor) {
	c.until = bound{l.last, l.detections.appended, l.detections.last}
	l.leaveRead(c)
}

// leaveRead takes a bounded cursor out of each ring that has nothing more for it, so that
// nothing that falls out of the ring concerns it, and reports whether it is out of all.
func (l *Log) leaveRead(c *Cursor) (all bool) {
	if e := l.kept.at(c.kept); c.kept >= l.kept.tail && (e == nil || e.Sequence > c.until.sequence) {
		c.kept = none
	}
	if h := l.hints.at(c.hints); c.hints >= l.hints.tail && (h == nil || h.Sequence > c.until.sequence) {
		c.hints = none
	}
	if it := l.loose.at(c.loose); c.loose >= l.loose.tail && (it == nil || it.event.Sequence > c.until.sequence) {
		c.loose = none
	}
	return c.kept == none && c.hints == none && c.loose == none && c.owed == none
}
