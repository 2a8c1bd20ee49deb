package broker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/mihf"
)

// "When Run ends, frozen flows are thawed to recovery; subscribers and attachments read
// what is left and then get mihf.ErrClosed."
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		a := b.attach(alice)
		b.register(a, quick)
		late := b.subscribe(alice, mihf.SubscribeRequest{Hints: true, Kinds: mihf.Kinds(mihf.LinkGoingDown)})
		waiting := read(t, b.subscribe(alice, mihf.SubscribeRequest{Hints: true, Kinds: mihf.Kinds(mihf.Resync)}), 4)
		var handled []string
		if _, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{Hints: true}, func(d *mihf.Delivery) { handled = append(handled, show(d)) }); err != nil {
			t.Fatal(err)
		}
		b.give(wlan, facts(true))
		b.give(wlan, rssi(-85))
		waiting.want("snapshot at 0", "freeze predicted")
		b.end()
		if err := waiting.ended(); !errors.Is(err, mihf.ErrClosed) {
			t.Errorf("the waiting reader ended with %v", err)
		}
		waiting.want("unfreeze operator")
		if late.Err() != nil || a.Err() != nil {
			t.Errorf("ended before it was read: %v, %v", late.Err(), a.Err())
		}
		for f, want := range map[mihf.Feed][]string{
			late: {"snapshot at 0", "link_going_down", "freeze predicted", "unfreeze operator"},
			a:    {"freeze predicted", "unfreeze operator"},
		} {
			r := read(t, f, 1)
			if err := r.ended(); !errors.Is(err, mihf.ErrClosed) || !errors.Is(f.Err(), mihf.ErrClosed) {
				t.Errorf("ended with %v and %v", err, f.Err())
			}
			<-f.Done()
			last := r.got[len(r.got)-1].Hint
			if !last.Unfreeze.Recovery {
				t.Error("thawed, but not to recovery")
			}
			r.want(want...)
			f.Close()
		}
		if handled[len(handled)-1] != "unfreeze operator" {
			t.Errorf("the handler saw %v", handled)
		}
	})
}

func TestEndedBrokerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		a := b.attach(alice)
		id := b.register(a, quick).Flow
		b.end()
		b.Observe(slept())
		ctx := t.Context()
		_, subscribe := b.Subscribe(ctx, alice, mihf.SubscribeRequest{})
		_, attach := b.Attach(ctx, alice)
		_, snapshot := b.Snapshot(ctx, alice)
		_, parameters := b.Parameters(ctx, alice, wlan)
		_, status := b.Status(ctx, alice)
		_, explain := b.Explain(ctx, alice, mihf.PredictionID{Boot: 1, N: 1})
		_, record := b.Record(ctx, root, func(*mihf.Observation) error { return nil })
		_, register := a.Register(quick)
		for name, err := range map[string]error{
			"Subscribe": subscribe, "Attach": attach, "Snapshot": snapshot, "Parameters": parameters, "Status": status,
			"Explain": explain, "Record": record, "Register": register, "Update": a.Update(mihf.FlowUpdate{Flow: id}),
			"Unregister": a.Unregister(id), "Acknowledge": a.Acknowledge(mihf.Ack{Flow: id}),
			"ConfigureThresholds": b.ConfigureThresholds(ctx, root, wlan, nil),
		} {
			if !errors.Is(err, mihf.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", name, err)
			}
		}
		a.Close()
	})
}

// Who waits for the loop when it ends is told so, and who waits with an observation goes on.
func TestEndWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		release := make(chan struct{})
		if _, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{}, func(*mihf.Delivery) { <-release }); err != nil {
			t.Fatal(err)
		}
		go b.Observe(slept())
		synctest.Wait()
		failed := make(chan error, 8)
		for range 4 {
			go func() { _, err := b.Snapshot(t.Context(), alice); failed <- err }()
			go func() {
				for range 1000 {
					b.Observe(slept())
				}
				failed <- mihf.ErrClosed
			}()
		}
		synctest.Wait()
		ended := make(chan struct{})
		go func() { b.end(); close(ended) }()
		synctest.Wait()
		close(release)
		<-ended
		for range 8 {
			if err := <-failed; err != nil && !errors.Is(err, mihf.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// What became due while the loop was held up is done before newer observations are taken.
func TestOverdueComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		associated := func(s mihf.AssociationState) *mihf.Observation {
			return &mihf.Observation{At: b.Now(), Link: wlan, Kind: mihf.ObsAssociation, Association: &mihf.Association{State: s}}
		}
		b.give(wlan, associated(mihf.AssociationAuthorised))
		r := read(t, b.subscribe(alice, mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.LinkDown, mihf.LinkUp, mihf.ResumedFromSuspend)}), 4)
		cancel, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.ResumedFromSuspend)}, func(*mihf.Delivery) { time.Sleep(time.Second) })
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		r.want("snapshot at 1")
		b.Observe(associated(mihf.AssociationDisconnected))
		go b.Observe(slept()) // Link_Down is due 30 ms later; the handler sleeps longer
		time.Sleep(500 * time.Millisecond)
		b.Observe(associated(mihf.AssociationAuthorised))
		time.Sleep(2 * time.Second)
		r.want("resumed_from_suspend", "link_down", "link_up")
	})
}
