package natsfront

import (
	"fmt"
	"sync"
	"testing"

	"mihf.dev/mihf"
)

func from(name, op string) job { return job{who: mihf.Caller{Name: name}, op: op} }

// "One caller's requests wait for no more than one of each other caller's", and are done in
// order.
func TestCallersTakeTurns(t *testing.T) {
	q := newQueue(100)
	for i := range 3 {
		for _, name := range []string{"a", "a", "b"} {
			if !q.add(from(name, fmt.Sprint(i))) {
				t.Fatal("no room")
			}
		}
	}
	var got []string
	for range 9 {
		l, j, ok := q.take()
		if !ok {
			t.Fatal("closed")
		}
		got = append(got, j.who.Name+j.op)
		q.done(l)
	}
	if want := "[a0 b0 a0 b1 a1 b2 a1 a2 a2]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if len(q.callers) != 0 || q.waiting != 0 {
		t.Errorf("%d callers and %d requests are kept", len(q.callers), q.waiting)
	}
}

// Requests of one caller are done one at a time, whatever the workers.
func TestOneAtATime(t *testing.T) {
	q := newQueue(1000)
	busy := map[string]bool{}
	done := 0
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			q.serve(func(j *job) {
				mu.Lock()
				if busy[j.who.Name] {
					t.Errorf("two requests of %s at once", j.who.Name)
				}
				busy[j.who.Name] = true
				mu.Unlock()
				mu.Lock()
				defer mu.Unlock()
				busy[j.who.Name] = false
				if done++; done == 300 {
					q.close()
				}
			})
		})
	}
	for i := range 300 {
		if !q.add(from(string('a'+rune(i%3)), "")) {
			t.Error("no room")
		}
	}
	workers.Wait()
}

// "What one has waiting is bounded, and so are all together."
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(2)
	for i, want := range []bool{true, true, false} {
		if q.add(from("a", "")) != want {
			t.Errorf("request %d: taken is not %v", i, want)
		}
	}
	if !q.add(from("b", "")) {
		t.Error("another caller has no room")
	}
	taken := 0
	for i := range 2 * maxWaiting {
		if q.add(from(fmt.Sprint(i), "")) {
			taken++
		}
	}
	if q.waiting != maxWaiting || taken != maxWaiting-3 {
		t.Errorf("%d wait, at most %d", q.waiting, maxWaiting)
	}
	q.close()
	if q.add(from("c", "")) {
		t.Error("a closed queue takes a request")
	}
	if _, _, ok := q.take(); ok {
		t.Error("a closed queue gives a request")
	}
}

// "what one has waiting is bounded, and so are all together", also in octets.
func TestOctetsAreBounded(t *testing.T) {
	const size = 64 << 10
	q := newQueue(1000)
	fill := func(name string) (n int) {
		for q.add(job{who: mihf.Caller{Name: name}, size: size}) {
			n++
		}
		return n
	}
	for i := range maxOctets / maxOctetsOfCaller {
		if n := fill(fmt.Sprint("caller ", i)); n != maxOctetsOfCaller/size {
			t.Errorf("caller %d has %d requests waiting", i, n)
		}
	}
	if n := fill("one more"); n != 0 {
		t.Errorf("%d requests beyond what all may have", n)
	}
	l, _, _ := q.take()
	q.done(l)
	if n := fill(l.name); n != 1 {
		t.Errorf("%d requests where one was done", n)
	}
}
