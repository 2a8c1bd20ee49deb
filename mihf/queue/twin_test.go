package queue_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
)

// twin is the deliberately dumb version of a log: an unbounded list, and the rules.
type twin struct {
	list        []twinItem
	kept, loose int // bounds
}

type twinItem struct {
	seq    uint64
	hint   bool
	event  mihf.Event
	linkOf mihf.LinkID
}

func (it *twinItem) admission() mihf.Admission {
	if it.hint {
		return mihf.NeverDrop
	}
	return it.event.Kind.Admission()
}

func (it *twinItem) passes(f *filter) bool {
	if it.hint {
		return f.Hint(&mihf.Hint{Link: it.linkOf})
	}
	return f.Event(&it.event)
}

// here reports which items are still in their ring.
func (w *twin) here() []bool {
	out := make([]bool, len(w.list))
	kept, loose := w.kept, w.loose
	for i := len(w.list) - 1; i >= 0; i-- {
		room := &loose
		if w.list[i].admission() == mihf.NeverDrop {
			room = &kept
		}
		out[i] = *room > 0
		*room--
	}
	return out
}

// newer returns whether a newer item of the same series exists.
func (w *twin) newer(i int) bool {
	a := &w.list[i].event
	for _, it := range w.list[i+1:] {
		if !it.hint && it.event.Kind == a.Kind && it.event.Link == a.Link && it.event.Report.Parameter == a.Report.Parameter {
			return true
		}
	}
	return false
}

// twinCursor remembers which items it has dealt with.
type twinCursor struct {
	filter *filter
	next   int // of the list
	done   map[int]bool
	last   uint64
	lost   mihf.Gap
	stood  map[series]int // items of a series not delivered since one was
	outran bool
	real   queue.Cursor
}

type series struct {
	link mihf.LinkID
	kind mihf.Kind
	p    mihf.Parameter
}

// due returns the deliveries that a read of all would give, as sequence numbers with the
// gap marked, and the upper bounds of what each stands for.
func (w *twin) read(c *twinCursor, room int) (seqs []uint64, gaps []bool, stands []int, slow bool) {
	here := w.here()
	for i := c.next; i < len(w.list); i++ {
		it := &w.list[i]
		switch adm := it.admission(); {
		case here[i] || c.done[i]:
		case adm == mihf.NeverDrop:
			return nil, nil, nil, true
		default:
			c.outran = true
			if adm == mihf.DropOldest {
				if c.filter.Kind(it.event.Kind) {
					if c.lost.To == 0 {
						c.lost.From = c.last
					}
					c.lost.To = it.seq
				}
				c.done[i] = true
			}
		}
	}
	for i := c.next; i < len(w.list) && len(seqs) < room; i++ {
		it := &w.list[i]
		if c.lost.To != 0 && c.lost.To < it.seq {
			seqs, gaps, stands = append(seqs, c.lost.To), append(gaps, true), append(stands, 0)
			c.last, c.lost = c.lost.To, mihf.Gap{}
			if len(seqs) == room {
				return seqs, gaps, stands, false
			}
		}
		c.next = i + 1
		if c.done[i] || !it.passes(c.filter) {
			continue
		}
		n := 0
		if it.admission() == mihf.NewestOnly {
			s := series{it.event.Link, it.event.Kind, it.event.Report.Parameter}
			if w.newer(i) {
				c.stood[s]++
				continue
			}
			n = c.stood[s]
			c.stood[s] = 0
		}
		seqs, gaps, stands = append(seqs, it.seq), append(gaps, false), append(stands, n)
		c.last = it.seq
	}
	if c.lost.To != 0 && c.next == len(w.list) && len(seqs) < room {
		seqs, gaps, stands = append(seqs, c.lost.To), append(gaps, true), append(stands, 0)
		c.last, c.lost = c.lost.To, mihf.Gap{}
	}
	return seqs, gaps, stands, false
}

// resumable reports whether nothing that is never dropped and followed after is gone.
func (w *twin) resumable(after, last uint64) bool {
	here := w.here()
	for i := range w.list {
		if w.list[i].seq > after && w.list[i].admission() == mihf.NeverDrop && !here[i] {
			return false
		}
	}
	return after <= last
}

func (w *twin) resume(f *filter, after uint64) *twinCursor {
	c := &twinCursor{filter: f, done: map[int]bool{}, stood: map[series]int{}, last: after}
	for c.next < len(w.list) && w.list[c.next].seq <= after {
		c.next++
	}
	return c
}

// The log and every cursor do what the twin does, whatever the sequence of calls.
func TestLikeTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept, loose := 1<<rapid.IntRange(0, 4).Draw(t, "kept"), 1<<rapid.IntRange(0, 4).Draw(t, "loose")
		m := &model{log: queue.NewLog(kept, loose), twin: twin{kept: kept, loose: loose}}
		t.Repeat(map[string]func(*rapid.T){"append": m.append, "hint": m.hint, "start": m.start, "resume": m.resume, "read": m.read})
	})
}

type model struct {
	log     *queue.Log
	twin    twin
	seq     uint64
	cursors []*twinCursor
}

func (m *model) next(t *rapid.T) uint64 {
	m.seq += uint64(rapid.IntRange(1, 2).Draw(t, "step"))
	return m.seq
}

var links = []mihf.LinkID{wlan, wwan, ""}

func (m *model) append(t *rapid.T) {
	kinds := []mihf.Kind{mihf.LinkUp, mihf.LinkParametersReport, mihf.LinkDetected, mihf.SensorConditionChanged, mihf.LinkDown}
	e := mihf.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Link: rapid.SampledFrom(links).Draw(t, "link")}
	if e.Kind == mihf.LinkParametersReport {
		e.Report.Parameter = mihf.Parameter(rapid.IntRange(0, 1).Draw(t, "parameter"))
	}
	e.Sequence = m.next(t)
	m.log.AppendEvent(&e)
	m.twin.list = append(m.twin.list, twinItem{seq: e.Sequence, event: e})
}

func (m *model) hint(t *rapid.T) {
	h := mihf.Hint{Link: rapid.SampledFrom(links).Draw(t, "link"), Sequence: m.next(t)}
	m.log.AppendHint(&h)
	m.twin.list = append(m.twin.list, twinItem{seq: h.Sequence, hint: true, linkOf: h.Link})
}

func drawFilter(t *rapid.T) *filter {
	f := &filter{noHints: rapid.Bool().Draw(t, "no_hints")}
	for _, k := range []mihf.Kind{mihf.LinkUp, mihf.LinkParametersReport, mihf.LinkDetected} {
		if rapid.IntRange(0, 3).Draw(t, "refuse") == 0 {
			f.refused |= mihf.Kinds(k)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "only") == 0 {
		f.links = []mihf.LinkID{wlan}
	}
	return f
}

func (m *model) start(t *rapid.T) {
	f := drawFilter(t)
	c := m.twin.resume(f, m.log.Last())
	c.real = m.log.Start(f)
	m.cursors = append(m.cursors, c)
}

func (m *model) resume(t *rapid.T) {
	f, after := drawFilter(t), rapid.Uint64Range(0, m.seq+1).Draw(t, "after")
	cursor, got := m.log.Resume(f, after)
	if ok := m.twin.resumable(after, m.log.Last()); ok != got {
		t.Fatalf("resume behind %d: got %v, want %v", after, got, ok)
	}
	if got {
		c := m.twin.resume(f, after)
		c.real = cursor
		m.cursors = append(m.cursors, c)
	}
}

func (m *model) read(t *rapid.T) {
	if len(m.cursors) == 0 {
		t.Skip("no cursor")
	}
	i := rapid.IntRange(0, len(m.cursors)-1).Draw(t, "cursor")
	c, buf := m.cursors[i], make([]mihf.Delivery, rapid.IntRange(1, 8).Draw(t, "room"))
	previous := c.last
	seqs, gaps, stands, slow := m.twin.read(c, len(buf))
	n, err := m.log.Read(&c.real, buf)
	if slow != errors.Is(err, mihf.ErrSlow) || slow != m.log.Overrun(&c.real) {
		t.Fatalf("read: %v, want slow %v", err, slow)
	}
	if slow {
		m.cursors = append(m.cursors[:i], m.cursors[i+1:]...)
		return
	}
	var gotSeqs []uint64
	var gotGaps []bool
	for k := range buf[:n] {
		d := &buf[k]
		if d.Previous != previous || d.Sequence() <= previous {
			t.Fatalf("delivery %d names %d as the one before it, which was %d", d.Sequence(), d.Previous, previous)
		}
		previous = d.Sequence()
		gotSeqs, gotGaps = append(gotSeqs, d.Sequence()), append(gotGaps, d.Kind == mihf.DeliverGap)
		if k < len(stands) && (int(d.Conflated) > stands[k] || (!c.outran && int(d.Conflated) != stands[k])) {
			t.Fatalf("delivery %d stands for %d older ones, want %d", d.Sequence(), d.Conflated, stands[k])
		}
	}
	if d := cmp.Diff(seqs, gotSeqs) + cmp.Diff(gaps, gotGaps); d != "" {
		t.Fatalf("deliveries (-want +got):\n%s", d)
	}
}

// Reads of different cursors may run side by side.
func TestReadsSideBySide(t *testing.T) {
	b := newBench(t, 64, 16)
	cursors := make([]*queue.Cursor, 8)
	for i := range cursors {
		cursors[i] = b.start(&filter{})
	}
	b.kept(20)
	b.detected(20)
	for range 20 {
		b.report(wlan, mihf.ParamRSSI)
	}
	done := make(chan int)
	for _, c := range cursors {
		go func() {
			n, _ := b.log.Read(c, make([]mihf.Delivery, 64))
			done <- n
		}()
	}
	for range cursors {
		if n := <-done; n != 22 { // 20 link_up, a gap, the newest report
			t.Errorf("read %d, want 22", n)
		}
	}
}
