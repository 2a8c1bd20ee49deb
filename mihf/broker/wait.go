package broker

import "sync/atomic"

// sleeper lets one goroutine sleep until another wakes it. Who catches it asleep owns what
// it left, until releasing it or letting it rest. None of its methods blocks, but for
// sleep.
type sleeper struct {
	token chan struct{} // room for one: who caught it sends it
	state atomic.Uint32
}

// States of a sleeper.
const (
	awake = iota // or caught
	asleep
	ended // sleeps no more
)

func newSleeper() sleeper { return sleeper{token: make(chan struct{}, 1)} }

// sleep returns when it is released, or at once if it has ended or ready reports that there
// is something to do. Who makes ready true must do so before it wakes.
func (s *sleeper) sleep(ready func() bool) {
	if !s.state.CompareAndSwap(awake, asleep) || (ready() && s.catch()) {
		return
	}
	<-s.token
}

// catch reports whether it was asleep; the caller then releases it or lets it rest.
func (s *sleeper) catch() bool {
	return s.state.Load() == asleep && s.state.CompareAndSwap(asleep, awake)
}

// release wakes it after catch.
func (s *sleeper) release() { s.token <- struct{}{} }

// rest lets it sleep on after catch, as sleep does.
func (s *sleeper) rest(ready func() bool) {
	if !s.state.CompareAndSwap(awake, asleep) {
		s.release()
		return
	}
	if ready() {
		s.wake()
	}
}

func (s *sleeper) wake() {
	if s.catch() {
		s.release()
	}
}

// end wakes it for good.
func (s *sleeper) end() {
	if s.state.Swap(ended) == asleep {
		s.release()
	}
}

func (s *sleeper) over() bool { return s.state.Load() == ended }
