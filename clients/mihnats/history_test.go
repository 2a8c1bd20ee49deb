package mihnats

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/natsfront"
)

func TestHistory(t *testing.T) {
	w := newBed(t)
	b, _ := w.broker(1, node)
	c := w.inside(w.embedded(b, &natsfront.History{Directory: t.TempDir(), MaxBytes: 8 << 20, MaxAge: time.Hour}))
	read := func(since time.Time) (marks []time.Duration) {
		for p, err := range c.History(w.ctx, since) {
			w.must(err)
			if p.Event.Kind != mihf.ResumedFromSuspend {
				continue
			}
			if age := c.clock.Now().Sub(p.Event.At); age < 0 || age > patient || time.Since(p.At) > patient {
				t.Errorf("event %v old, kept at %v", age, p.At)
			}
			marks = append(marks, p.Event.Gap)
		}
		return marks
	}
	began := time.Now()
	w.until("the stream is there", func() bool {
		mark(b, 7000)
		for _, err := range c.History(w.ctx, began) {
			return err == nil
		}
		return false
	})
	time.Sleep(2 * time.Millisecond) // so that a moment lies between
	then := time.Now()
	const many = historyBatch + 10
	for n := range many {
		mark(b, n+1)
	}
	var marks []time.Duration
	w.until("all are kept", func() bool { marks = read(then); return len(marks) >= many })
	for i, m := range marks[len(marks)-many:] {
		if m != time.Duration(i+1) {
			t.Fatalf("mark %d in place %d", m, i)
		}
	}
	for _, err := range c.History(w.ctx, began) {
		w.must(err)
		break // who has enough gets no more
	}
}

func TestNoHistory(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, nil)
	b, _ := w.broker(1, node)
	w.front(b, url)
	for _, err := range w.dial(url, Options{Node: node}).History(w.ctx, time.Now()) {
		if !errors.Is(err, mihf.ErrNotFound) || !strings.Contains(err.Error(), "history") {
			t.Error(err)
		}
		return
	}
	t.Error("no history, and no error")
}
