package sim

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"mihf.dev/mihf"
)

// epoch is when a run begins: not zero, which means "never" to the machines.
const epoch = mihf.Time(time.Second)

// maxAtOnce is how many timers may fire without time passing before the run counts as stuck.
const maxAtOnce = 1_000_000

// A Sim is one run: its clock, what is due, and its seed. It is used by one goroutine.
type Sim struct {
	now      mihf.Time
	due      timers
	inserted uint64
	atOnce   int
	seed     uint64
	trace    *Trace
}

// New returns a run at its beginning.
func New(seed uint64) *Sim { return &Sim{now: epoch, seed: seed} }

// Now returns the moment, as the machines count it.
func (s *Sim) Now() mihf.Time { return s.now }

// Elapsed returns the time since the beginning of the run.
func (s *Sim) Elapsed() time.Duration { return s.now.Sub(epoch) }

// Moment returns the moment that is elapsed after the beginning of the run.
func Moment(elapsed time.Duration) mihf.Time { return epoch.Add(elapsed) }

// Since returns how long after the beginning of its run a moment is.
func Since(t mihf.Time) time.Duration { return t.Sub(epoch) }

// Rand returns the stream of random numbers with this name; asked for twice, it begins anew.
func (s *Sim) Rand(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash takes all
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

// At calls f once, when elapsed has passed since the beginning; at once if it has already.
func (s *Sim) At(elapsed time.Duration, f func()) {
	s.Timer(func(mihf.Time) { f() }).Set(Moment(elapsed))
}

// Run lets time pass until elapsed after the beginning. What is due at that moment is done.
func (s *Sim) Run(elapsed time.Duration) {
	end := Moment(elapsed)
	for len(s.due) > 0 && s.due[0].at <= end {
		t := s.due[0]
		if t.at > s.now {
			s.now, s.atOnce = t.at, 0
		}
		if s.atOnce++; s.atOnce > maxAtOnce {
			panic(fmt.Sprintf("sim: the run stands still at %v: a timer is set to the present again and again", s.Elapsed()))
		}
		heap.Pop(&s.due)
		t.fire(s.now)
	}
	s.now = max(s.now, end)
}

// A Timer calls a function at a moment. It can be set again, also from that function.
type Timer struct {
	sim   *Sim
	fire  func(now mihf.Time)
	at    mihf.Time
	order uint64
	index int // in the heap; -1: not set
}

// Timer returns a timer that is not set.
func (s *Sim) Timer(fire func(now mihf.Time)) *Timer {
	t := &Timer{}
	s.initTimer(t, fire)
	return t
}

func (s *Sim) initTimer(t *Timer, fire func(now mihf.Time)) {
	*t = Timer{sim: s, fire: fire, index: -1}
}

// Set sets the timer to a moment, instead of the one before; the zero Time stops it. A moment
// that has passed is the present. Setting it to what it is set to changes nothing.
func (t *Timer) Set(at mihf.Time) {
	s := t.sim
	switch {
	case at.IsZero():
		if t.index >= 0 {
			heap.Remove(&s.due, t.index)
		}
		return
	case t.index >= 0 && t.at == max(at, s.now):
		return
	}
	t.at = max(at, s.now)
	s.inserted++
	t.order = s.inserted
	if t.index >= 0 {
		heap.Fix(&s.due, t.index)
		return
	}
	heap.Push(&s.due, t)
}

// timers is a heap in the order of time, then of setting.
type timers []*Timer

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timers) Push(x any) {
	t := x.(*Timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	old := *h
	t := old[len(old)-1]
	t.index = -1
	*h = old[:len(old)-1]
	return t
}
