package clients

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"mihf.dev/mihf"
)

// What is open on a client ends with it, and says so.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLife()
		own, cancel := l.During(t.Context())
		defer cancel()
		s := &server{parts: []part{{}}}
		f, err := l.Follow(t.Context(), mihf.SubscribeRequest{}, s.open)
		if err != nil || l.Err() != nil {
			t.Fatal(err, l.Err())
		}
		defer f.Close()
		l.End()
		synctest.Wait()
		l.End()
		if !errors.Is(l.Err(), ErrClientClosed) || !errors.Is(context.Cause(own), ErrClientClosed) || !errors.Is(f.Err(), ErrClientClosed) {
			t.Errorf("ended with %v, %v, %v", l.Err(), context.Cause(own), f.Err())
		}
	})
}

// What ends by itself leaves the client as it is.
func TestLifeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLife()
		defer l.End()
		own, cancel := l.During(t.Context())
		cancel()
		if err := context.Cause(own); !errors.Is(err, context.Canceled) || errors.Is(err, ErrClientClosed) {
			t.Error(err)
		}
		s := &server{parts: []part{{}}}
		f, err := l.Follow(t.Context(), mihf.SubscribeRequest{}, s.open)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := f.Err(); !errors.Is(err, mihf.ErrClosed) || errors.Is(err, ErrClientClosed) {
			t.Error(err)
		}
		if _, err := l.Follow(t.Context(), mihf.SubscribeRequest{}, s.open); !errors.Is(err, mihf.ErrClosed) {
			t.Error(err) // the server has no other part
		}
		if l.Err() != nil {
			t.Error(l.Err())
		}
	})
}

func TestPassedOver(t *testing.T) {
	var p PassedOver
	for _, tc := range []struct {
		over           []uint64 // what those passed over name before them
		previous, want uint64
	}{{nil, 4, 4}, {[]uint64{5, 7}, 8, 5}, {nil, 9, 9}, {[]uint64{0}, 3, 0}} {
		for _, previous := range tc.over {
			p.Add(previous)
		}
		d := mihf.Delivery{Previous: tc.previous}
		if p.Join(&d); d.Previous != tc.want {
			t.Errorf("%+v: follows %d", tc, d.Previous)
		}
	}
}
