package broker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

func TestSnapshotThenFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.give(wlan, facts(true))
		r := read(t, b.subscribe(alice, mihf.SubscribeRequest{}), 4)
		got := r.all()
		if len(got) != 1 || got[0].Kind != mihf.DeliverSnapshot || got[0].Previous != 0 || !got[0].Snapshot.Links[0].Up {
			t.Fatalf("first came %+v, want a snapshot with the link up", got)
		}
		last := chained(t, 0, got)
		b.give(wlan, facts(false))
		time.Sleep(time.Second)
		got = r.all()
		chained(t, last, got)
		if got[0].Event.Sequence != last+1 {
			t.Errorf("the first event after snapshot %d is %d", last, got[0].Event.Sequence)
		}
	})
}

func TestFilterAndPrevious(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		r := read(t, b.subscribe(alice, mihf.SubscribeRequest{Links: []mihf.LinkID{wwan}, Kinds: mihf.Kinds(mihf.LinkUp, mihf.LinkDown, mihf.Resync)}), 1)
		b.give(wlan, facts(true))
		b.give(wwan, facts(true))
		b.give(wlan, facts(false))
		b.give("", &mihf.Observation{Kind: mihf.ObsResync, Sensor: "rtnl"})
		b.give(wwan, facts(false))
		time.Sleep(time.Second)
		got := r.all()
		chained(t, 0, got)
		r.got = got
		r.want("snapshot at 0", "link_up", "resync", "link_down")
	})
}

// "resuming, exactly what followed the sequence that it names"
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		kinds := mihf.Kinds(mihf.ResumedFromSuspend)
		whole := read(t, b.subscribe(alice, mihf.SubscribeRequest{Kinds: kinds}), 4)
		for range 20 {
			b.give("", slept())
		}
		all := whole.all()[1:]
		for i := range all {
			after := all[i].Event.Sequence
			r := read(t, b.subscribe(alice, mihf.SubscribeRequest{Boot: b.Boot(), After: after, Kinds: kinds}), 3)
			got := r.all()
			if chained(t, after, got); len(got) != len(all)-i-1 {
				t.Errorf("resumed behind %d: %d deliveries, want %d", after, len(got), len(all)-i-1)
			}
			r.feed.Close()
		}
	})
}

// "Where it can not resume, a gap comes before the snapshot."
func TestGapThenSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		req mihf.SubscribeRequest
		gap string
	}{
		"this boot":  {mihf.SubscribeRequest{After: 7}, "gap 7 to 40: the replay ring does not reach back so far"},
		"other boot": {mihf.SubscribeRequest{After: 7, Boot: 9}, "gap 7 to 40: the broker was restarted"},
		"newer one":  {mihf.SubscribeRequest{After: 99, Boot: 9}, "gap 40 to 40: the broker was restarted"},
		"future":     {mihf.SubscribeRequest{After: 41, Boot: 1}, "gap 40 to 40: sequence 41 is not reached yet"},
		"ring":       {mihf.SubscribeRequest{After: 23, Boot: 1}, "gap 23 to 40: the replay ring does not reach back so far"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, func(c *broker.Config) { c.Replay = 16 })
				for range 40 {
					b.give("", slept())
				}
				r := read(t, b.subscribe(alice, c.req), 8)
				b.give("", slept())
				got := r.all()
				chained(t, c.req.After, got)
				r.got = got
				r.want(c.gap, "snapshot at 40", "resumed_from_suspend")
			})
		})
	}
}

// "a subscriber that cannot take them is closed with the reason slow": also while its
// reader is busy elsewhere; the others go on.
func TestSlowIsClosedOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.Replay = 16 })
		stuck, idle := b.subscribe(alice, mihf.SubscribeRequest{}), b.subscribe(alice, mihf.SubscribeRequest{})
		good := read(t, b.subscribe(alice, mihf.SubscribeRequest{}), 2)
		idle.Close()
		for range 16 {
			b.give("", slept())
		}
		if stuck.Err() != nil {
			t.Fatalf("ended with %v while all fits in the ring", stuck.Err())
		}
		for range 16 {
			b.give("", slept())
		}
		<-stuck.Done()
		buf := make([]mihf.Delivery, 4)
		if n, err := stuck.Next(buf); n != 0 || !errors.Is(err, mihf.ErrSlow) || !errors.Is(stuck.Err(), mihf.ErrSlow) {
			t.Errorf("Next gave %d, %v; want ErrSlow", n, err)
		}
		if n := len(good.all()); n != 33 {
			t.Errorf("the good reader has %d deliveries, want 33", n)
		}
		if n := b.counter("slow_subscribers"); n != 1 {
			t.Errorf("%d counted as slow, want 1", n)
		}
		if s, _ := b.Status(t.Context(), root); s.Subscribers != 1 {
			t.Errorf("%d subscribers, want 1", s.Subscribers)
		}
	})
}

// A reader that comes back too late sees ErrSlow itself.
func TestSlowReaderSeesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.Replay = 64 })
		f := b.subscribe(alice, mihf.SubscribeRequest{})
		buf := make([]mihf.Delivery, 4)
		if _, err := f.Next(buf); err != nil {
			t.Fatal(err)
		}
		for range 65 {
			b.give("", slept())
		}
		if _, err := f.Next(buf); !errors.Is(err, mihf.ErrSlow) {
			t.Errorf("Next: %v, want ErrSlow", err)
		}
		<-f.Done()
		if n := b.counter("slow_subscribers"); n != 1 {
			t.Errorf("%d counted as slow, want 1", n)
		}
	})
}

func TestDetectionsLostAreStated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.Reports = 4 })
		f := b.subscribe(alice, mihf.SubscribeRequest{})
		for range 6 {
			b.give(wlan, heard())
		}
		r := read(t, f, 8)
		got := r.all()
		chained(t, 0, got)
		r.got = got
		r.want("snapshot at 0", "gap 0 to 2: up to 2 link_detected dropped", "link_detected", "link_detected", "link_detected", "link_detected")
	})
}

func TestEndsOnce(t *testing.T) {
	why := errors.New("had enough")
	for name, c := range map[string]struct {
		end  func(mihf.Feed, context.CancelCauseFunc)
		want error
	}{
		"close":   {func(f mihf.Feed, _ context.CancelCauseFunc) { f.Close(); f.Close() }, mihf.ErrClosed},
		"context": {func(_ mihf.Feed, cancel context.CancelCauseFunc) { cancel(why) }, why},
		"many": {func(f mihf.Feed, _ context.CancelCauseFunc) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(f.Close)
			}
			wg.Wait()
		}, mihf.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				sub, err := b.Subscribe(ctx, alice, mihf.SubscribeRequest{})
				if err != nil {
					t.Fatal(err)
				}
				at, err := b.Attach(ctx, alice)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range []mihf.Feed{sub, at} {
					r := read(t, f, 4)
					r.all()
					c.end(f, cancel)
					if err := r.ended(); !errors.Is(err, c.want) || !errors.Is(f.Err(), c.want) {
						t.Errorf("ended with %v and %v, want %v", err, f.Err(), c.want)
					}
					<-f.Done()
					f.Close()
				}
				if s, _ := b.Status(t.Context(), root); s.Subscribers != 0 {
					t.Errorf("%d subscribers, want none", s.Subscribers)
				}
			})
		})
	}
}

// A context that ends while Subscribe waits for the loop ends the call.
func TestContextEndsWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		release := make(chan struct{})
		busy := make(chan struct{})
		cancel, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{}, func(*mihf.Delivery) { close(busy); <-release })
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		go b.Observe(slept())
		<-busy
		why := errors.New("too long")
		ctx, stop := context.WithCancelCause(t.Context())
		failed := make(chan error, 3)
		go func() { _, err := b.Subscribe(ctx, alice, mihf.SubscribeRequest{}); failed <- err }()
		go func() { _, err := b.Attach(ctx, alice); failed <- err }()
		go func() { _, err := b.Snapshot(ctx, alice); failed <- err }()
		synctest.Wait()
		stop(why)
		for range 3 {
			if err := <-failed; !errors.Is(err, why) {
				t.Errorf("got %v, want the context's reason", err)
			}
		}
		close(release)
		if s, _ := b.Status(t.Context(), root); s.Subscribers != 0 {
			t.Errorf("%d subscribers, want none", s.Subscribers)
		}
	})
}

func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		for _, f := range []mihf.Feed{b.subscribe(alice, mihf.SubscribeRequest{}), b.attach(alice)} {
			if _, err := f.Next(nil); !errors.Is(err, mihf.ErrInvalid) {
				t.Errorf("Next without room: %v, want ErrInvalid", err)
			}
		}
	})
}

// "The number of subscriptions, attachments and flows is bounded": and ends make room.
func TestLimitAndRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.MaxSubscribers = 2 })
		f, a := b.subscribe(alice, mihf.SubscribeRequest{}), b.attach(alice)
		_, err1 := b.Subscribe(t.Context(), alice, mihf.SubscribeRequest{})
		_, err2 := b.Attach(t.Context(), alice)
		if !errors.Is(err1, mihf.ErrLimit) || !errors.Is(err2, mihf.ErrLimit) {
			t.Errorf("got %v and %v, want ErrLimit", err1, err2)
		}
		if n := b.counter("refused_requests"); n != 2 {
			t.Errorf("%d refused, want 2", n)
		}
		for range 10 { // ended ones are forgotten without any event
			f.Close()
			f = b.subscribe(alice, mihf.SubscribeRequest{})
			a.Close()
			a = b.attach(alice)
		}
	})
}
