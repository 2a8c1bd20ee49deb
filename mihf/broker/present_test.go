package broker_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"mihf.dev/mihf"
)

// SubscribeRequest.Present: "ends with io.EOF behind what was published before it began".
func TestPresent(t *testing.T) {
	for name, c := range map[string]struct {
		req  mihf.SubscribeRequest
		want []string
	}{
		"snapshot":       {mihf.SubscribeRequest{}, []string{"snapshot at 20"}},
		"replay":         {mihf.SubscribeRequest{Boot: 1, After: 18}, []string{"resumed_from_suspend", "resumed_from_suspend"}},
		"nothing more":   {mihf.SubscribeRequest{Boot: 1, After: 20}, nil},
		"other boot":     {mihf.SubscribeRequest{Boot: 9, After: 18}, []string{"gap 18 to 20: the broker was restarted", "snapshot at 20"}},
		"nothing passes": {mihf.SubscribeRequest{Boot: 1, After: 10, Kinds: mihf.Kinds(mihf.LinkUp)}, nil},
	} {
		for _, room := range []int{1, 2, 8} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := start(t)
					for range 20 {
						b.give("", slept())
					}
					c.req.Present = true
					f := b.subscribe(alice, c.req)
					b.give("", slept()) // is not for this one
					r := read(t, f, room)
					r.want(c.want...)
					if err := r.ended(); !errors.Is(err, io.EOF) || !errors.Is(f.Err(), io.EOF) {
						t.Errorf("ended with %v and %v, want io.EOF", err, f.Err())
					}
					<-f.Done()
					if s, _ := b.Status(t.Context(), root); s.Subscribers != 0 {
						t.Errorf("%d subscribers, want none", s.Subscribers)
					}
				})
			})
		}
	}
}

// What it asked for is there, so the end of the broker takes nothing from it.
func TestPresentWhenBrokerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		f := b.subscribe(alice, mihf.SubscribeRequest{Present: true})
		b.end()
		r := read(t, f, 1)
		r.want("snapshot at 0")
		if err := r.ended(); !errors.Is(err, io.EOF) {
			t.Errorf("ended with %v, want io.EOF", err)
		}
	})
}
