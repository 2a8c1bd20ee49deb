package wifi

import (
	"context"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A moment is an event and when a client had it.
type moment struct {
	mihf.Event
	had mihf.Time
}

// A witness is a client over one front, and the events that it was sent.
type witness struct {
	t      *testing.T
	name   string
	client clients.Client

	mu   sync.Mutex // guards all following fields
	from uint64     // the sequence of the first snapshot; 0: not yet there
	seen []moment
	gaps []mihf.Gap
}

// follow takes what the daemon sends until the test ends, and returns when the first snapshot
// is there.
func (w *witness) follow() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	feed, err := w.client.Follow(ctx, mihf.SubscribeRequest{})
	if err != nil {
		w.t.Fatalf("%s: %v", w.name, err)
	}
	first, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]mihf.Delivery, 16)
		begun := false
		for {
			n, err := feed.Next(buf)
			now := clock.Boot().Now()
			for i := range buf[:n] {
				w.take(now, &buf[i])
				if !begun && buf[i].Kind == mihf.DeliverSnapshot {
					begun = true
					close(first)
				}
			}
			if err != nil {
				return // the test ends
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); feed.Close(); <-done })
	taken(w.t, w.name+": a snapshot", first)
}

func (w *witness) take(now mihf.Time, d *mihf.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch d.Kind {
	case mihf.DeliverEvent:
		w.seen = append(w.seen, moment{d.Event, now})
	case mihf.DeliverGap:
		w.gaps = append(w.gaps, d.Gap)
	case mihf.DeliverSnapshot:
		w.from = max(w.from, d.Snapshot.Sequence)
	default: // hints go to their flows
	}
}

// of returns the events of a kind on a link that came so far; "" is any link.
func (w *witness) of(link mihf.LinkID, k mihf.Kind) (list []moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.seen {
		if e.Kind == k && (link == "" || e.Link == link) {
			list = append(list, e)
		}
	}
	return list
}

// lasting returns the events behind a sequence that no front may drop.
func (w *witness) lasting(from uint64) (list []mihf.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.seen {
		if e.Sequence > from && e.Kind.Admission() == mihf.NeverDrop {
			list = append(list, e.Event)
		}
	}
	return list
}

// await waits until each client has an event of a kind on the station's link, and returns each
// one's first.
func (d *daemon) await(k mihf.Kind) []moment {
	d.t.Helper()
	return d.awaitNth(k, 1)
}

// awaitNth waits for the nth event of a kind.
func (d *daemon) awaitNth(k mihf.Kind, n int) (list []moment) {
	d.t.Helper()
	for _, w := range d.fronts {
		d.eventually(w.name+": "+k.String(), func() bool { return len(w.of(d.link, k)) >= n })
		list = append(list, w.of(d.link, k)[n-1])
	}
	return list
}

// never fails if a client had an event of one of the kinds on the station's link.
func (d *daemon) never(kinds ...mihf.Kind) {
	d.t.Helper()
	for _, w := range d.fronts {
		for _, k := range kinds {
			if list := w.of(d.link, k); len(list) > 0 {
				d.t.Errorf("%s: %v: %+v", w.name, k, list[0].Event)
			}
		}
	}
}

// same compares events of two clients: each counts their moments from their ages.
var same = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b mihf.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < time.Second }),
}

// agree ends a scenario: every client had the same events, field by field, and missed none.
func (d *daemon) agree() {
	var from, to uint64
	for _, w := range d.fronts {
		w.mu.Lock()
		from = max(from, w.from)
		w.mu.Unlock()
		for _, e := range w.lasting(0) {
			to = max(to, e.Sequence)
		}
	}
	for _, w := range d.fronts {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if list := w.lasting(0); len(list) == 0 || list[len(list)-1].Sequence >= to {
				break
			}
		}
		if len(w.gaps) > 0 {
			d.t.Errorf("%s: gaps %+v", w.name, w.gaps)
		}
		if diff := cmp.Diff(d.fronts[0].lasting(from), w.lasting(from), same); diff != "" {
			d.t.Errorf("%s has other events than %s (-%s +%s):\n%s", w.name, d.fronts[0].name, d.fronts[0].name, w.name, diff)
		}
	}
	if d.t.Failed() {
		d.fronts[0].log()
	}
}

func (w *witness) log() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.seen {
		if e.Kind != mihf.LinkParametersReport {
			w.t.Logf("%v %s %v", e.At, e.Link, e.Kind)
		}
	}
}
