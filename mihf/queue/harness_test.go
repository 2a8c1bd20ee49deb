package queue_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	wwan = mihf.LinkID("wwan-00000002")
)

// filter passes all kinds but those refused, and the links named, if any.
type filter struct {
	refused mihf.KindSet
	links   []mihf.LinkID
	noHints bool
}

func (f *filter) Whole() mihf.KindSet {
	if len(f.links) > 0 {
		return 0
	}
	return ^f.refused
}

func (f *filter) Kind(k mihf.Kind) bool { return !f.refused.Has(k) }

func (f *filter) Hints() bool { return !f.noHints }

func (f *filter) Event(e *mihf.Event) bool {
	return f.Kind(e.Kind) && (len(f.links) == 0 || e.Link == "" || slices.Contains(f.links, e.Link))
}

func (f *filter) Hint(h *mihf.Hint) bool {
	return !f.noHints && (len(f.links) == 0 || slices.Contains(f.links, h.Link))
}

// bench is a log with verbs. A test reads as a script.
type bench struct {
	*testing.T
	log *queue.Log
	seq uint64
}

func newBench(t *testing.T, kept, loose int) *bench {
	t.Helper()
	return &bench{T: t, log: queue.NewLog(queue.Sizes{Kept: kept, Hints: kept, Loose: loose})}
}

func (b *bench) event(e mihf.Event) {
	b.seq++
	e.Sequence = b.seq
	b.log.AppendEvent(&e)
}

func (b *bench) kept(n int) {
	for range n {
		b.event(mihf.Event{Kind: mihf.LinkUp, Link: wlan})
	}
}

func (b *bench) report(link mihf.LinkID, p mihf.Parameter) {
	b.event(mihf.Event{Kind: mihf.LinkParametersReport, Link: link, Report: mihf.Report{Parameter: p}})
}

func (b *bench) detected(n int) {
	for range n {
		b.event(mihf.Event{Kind: mihf.LinkDetected, Link: wlan})
	}
}

func (b *bench) hint(link mihf.LinkID) {
	b.seq++
	b.log.AppendHint(&mihf.Hint{Sequence: b.seq, Link: link, Kind: mihf.HintFreeze})
}

func (b *bench) start(f *filter) *queue.Cursor {
	c := b.log.Start(f)
	return &c
}

func (b *bench) resume(f *filter, after uint64) *queue.Cursor {
	b.Helper()
	c, ok := b.log.Resume(f, after)
	if !ok {
		b.Fatalf("cannot resume behind %d", after)
	}
	return &c
}

// want reads until all is read and compares with deliveries as show writes them.
func (b *bench) want(c *queue.Cursor, want ...string) {
	b.Helper()
	var got []string
	buf := make([]mihf.Delivery, 3)
	for {
		n, err := b.log.Read(c, buf)
		if err != nil && !errors.Is(err, io.EOF) {
			b.Fatalf("read: %v", err)
		}
		for i := range buf[:n] {
			got = append(got, show(&buf[i]))
		}
		if n < len(buf) {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		b.Fatalf("deliveries (-want +got):\n%s", d)
	}
}

// show writes "previous>sequence kind", with the conflated count or the gap's start.
func show(d *mihf.Delivery) string {
	s := fmt.Sprintf("%d>%d ", d.Previous, d.Sequence())
	switch d.Kind {
	case mihf.DeliverEvent:
		s += d.Event.Kind.String()
	case mihf.DeliverHint:
		s += "hint"
	case mihf.DeliverGap:
		s += fmt.Sprintf("gap from %d: %s", d.Gap.From, d.Gap.Reason)
	case mihf.DeliverSnapshot:
		s += "snapshot"
	}
	if d.Conflated > 0 {
		s += fmt.Sprintf(" +%d", d.Conflated)
	}
	return s
}
