package front

import (
	"net/netip"
	"sync"
	"time"

	"mihf.dev/mihf"
)

var spec = mihf.FlowSpec{
	Link: wlan, RTT: 100 * time.Millisecond, LateFreeze: true,
	Tuples: []mihf.Endpoints{{Protocol: 33, Local: netip.MustParseAddrPort("192.0.2.2:5000"), Remote: netip.MustParseAddrPort("198.51.100.1:443")}},
}

func testRegistration(w *bed) {
	c := w.dial(w.T, alice)
	w.see(facts(true))
	at := w.attach(c)
	reg, err := at.Register(spec)
	w.must(err)
	if len(reg.Flow) != 26 || reg.Boot != boot || reg.Lease <= 0 || reg.Lead <= 0 || !reg.Hints.Has(mihf.HintFreeze) || reg.Frozen {
		w.Errorf("registration %+v", reg)
	}
	f := w.flow(c, reg.Flow)
	if f == nil {
		w.Fatal("the flow is not in its owner's snapshot")
	}
	if f.Spec.RTT != spec.RTT || len(f.Spec.Tuples) != 1 || f.Spec.Tuples[0] != spec.Tuples[0] {
		w.Errorf("flow %+v", f.Spec)
	}
	w.must(at.Update(mihf.FlowUpdate{Flow: reg.Flow, RTT: mihf.Some(300 * time.Millisecond)}))
	if g := w.flow(c, reg.Flow); g.Spec.RTT != 300*time.Millisecond || g.Lead <= f.Lead {
		w.Errorf("after the update: RTT %v, lead %v (before: %v)", g.Spec.RTT, g.Lead, f.Lead)
	}
	w.must(at.Unregister(reg.Flow))
	if w.flow(c, reg.Flow) != nil {
		w.Error("the flow is still there")
	}
	wantErr(w, "unregister twice", at.Unregister(reg.Flow), mihf.ErrNotFound)
	wantErr(w, "update", at.Update(mihf.FlowUpdate{Flow: reg.Flow, RTT: mihf.Some(time.Second)}), mihf.ErrNotFound)
}

// A refused request says why, and the attachment goes on.
func testRegistrationRefused(w *bed) {
	at := w.attach(w.dial(w.T, alice))
	for what, bad := range map[string]mihf.FlowSpec{
		"negative RTT":    {Link: wlan, RTT: -time.Second},
		"huge lead":       {Link: wlan, Lead: 1000 * time.Hour},
		"too many tuples": {Link: wlan, Tuples: make([]mihf.Endpoints, mihf.MaxTuples+1)},
		"flow id":         {ID: "not an id", Link: wlan},
		"link id":         {Link: "wlan0"},
	} {
		_, err := at.Register(bad)
		wantErr(w, what, err, mihf.ErrInvalid)
	}
	if _, err := at.Register(spec); err != nil {
		w.Errorf("a good one afterwards: %v", err)
	}
}

// The end of an attachment ends the registration of its flows.
func testUnregisterOnClose(w *bed) {
	c := w.dial(w.T, alice)
	at := w.attach(c)
	reg, err := at.Register(spec)
	w.must(err)
	at.Close()
	at.Close()
	w.until("the flow is gone", func() bool { return w.flow(c, reg.Flow) == nil })
	if _, err := at.Next(make([]mihf.Delivery, 1)); err == nil {
		w.Error("a closed attachment must not deliver")
	}
}

// A client that lost its connection comes back with the same id, also before the broker
// found the old connection dead; another user's id is refused.
func testComeBack(w *bed) {
	c := w.dial(w.T, alice)
	reg, err := w.attach(c).Register(spec)
	w.must(err)
	mine := spec
	mine.ID = reg.Flow
	again, err := w.attach(c).Register(mine)
	w.must(err)
	if again.Flow != reg.Flow {
		w.Errorf("came back as %s, want %s", again.Flow, reg.Flow)
	}
	_, err = w.attach(w.dial(w.T, bob)).Register(mine)
	wantErr(w, "another user's flow", err, mihf.ErrExists)
}

// A Freeze follows its announcement, names its prediction and carries its lease.
func testFreezeAndLease(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{Hints: true})
	r.snapshot()
	w.see(facts(true))
	at := w.attach(c)
	reg, err := at.Register(spec)
	w.must(err)
	w.see(rssi(-60))
	w.see(rssi(-85))
	h := w.hint(at, mihf.HintFreeze)
	going := r.event(mihf.LinkGoingDown)
	if h.Flow != reg.Flow || h.Link != wlan || h.Boot != boot || h.Epoch == 0 || h.Prediction != going.Prediction.ID || h.Sequence <= going.Sequence {
		w.Errorf("freeze %+v after %v (%d)", h, going.Prediction.ID, going.Sequence)
	}
	if z := h.Freeze; z.Lease != reg.Lease || z.Reason != mihf.FreezePredicted || z.P10 <= 0 || z.P10 > z.P50 || z.P50 > z.P90 {
		w.Errorf("freeze %+v, want the lease %v and quantiles", h.Freeze, reg.Lease)
	}
	if age := w.broker.Now().Sub(h.At); age < 0 || age > patient {
		w.Errorf("the hint is %v old", age)
	}
	for d := r.next(); ; d = r.next() {
		if d.Kind == mihf.DeliverHint && d.Hint.Kind == mihf.HintFreeze {
			if d.Hint.Sequence != h.Sequence || d.Hint.Freeze != h.Freeze {
				w.Errorf("the subscriber saw %+v", d.Hint)
			}
			break
		}
	}
	w.must(at.Acknowledge(mihf.Ack{Flow: reg.Flow, Epoch: h.Epoch, Result: mihf.AckApplied, Held: time.Millisecond}))
	w.until("the acknowledgement is known", func() bool {
		f := w.flow(c, reg.Flow)
		return f.Acknowledged >= h.Epoch && f.LastAck == mihf.AckApplied && f.Frozen
	})
	w.see(rssi(-50))
	if u := w.hint(at, mihf.HintUnfreeze); u.Epoch <= h.Epoch || u.Unfreeze.Cause != mihf.UnfreezeRollback || u.Unfreeze.Recovery {
		w.Errorf("unfreeze %+v", u)
	}
	roll := r.event(mihf.LinkEventRollback)
	if roll.Prediction.ID != going.Prediction.ID || roll.Prediction.Outcome != mihf.OutcomeRollback {
		w.Errorf("rollback of %+v", roll.Prediction)
	}
}

// A flow that registers when the end is already announced is frozen in time.
func testLateRegistration(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{})
	r.snapshot()
	w.see(facts(true))
	w.see(rssi(-60))
	w.see(rssi(-85))
	going := r.event(mihf.LinkGoingDown)
	at := w.attach(c)
	_, err := at.Register(spec)
	w.must(err)
	w.see(rssi(-85))
	if h := w.hint(at, mihf.HintFreeze); h.Prediction.Boot != going.Prediction.ID.Boot || h.Freeze.Lease <= 0 {
		w.Errorf("freeze %+v", h)
	}
}

// A disconnect that nothing announced freezes who asked for it, without a prediction; the
// path that is usable again thaws.
func testLateFreeze(w *bed) {
	at := w.attach(w.dial(w.T, alice))
	w.see(facts(true))
	_, err := at.Register(spec)
	w.must(err)
	w.see(facts(false))
	h := w.hint(at, mihf.HintFreeze)
	if h.Freeze.Reason != mihf.FreezeLinkDown || !h.Prediction.IsZero() || h.Freeze.P50 != 0 {
		w.Errorf("freeze %+v of %v", h.Freeze, h.Prediction)
	}
	w.see(facts(true))
	if u := w.hint(at, mihf.HintUnfreeze); u.Unfreeze.Cause != mihf.UnfreezePathUsable {
		w.Errorf("unfreeze %+v", u.Unfreeze)
	}
}

// Requests are answered while another goroutine waits for hints, and hints come while
// requests are made.
func testRegisterWhileReading(w *bed) {
	at := w.attach(w.dial(w.T, alice))
	w.see(facts(true))
	const flows = 50
	var reading sync.WaitGroup
	frozen := map[mihf.FlowID]bool{}
	reading.Go(func() {
		for len(frozen) < flows {
			buf := make([]mihf.Delivery, 2)
			n, err := at.Next(buf)
			if err != nil {
				w.Errorf("%d frozen: %v", len(frozen), err)
				return
			}
			for _, d := range buf[:n] {
				if d.Hint.Kind == mihf.HintFreeze {
					frozen[d.Hint.Flow] = true
				}
			}
		}
	})
	var asking sync.WaitGroup
	for range 5 {
		asking.Go(func() {
			for range flows / 5 {
				reg, err := at.Register(spec)
				if err == nil {
					err = at.Update(mihf.FlowUpdate{Flow: reg.Flow, RTT: mihf.Some(90 * time.Millisecond)})
				}
				if err != nil {
					w.Errorf("register: %v", err)
				}
			}
		})
	}
	asking.Wait()
	w.see(facts(false))
	reading.Wait()
}

// A broker that ends thaws its flows to recovery and says so before it is gone.
func testBrokerEnds(w *bed) {
	c := w.dial(w.T, alice)
	w.see(facts(true))
	at := w.attach(c)
	_, err := at.Register(spec)
	w.must(err)
	w.see(facts(false))
	w.hint(at, mihf.HintFreeze)
	w.stop()
	if u := w.hint(at, mihf.HintUnfreeze); !u.Unfreeze.Recovery {
		w.Errorf("unfreeze %+v, want recovery", u.Unfreeze)
	}
	_, err = at.Next(make([]mihf.Delivery, 1))
	wantClosed(w, err)
}

// Who wants hints only gets no events, and is told of none that is missing.
func testHintsOnly(w *bed) {
	c := w.dial(w.T, alice)
	w.see(facts(true))
	at := w.attach(c)
	_, err := at.Register(spec)
	w.must(err)
	r := w.follow(c, mihf.SubscribeRequest{HintsOnly: true})
	r.snapshot()
	w.mark(1)
	w.see(facts(false)) // freezes
	w.mark(2)
	w.see(facts(true)) // thaws
	for _, want := range []mihf.HintKind{mihf.HintFreeze, mihf.HintUnfreeze} {
		d := r.next() // which checks the order
		for d.Kind == mihf.DeliverHint && d.Hint.Kind != want {
			d = r.next()
		}
		if d.Kind != mihf.DeliverHint {
			w.Fatalf("%+v, want hints only", d)
		}
	}
	feed, err := c.Follow(w.ctx, mihf.SubscribeRequest{HintsOnly: true, Kinds: mihf.Kinds(mihf.LinkUp)})
	wantErr(w, "kinds of event among hints only", err, mihf.ErrInvalid)
	if err == nil {
		feed.Close()
	}
}
