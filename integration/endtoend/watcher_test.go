package endtoend

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mihf.dev/clients"
	"mihf.dev/mihf"
)

// watcher collects what a client that follows everything is sent.
type watcher struct {
	t *testing.T

	mu   sync.Mutex // guards the following
	news *sync.Cond
	seen []mihf.Delivery
	dead error
	next int // what the test has not looked at
}

// watch follows until the test ends. It returns when the first snapshot is there.
func watch(t *testing.T, client clients.Client) *watcher {
	t.Helper()
	w := &watcher{t: t}
	w.news = sync.NewCond(&w.mu)
	ctx, cancel := context.WithCancel(context.Background())
	feed, err := client.Follow(ctx, mihf.SubscribeRequest{Hints: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]mihf.Delivery, 16)
		for {
			n, err := feed.Next(buf)
			w.mu.Lock()
			w.seen = append(w.seen, buf[:n]...)
			w.dead = err
			w.mu.Unlock()
			w.news.Broadcast()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); feed.Close(); <-done })
	w.want("the first snapshot", func(d *mihf.Delivery) bool { return d.Kind == mihf.DeliverSnapshot })
	return w
}

// want waits for the next delivery that ok accepts; later calls look behind it.
func (w *watcher) want(what string, ok func(*mihf.Delivery) bool) *mihf.Delivery {
	w.t.Helper()
	deadline, stop := wakeAt(w.news)
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.next
	for {
		for ; w.next < len(w.seen); w.next++ {
			if d := &w.seen[w.next]; ok(d) {
				w.next++
				return d
			}
		}
		if w.dead != nil || !time.Now().Before(deadline) {
			w.t.Fatalf("%s did not come (%v); after the last one came:\n%s", what, w.dead, w.list(from))
		}
		w.news.Wait()
	}
}

// event waits for the next event of a kind that ok accepts; nil: any.
func (w *watcher) event(k mihf.Kind, ok func(*mihf.Event) bool) *mihf.Event {
	w.t.Helper()
	d := w.want(k.String(), func(d *mihf.Delivery) bool {
		return d.Kind == mihf.DeliverEvent && d.Event.Kind == k && (ok == nil || ok(&d.Event))
	})
	return &d.Event
}

func (w *watcher) hint(k mihf.HintKind) *mihf.Hint {
	w.t.Helper()
	d := w.want("hint "+k.String(), func(d *mihf.Delivery) bool { return d.Kind == mihf.DeliverHint && d.Hint.Kind == k })
	return &d.Hint
}

// count returns how many events of a kind came so far.
func (w *watcher) count(k mihf.Kind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for i := range w.seen {
		if w.seen[i].Kind == mihf.DeliverEvent && w.seen[i].Event.Kind == k {
			n++
		}
	}
	return n
}

func (w *watcher) list(from int) string {
	var s strings.Builder
	for i := from; i < len(w.seen); i++ {
		switch d := &w.seen[i]; d.Kind {
		case mihf.DeliverEvent:
			fmt.Fprintf(&s, "  %d %v %v\n", d.Event.Sequence, d.Event.Kind, d.Event.Link)
		case mihf.DeliverHint:
			fmt.Fprintf(&s, "  %d hint %v %v\n", d.Hint.Sequence, d.Hint.Kind, d.Hint.Flow)
		default:
			fmt.Fprintf(&s, "  %d delivery %d\n", d.Sequence(), d.Kind)
		}
	}
	return s.String()
}

// wakeAt wakes who waits for news once patience is at its end.
func wakeAt(news *sync.Cond) (deadline time.Time, stop func() bool) {
	deadline = time.Now().Add(patience)
	timer := time.AfterFunc(patience, func() {
		news.L.Lock() // or it could come between a look at the time and the wait
		defer news.L.Unlock()
		news.Broadcast()
	})
	return deadline, timer.Stop
}

// await asks until there is no error.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
