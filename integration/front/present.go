package front

import (
	"errors"
	"io"

	"mihf.dev/mihf"
)

// A request with Present ends behind what was published before it began: after a snapshot,
// or after what followed a sequence.
func testPresent(w *bed) {
	c := w.dial(w.T, alice)
	all := w.follow(c, mihf.SubscribeRequest{})
	all.snapshot()
	for n := 1; n <= 3; n++ {
		w.mark(n)
	}
	if d := all.next(); !isMark(d, 1) {
		w.Fatalf("%+v, want mark 1", d)
	}
	now := w.follow(c, mihf.SubscribeRequest{Present: true})
	since := w.follow(c, mihf.SubscribeRequest{After: all.last, Boot: boot, Present: true})
	w.mark(4) // is for neither
	if s := now.snapshot(); s.Sequence != 3 {
		w.Errorf("snapshot at %d, want 3", s.Sequence)
	}
	now.ended()
	for n := 2; n <= 3; n++ {
		if d := since.next(); !isMark(d, n) {
			w.Fatalf("%+v, want mark %d", d, n)
		}
	}
	since.ended()
	for n := 2; n <= 4; n++ { // who did not ask for it goes on
		if d := all.next(); !isMark(d, n) {
			w.Fatalf("%+v, want mark %d", d, n)
		}
	}
}

// ended checks that the feed has all that it asked for.
func (r *reader) ended() {
	r.w.Helper()
	if n, err := r.feed.Next(r.buf[:]); n != 0 || len(r.left) > 0 || !errors.Is(err, io.EOF) {
		r.w.Fatalf("%d deliveries, %v; want io.EOF", n+len(r.left), err)
	}
	<-r.feed.Done()
	if err := r.feed.Err(); !errors.Is(err, io.EOF) {
		r.w.Errorf("the feed ended with %v, want io.EOF", err)
	}
}
