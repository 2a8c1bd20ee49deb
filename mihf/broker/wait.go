package broker

import "sync/atomic"

// sleeper lets one goroutine sleep until another wakes it. Waking is cheap where nobody
// sleeps, and never blocks.
type sleeper struct {
	asleep atomic.Bool
	token  chan struct{} // room for one: who turned asleep off sends it
}

func newSleeper() sleeper { return sleeper{token: make(chan struct{}, 1)} }

// sleep returns after the next wake, or at once if ready reports that there is something
// to do. Who makes ready true must do so before it wakes.
func (s *sleeper) sleep(ready func() bool) {
	s.asleep.Store(true)
	if ready() && s.asleep.CompareAndSwap(true, false) {
		return
	}
	<-s.token
}

func (s *sleeper) wake() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.token <- struct{}{}
	}
}
