package queue_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
)

// twin is the deliberately dumb version of a log: an unbounded list, and the rules.
type twin struct {
	list   []twinItem
	sizes  queue.Sizes
	series int     // bound
	known  []known // series, the one silent longest first
	newest map[int]int
}

type twinItem struct {
	seq    uint64
	hint   bool
	event  mihf.Event
	linkOf mihf.LinkID
	born   int // place in the list where its series began
}

// known is a series that is remembered. One that was forgotten begins anew.
type known struct {
	series
	born int
}

type series struct {
	link mihf.LinkID
	kind mihf.Kind
	p    mihf.Parameter
}

func (w *twin) append(it twinItem) {
	if it.admission() == mihf.NewestOnly {
		k := known{series{it.event.Link, it.event.Kind, it.event.Report.Parameter}, len(w.list)}
		if i := slices.IndexFunc(w.known, func(x known) bool { return x.series == k.series }); i >= 0 {
			k = w.known[i]
			w.known = slices.Delete(w.known, i, i+1)
		}
		w.known = append(w.known, k)
		w.known = w.known[max(0, len(w.known)-w.series):]
		it.born, w.newest[k.born] = k.born, len(w.list)
	}
	w.list = append(w.list, it)
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
	left := w.sizes
	for i := len(w.list) - 1; i >= 0; i-- {
		room := &left.Loose
		switch it := &w.list[i]; {
		case it.hint:
			room = &left.Hints
		case it.admission() == mihf.NeverDrop:
			room = &left.Kept
		}
		out[i] = *room > 0
		*room--
	}
	return out
}

// newer returns whether a newer item of the same series exists.
func (w *twin) newer(i int) bool { return w.newest[w.list[i].born] != i }

// forgotten returns whether the series of an item is.
func (w *twin) forgotten(i int) bool {
	return !slices.ContainsFunc(w.known, func(k known) bool { return k.born == w.list[i].born })
}

// twinCursor remembers which items it has dealt with.
type twinCursor struct {
	filter *filter
	next   int // of the list
	looked int // where the ring began when it last outran the cursor
	done   map[int]bool
	last   uint64
	lost   mihf.Gap
	stood  map[int]int // items of a series, by its beginning, not delivered since one was
	outran bool
	bound  int // where it ends in the list; 0: nowhere
	real   queue.Cursor
}

// end returns where the cursor ends in the list as it is.
func (c *twinCursor) end(w *twin) int {
	if c.bound > 0 {
		return c.bound
	}
	return len(w.list)
}

// newer returns whether the cursor delivers a newer item of the same series.
func (c *twinCursor) newer(w *twin, i int) bool {
	return w.newer(i) && w.newest[w.list[i].born] < c.end(w)
}

// catchUp notes what a cursor misses that the ring outran: the newest of those series
// that are forgotten by then.
func (w *twin) catchUp(c *twinCursor, here []bool) {
	oldest := 0
	for oldest < len(w.list) && (!here[oldest] || w.list[oldest].admission() == mihf.NeverDrop) {
		oldest++
	}
	outran := false
	for i := max(c.next, c.looked); i < min(oldest, c.end(w)); i++ {
		outran = outran || w.list[i].admission() != mihf.NeverDrop
	}
	if !outran {
		return
	}
	c.looked = oldest
	for i := c.next; i < min(oldest, c.end(w)); i++ {
		if w.list[i].admission() == mihf.NewestOnly && !w.newer(i) && w.forgotten(i) {
			c.done[i] = true
		}
	}
}

// due returns the deliveries that a read of all would give, as sequence numbers with the
// gap marked, and the upper bounds of what each stands for.
func (w *twin) read(c *twinCursor, room int) (seqs []uint64, gaps []bool, stands []int, slow bool) {
	here := w.here()
	w.catchUp(c, here)
	for i := c.next; i < c.end(w); i++ {
		it := &w.list[i]
		switch adm := it.admission(); {
		case here[i] || c.done[i] || (it.hint && c.filter.noHints):
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
			} else if w.newest[it.born] >= c.end(w) {
				c.done[i] = true // replaced by one that is not for this cursor
			}
		}
	}
	for i := c.next; i < c.end(w) && len(seqs) < room; i++ {
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
			if c.newer(w, i) {
				c.stood[it.born]++
				continue
			}
			n = c.stood[it.born]
			c.stood[it.born] = 0
		}
		seqs, gaps, stands = append(seqs, it.seq), append(gaps, false), append(stands, n)
		c.last = it.seq
	}
	if c.lost.To != 0 && c.next == c.end(w) && len(seqs) < room {
		seqs, gaps, stands = append(seqs, c.lost.To), append(gaps, true), append(stands, 0)
		c.last, c.lost = c.lost.To, mihf.Gap{}
	}
	return seqs, gaps, stands, false
}

// resumable reports whether nothing that is never dropped and followed after is gone.
func (w *twin) resumable(f *filter, after, last uint64) bool {
	here := w.here()
	for i := range w.list {
		it := &w.list[i]
		if it.seq > after && it.admission() == mihf.NeverDrop && !here[i] && (!it.hint || !f.noHints) {
			return false
		}
	}
	return after <= last
}

func (w *twin) resume(f *filter, after uint64) *twinCursor {
	c := &twinCursor{filter: f, done: map[int]bool{}, stood: map[int]int{}, last: after}
	for c.next < len(w.list) && w.list[c.next].seq <= after {
		c.next++
	}
	w.catchUp(c, w.here())
	return c
}

// The log and every cursor do what the twin does, whatever the sequence of calls.
func TestLikeTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SampledFrom([]int{1, 2, 4, 8, 16, 128, 256})
		w := twin{
			sizes:  queue.Sizes{Kept: sizes.Draw(t, "kept"), Hints: sizes.Draw(t, "hints"), Loose: sizes.Draw(t, "loose")},
			series: rapid.SampledFrom([]int{1, 3, 8, 1 << 14}).Draw(t, "series"), newest: map[int]int{},
		}
		m := &model{log: queue.NewLogOf(w.sizes, w.series), twin: w}
		t.Repeat(map[string]func(*rapid.T){
			"append": m.append, "burst": m.burst, "hint": m.hint, "hints": m.hints, "start": m.start, "resume": m.resume, "bound": m.bound, "read": m.read, "read on": m.read,
		})
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

func drawEvent(t *rapid.T) mihf.Event {
	kinds := []mihf.Kind{mihf.LinkUp, mihf.LinkParametersReport, mihf.LinkDetected, mihf.SensorConditionChanged, mihf.LinkDown}
	e := mihf.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Link: rapid.SampledFrom(links).Draw(t, "link")}
	if e.Kind == mihf.LinkParametersReport {
		e.Report.Parameter = mihf.Parameter(rapid.IntRange(0, 3).Draw(t, "parameter"))
	}
	return e
}

func (m *model) append(t *rapid.T) { m.publish(drawEvent(t), m.next(t)) }

// burst publishes a short pattern over and over.
func (m *model) burst(t *rapid.T) {
	pattern := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 6).Draw(t, "pattern")
	for i := range rapid.SampledFrom([]int{5, 20, 70, 140}).Draw(t, "length") {
		m.seq++
		m.publish(pattern[i%len(pattern)], m.seq)
	}
}

func (m *model) publish(e mihf.Event, seq uint64) {
	e.Sequence = seq
	m.log.AppendEvent(&e)
	m.twin.append(twinItem{seq: seq, event: e})
}

func (m *model) hint(t *rapid.T) { m.tell(rapid.SampledFrom(links).Draw(t, "link"), m.next(t)) }

// hints tells many flows at once.
func (m *model) hints(t *rapid.T) {
	for range rapid.SampledFrom([]int{5, 20, 140}).Draw(t, "hints") {
		m.seq++
		m.tell(wlan, m.seq)
	}
}

func (m *model) tell(link mihf.LinkID, seq uint64) {
	m.log.AppendHint(&mihf.Hint{Link: link, Sequence: seq})
	m.twin.append(twinItem{seq: seq, hint: true, linkOf: link})
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
	if ok := m.twin.resumable(f, after, m.log.Last()); ok != got {
		t.Fatalf("resume behind %d: got %v, want %v", after, got, ok)
	}
	if got {
		c := m.twin.resume(f, after)
		c.real = cursor
		m.cursors = append(m.cursors, c)
	}
}

// bound ends a cursor behind what there is.
func (m *model) bound(t *rapid.T) {
	if len(m.cursors) == 0 || len(m.twin.list) == 0 {
		t.Skip("no cursor, or nothing to end behind")
	}
	c := rapid.SampledFrom(m.cursors).Draw(t, "cursor")
	if c.bound == 0 {
		c.bound = len(m.twin.list)
		m.log.Bound(&c.real)
	}
}

// over checks that a cursor which said io.EOF has nothing more to say.
func (m *model) over(t *rapid.T, c *twinCursor) {
	seqs, _, _, slow := m.twin.read(c, 1000)
	if n, err := m.log.Read(&c.real, make([]mihf.Delivery, 1)); len(seqs) > 0 || slow || n != 0 || !errors.Is(err, io.EOF) || m.log.Overrun(&c.real) {
		t.Fatalf("behind the end: %d, %v; the twin has %d, slow %v", n, err, len(seqs), slow)
	}
}

func (m *model) read(t *rapid.T) {
	if len(m.cursors) == 0 {
		t.Skip("no cursor")
	}
	i := rapid.IntRange(0, len(m.cursors)-1).Draw(t, "cursor")
	c, buf := m.cursors[i], make([]mihf.Delivery, rapid.SampledFrom([]int{1, 2, 3, 8, 300}).Draw(t, "room"))
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
	if errors.Is(err, io.EOF) {
		m.over(t, c)
		m.cursors = append(m.cursors[:i], m.cursors[i+1:]...)
	} else if c.bound > 0 && n < len(buf) {
		t.Fatalf("all is read up to the bound: %v, want io.EOF", err)
	}
	if n < len(buf) && c.real.Skipped() > 0 {
		t.Fatalf("all is read, and %d series are counted still", c.real.Skipped())
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
