package queue

import "mihf.dev/mihf"

// Sizes bound the rings of a [Log]. One that is not above 0 means the default that it
// names; they are rounded up to a power of two.
type Sizes struct {
	Kept  int // events that are never dropped; [DefaultKept]
	Hints int // [DefaultHints]
	Loose int // reports and detections; [DefaultLoose]
}

// Default sizes.
const (
	DefaultKept  = 4096
	DefaultHints = 8192
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
	kept  ring[mihf.Event]
	hints ring[mihf.Hint]
	loose ring[looseItem]
	last  uint64
	// gone are the sequences of the newest event and hint that fell out of their rings.
	gone       struct{ event, hint uint64 }
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

// NewLog returns an empty log.
func NewLog(s Sizes) *Log {
	for _, d := range []struct {
		v *int
		n int
	}{{&s.Kept, DefaultKept}, {&s.Hints, DefaultHints}, {&s.Loose, DefaultLoose}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
	return &Log{
		kept: newRing[mihf.Event](s.Kept), hints: newRing[mihf.Hint](s.Hints), loose: newRing[looseItem](s.Loose),
		newest: newTable(maxSeries),
	}
}

// Last returns the sequence of the newest item; 0 if there is none.
func (l *Log) Last() uint64 { return l.last }

// Room returns how many items can be published before a cursor that has read all may be
// overrun.
func (l *Log) Room() int { return int(min(l.kept.max, l.hints.max)) }

// AppendEvent publishes a copy of e. Sequence numbers must rise.
func (l *Log) AppendEvent(e *mihf.Event) {
	l.advance(e.Sequence)
	if e.Kind.Admission() == mihf.NeverDrop {
		if old := l.kept.oldestIfFull(); old != nil {
			l.gone.event = old.Sequence
		}
		*l.kept.next() = *e
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
	if old := l.hints.oldestIfFull(); old != nil {
		l.gone.hint = old.Sequence
	}
	*l.hints.next() = *h
}

func (l *Log) advance(seq uint64) {
	if seq <= l.last {
		panic("queue: sequence numbers must rise")
	}
	l.last = seq
}
