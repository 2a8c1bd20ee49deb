package queue

import "mihf.dev/mihf"

// Sizes of a log's rings when the configuration gives none.
const (
	DefaultKept  = 4096
	DefaultLoose = 2048
	// maxSeries bounds the series whose newest item is remembered.
	maxSeries = 1 << 14
)

// Item is one published event or hint.
type Item struct {
	Sequence uint64
	IsHint   bool
	Event    mihf.Event
	Hint     mihf.Hint
}

// looseItem is a report or detection with its place in its series.
type looseItem struct {
	event     mihf.Event
	ordinal   uint32 // in its series
	droppable uint64 // how many DropOldest items there were up to this one
}

// series is the identity of what a newer item replaces.
type series struct {
	link  mihf.LinkID
	kind  mihf.Kind
	param mihf.Parameter
	name  string // sensor or flow
}

// newest is the last item of a series.
type newest struct {
	event   mihf.Event
	ordinal uint32
}

// Log is the bounded memory of what was published.
type Log struct {
	kept  ring[Item]
	loose ring[looseItem]
	last  uint64
	// droppable counts the DropOldest items ever appended.
	droppable uint64
	// newest has the last item of each series, for readers that the ring outran.
	newest map[series]*newest
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
	return &Log{kept: newRing[Item](kept), loose: newRing[looseItem](loose), newest: map[series]*newest{}}
}

// Last returns the sequence of the newest item; 0 if there is none.
func (l *Log) Last() uint64 { return l.last }

// AppendEvent publishes a copy of e. Sequence numbers must rise.
func (l *Log) AppendEvent(e *mihf.Event) {
	l.advance(e.Sequence)
	if e.Kind.Admission() == mihf.NeverDrop {
		it := l.kept.next()
		it.Sequence, it.IsHint, it.Event = e.Sequence, false, *e
		return
	}
	it := l.loose.next()
	it.event, it.ordinal = *e, 0
	if e.Kind.Admission() == mihf.NewestOnly {
		it.ordinal = l.remember(e)
	} else {
		l.droppable++
	}
	it.droppable = l.droppable
}

// remember makes e the newest of its series and returns its ordinal there.
func (l *Log) remember(e *mihf.Event) uint32 {
	k := seriesOf(e)
	n := l.newest[k]
	if n == nil {
		if len(l.newest) >= maxSeries {
			l.forgetOldest()
		}
		n = &newest{}
		l.newest[k] = n
	}
	n.event = *e
	n.ordinal++
	return n.ordinal
}

// AppendHint publishes a copy of h and returns its place, for [Log.HintAt]. Sequence
// numbers must rise.
func (l *Log) AppendHint(h *mihf.Hint) uint64 {
	l.advance(h.Sequence)
	place := l.kept.head
	it := l.kept.next()
	it.Sequence, it.IsHint, it.Hint = h.Sequence, true, *h
	return place
}

// HintAt copies the hint at a place that [Log.AppendHint] returned; false if it fell out
// of the ring.
func (l *Log) HintAt(place uint64, h *mihf.Hint) bool {
	it := l.kept.at(place)
	if it == nil || !it.IsHint {
		return false
	}
	*h = it.Hint
	return true
}

func (l *Log) advance(seq uint64) {
	if seq <= l.last {
		panic("queue: sequence numbers must rise")
	}
	l.last = seq
}

// forgetOldest makes room for a new series: links come and go, the table must not grow.
func (l *Log) forgetOldest() {
	var oldest series
	var found *newest
	for k, n := range l.newest {
		if found == nil || n.event.Sequence < found.event.Sequence {
			oldest, found = k, n
		}
	}
	delete(l.newest, oldest)
}

func seriesOf(e *mihf.Event) series {
	k := series{link: e.Link, kind: e.Kind}
	switch e.Kind {
	case mihf.LinkParametersReport:
		k.param = e.Report.Parameter
	case mihf.SensorConditionChanged:
		if e.Condition != nil {
			k.name = e.Condition.Sensor
		}
	case mihf.ShareReport:
		if e.ShareReport != nil {
			k.name = string(e.ShareReport.Flow)
		}
	}
	return k
}

// ring is a bounded sequence of places; old ones are overwritten. It starts small and
// grows to its bound.
type ring[T any] struct {
	slots []T
	max   uint64
	head  uint64 // the place that comes next
	tail  uint64 // the oldest place still there
}

func newRing[T any](n int) ring[T] {
	size := uint64(1)
	for size < uint64(n) {
		size *= 2
	}
	return ring[T]{slots: make([]T, min(size, 64)), max: size}
}

// next returns the slot of the next place, to be filled.
func (r *ring[T]) next() *T {
	if n := uint64(len(r.slots)); r.head-r.tail == n {
		if n < r.max {
			r.grow()
		} else {
			r.tail++
		}
	}
	s := &r.slots[r.head&uint64(len(r.slots)-1)]
	r.head++
	return s
}

func (r *ring[T]) grow() {
	bigger := make([]T, 2*len(r.slots))
	for p := r.tail; p < r.head; p++ {
		bigger[p&uint64(len(bigger)-1)] = r.slots[p&uint64(len(r.slots)-1)]
	}
	r.slots = bigger
}

func (r *ring[T]) at(place uint64) *T {
	if place < r.tail || place >= r.head {
		return nil
	}
	return &r.slots[place&uint64(len(r.slots)-1)]
}
