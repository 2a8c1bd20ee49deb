package broker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func never() bool { return false }

func TestSleeper(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*sleeper)
		ready  func() bool
		after  func(*sleeper)
	}{
		"woken":              {ready: never, after: (*sleeper).wake},
		"ready":              {ready: func() bool { return true }},
		"ended before":       {before: (*sleeper).end, ready: never},
		"ended":              {ready: never, after: (*sleeper).end},
		"caught, released":   {ready: never, after: func(s *sleeper) { s.catch(); s.release() }},
		"caught, ended":      {ready: never, after: func(s *sleeper) { s.catch(); s.end(); s.rest(never) }},
		"caught, then ready": {ready: never, after: func(s *sleeper) { s.catch(); s.rest(func() bool { return true }) }},
		"rested, woken":      {ready: never, after: func(s *sleeper) { s.catch(); s.rest(never); s.wake() }},
		"woken while awake":  {before: (*sleeper).wake, ready: never, after: (*sleeper).wake},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSleeper()
				if c.before != nil {
					c.before(&s)
				}
				returned := make(chan struct{})
				go func() { s.sleep(c.ready); close(returned) }()
				synctest.Wait()
				if c.after != nil {
					select {
					case <-returned:
						t.Fatal("it did not sleep")
					default:
					}
					c.after(&s)
				}
				<-returned // or the bubble deadlocks
			})
		})
	}
}

// Whoever catches it is alone, and no work that was announced is slept over.
func TestSleeperUnderLoad(t *testing.T) {
	s := newSleeper()
	var work, done atomic.Int64
	var busy atomic.Int32
	const all = 20_000
	do := func() {
		if busy.Add(1) != 1 {
			t.Error("two had the turn")
		}
		done.Store(work.Load())
		busy.Add(-1)
	}
	waiting := func() bool { return work.Load() != done.Load() }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for done.Load() != all {
			do()
			if done.Load() == all {
				return
			}
			s.sleep(func() bool { return waiting() || done.Load() == all })
		}
	}()
	for range 4 {
		go func() {
			for range all / 4 {
				work.Add(1)
				if s.catch() {
					do()
					s.rest(func() bool { return waiting() || done.Load() == all })
				}
			}
		}()
	}
	<-ended
}
