package queue

import "mihf.dev/mihf"

// Sizes of a log's rings when the configuration gives none.
const (
	DefaultKept  = 4096
	DefaultLoose = 2048
)

// Item is one published event or hint.
type Item struct {
	Sequence uint64
	IsHint   bool
	Event    mihf.Event
	Hint     mihf.Hint
}

// looseItem is a report or detection.
type looseItem struct {
	event  mihf.Event
	series *series // nil: DropOldest
}

// Log is the bounded memory of what was published.
type Log struct {
	kept  ring[Item]
	loose ring[looseItem]
	last  uint64
	// gone is the sequence of the newest kept item that fell out of its ring.
	gone       uint64
	detections detections
	newest     table // of each series, for cursors that the ring outran
}

// detections counts the DropOldest items.
type detections struct {
	appended uint64 // ever
	last     uint64 // sequence of the newest of those
	dropped  uint64 // fell out of the ring
	newest   uint64 // sequence of the newest of those that fell out
}

// NewLog returns a log that keeps that many items of each class. Sizes that are not
// above 0 mean the default; they are rounded up to a power of two.
func NewLog(kept, loose int) *Log {
	if kept <= 0 {
		kept = DefaultKept
	}
	if loose <= 0 {
		loose = DefaultLoose
	}
	return &Log{kept: newRing[Item](kept), loose: newRing[looseItem](loose), newest: newTable(maxSeries)}
}

// Last returns the sequence of the newest item; 0 if there is none.
func (l *Log) Last() uint64 { return l.last }

// Kept returns how many never-drop items and hints the log holds at most.
func (l *Log) Kept() int { return int(l.kept.max) }

// AppendEvent publishes a copy of e. Sequence numbers must rise.
func (l *Log) AppendEvent(e *mihf.Event) {
	l.advance(e.Sequence)
	if e.Kind.Admission() == mihf.NeverDrop {
		it := l.nextKept()
		it.Sequence, it.IsHint, it.Event = e.Sequence, false, *e
		return
	}
	if old := l.loose.oldestIfFull(); old != nil && old.series == nil {
		l.detections.dropped++
		l.detections.newest = old.event.Sequence
	}
	it := l.loose.next()
	it.event, it.series = *e, nil
	if e.Kind.Admission() == mihf.NewestOnly {
		it.series = l.newest.remember(e)
	} else {
		l.detections.appended++
		l.detections.last = e.Sequence
	}
}

// AppendHint publishes a copy of h. Sequence numbers must rise.
func (l *Log) AppendHint(h *mihf.Hint) {
	l.advance(h.Sequence)
	it := l.nextKept()
	it.Sequence, it.IsHint, it.Hint = h.Sequence, true, *h
}

func (l *Log) nextKept() *Item {
	if old := l.kept.oldestIfFull(); old != nil {
		l.gone = old.Sequence
	}
	return l.kept.next()
}

func (l *Log) advance(seq uint64) {
	if seq <= l.last {
		panic("queue: sequence numbers must rise")
	}
	l.last = seq
}
