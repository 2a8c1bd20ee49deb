package hint_test

import (
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
)

// "Every Freeze has a lease, is renewed at half of it while the reason stands, and never
// reaches past the flow's MaxFreeze."
func TestLease(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{LateFreeze: true, MaxFreeze: 7 * time.Second})
	h.p.Lost(h.now, wlan, false, &h.out)
	h.want("freeze link_down 3s")
	for range 2 {
		h.advance(1499 * time.Millisecond)
		h.want()
		h.advance(time.Millisecond)
		h.want("freeze link_down 3s")
	}
	h.advance(1500 * time.Millisecond)
	h.want("freeze link_down 2.5s") // 4.5 s are over
	h.advance(1250 * time.Millisecond)
	h.want() // the last lease reaches the end
	h.advance(1250 * time.Millisecond)
	h.want("unfreeze max_freeze recovery")
	h.advance(time.Hour)
	if h.p.Next() != 0 {
		t.Errorf("next at %v with nothing frozen", h.p.Next())
	}
}

func TestMaxFreeze(t *testing.T) {
	for spec, want := range map[time.Duration]time.Duration{0: 60 * time.Second, 10 * time.Second: 10 * time.Second, time.Hour: 60 * time.Second, time.Nanosecond: time.Nanosecond} {
		h := newPolicy(t)
		h.add(mihf.FlowSpec{LateFreeze: true, MaxFreeze: spec})
		h.p.Lost(h.now, wlan, false, &h.out)
		start := h.now
		for h.status().Frozen {
			h.advance(max(h.p.Next().Sub(h.now), 0))
			last := h.out.List[len(h.out.List)-1]
			if end := last.At.Add(last.Freeze.Lease); last.Kind == mihf.HintFreeze && end > start.Add(want) {
				t.Fatalf("max_freeze %v: leased to %v", spec, end.Sub(start))
			}
		}
		if got := h.now.Sub(start); got != want {
			t.Errorf("max_freeze %v: frozen for %v", spec, got)
		}
		h.out.List = nil
	}
}

// A renewal of a predicted freeze says how far the loss is now; none of it once it came.
func TestRenewalFigures(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	pr := h.predict(soon())
	h.want("freeze predicted 3s p50 200ms #1")
	pr.P10, pr.P50, pr.P90 = time.Second, 4*time.Second, 6*time.Second
	h.p.Revised(h.now, wlan, pr)
	h.advance(1500 * time.Millisecond)
	if f := h.out.List[0].Freeze; f.P10 != time.Millisecond || f.P90 != 4500*time.Millisecond {
		t.Errorf("%+v", f)
	}
	h.want("freeze predicted 3s p50 2.5s #1")
	h.p.Lost(h.now, wlan, false, &h.out)
	h.advance(1500 * time.Millisecond)
	h.want("freeze predicted 3s #1")
	h.usable()
	h.want("unfreeze path_usable lci #1")
}

// "Every Freeze is followed by exactly one Unfreeze or Abandon", whatever ends it.
func TestExactlyOneEnd(t *testing.T) {
	predicted := "freeze predicted 3s p50 200ms #1"
	for _, c := range []struct {
		name string
		spec mihf.FlowSpec
		do   func(h *policyTest, pr *mihf.Prediction)
		want []string
	}{
		{"rollback", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) { h.end(pr, mihf.OutcomeRollback) }, []string{"unfreeze rollback #1"}},
		{"expired", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) { h.end(pr, mihf.OutcomeExpired) }, []string{"unfreeze expired #1"}},
		{"suspend", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			pr.Outcome = mihf.OutcomeExpired
			h.p.Ended(h.now, pr, true, &h.out)
		}, []string{"unfreeze expired recovery #1"}},
		{"loss, then rollback, then usable", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.p.Lost(h.now, wlan, false, &h.out)
			h.end(pr, mihf.OutcomeRollback)
			h.usable()
			h.usable()
		}, []string{"unfreeze path_usable lci #1"}},
		{"usable before the loss is no reason", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.usable()
			h.end(pr, mihf.OutcomeRollback)
		}, []string{"unfreeze rollback #1"}},
		{"handover", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.p.HandedOver(h.now, wlan, pr.ID, &h.out)
			h.p.Usable(h.now, flow, mihf.UnfreezeHandoverComplete, lci, &h.out)
			h.usable()
		}, []string{"unfreeze handover_complete lci #1"}},
		{"removed", mihf.FlowSpec{}, func(h *policyTest, _ *mihf.Prediction) {
			h.p.Lost(h.now, wlan, true, &h.out)
			h.p.Removed(h.now, wlan, &h.out)
			h.p.Removed(h.now, wlan, &h.out)
		}, []string{"abandon link_removed #1"}},
		{"address gone, and no abandon taken", mihf.FlowSpec{Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze), MaxFreeze: 3 * time.Second}, func(h *policyTest, _ *mihf.Prediction) {
			h.p.Lost(h.now, wlan, false, &h.out)
			h.p.Abandon(h.now, flow, mihf.AbandonAddressGone, &h.out)
			h.advance(5 * time.Second)
		}, []string{"unfreeze max_freeze recovery #1"}},
		{"switch", mihf.FlowSpec{Continuity: mihf.ContinuityRebinds}, func(h *policyTest, pr *mihf.Prediction) {
			h.p.Switch(h.now, flow, wwan, lci, &h.out)
			h.end(pr, mihf.OutcomeRollback)
			h.usable()
		}, []string{"switch wwan-00000002", "unfreeze path_usable lci #1"}},
		{"switch that it does not take", mihf.FlowSpec{Continuity: mihf.ContinuityRebinds, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)}, func(h *policyTest, _ *mihf.Prediction) {
			h.p.Switch(h.now, flow, wwan, lci, &h.out)
		}, []string{"unfreeze path_usable lci #1"}},
		{"moved, and its new path is late", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.p.Move(h.now, flow, wwan)
			h.end(pr, mihf.OutcomeRollback)
			h.advance(time.Second)
			h.usable()
		}, []string{"unfreeze path_usable lci #1"}},
		{"operator", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.p.ThawAll(h.now, mihf.Unfreeze{Cause: mihf.UnfreezeOperator, Recovery: true}, &h.out)
			h.end(pr, mihf.OutcomeRollback)
		}, []string{"unfreeze operator recovery #1"}},
		{"unregistered", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.p.Remove(flow)
			h.p.Remove(flow)
			h.end(pr, mihf.OutcomeRollback)
			h.usable()
			h.p.Lost(h.now, wlan, false, &h.out)
		}, nil},
		{"another prediction ends", mihf.FlowSpec{}, func(h *policyTest, pr *mihf.Prediction) {
			h.end(&mihf.Prediction{ID: mihf.PredictionID{Boot: 7, N: 99}}, mihf.OutcomeRollback)
			h.want()
			h.end(pr, mihf.OutcomeExpired)
		}, []string{"unfreeze expired #1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newPolicy(t)
			h.add(c.spec)
			pr := h.predict(soon())
			h.want(predicted)
			c.do(h, pr)
			h.want(c.want...)
			h.advance(time.Hour)
			h.want()
		})
	}
}

// "Flows that did not ask for a late Freeze get nothing at a loss that was not foreseen."
func TestLateFreezeOnlyWhereAsked(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.add(mihf.FlowSpec{ID: "late", LateFreeze: true})
	h.add(mihf.FlowSpec{ID: "none", LateFreeze: true, Continuity: mihf.ContinuityNone})
	h.add(mihf.FlowSpec{ID: "unwilling", LateFreeze: true, Hints: mihf.Hints(mihf.HintCharacteristics)})
	h.p.Lost(h.now, wlan, false, &h.out)
	h.want("late: freeze link_down 3s")
	h.p.Lost(h.now, wlan, false, &h.out)
	h.want()
	h.p.Remove("late")
	h.usable()
}

// A late freeze is not held back by the budget or a back-off: it is no forecast.
func TestLateFreezeInBackoff(t *testing.T) {
	h := newPolicy(t, func(c *hint.Config) { c.BudgetShare = 0 })
	h.add(mihf.FlowSpec{LateFreeze: true})
	h.predict(soon())
	h.want()
	h.p.Lost(h.now, wlan, false, &h.out)
	h.want("freeze link_down 3s")
	h.usable()
	h.want("unfreeze path_usable lci")
	if s := h.status(); s.Needless != 0 || s.BackoffUntil != 0 {
		t.Errorf("booked: %+v", s)
	}
}

// "Freeze goes only to flows whose address survives or that rebind; the others get Abandon
// when the link is lost or, without continuity, handed over."
func TestContinuity(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{ID: "none", Continuity: mihf.ContinuityNone})
	h.add(mihf.FlowSpec{ID: "same"})
	h.add(mihf.FlowSpec{ID: "rebinds", Continuity: mihf.ContinuityRebinds})
	pr := h.predict(soon())
	h.want("same: freeze predicted 3s p50 200ms #1", "rebinds: freeze predicted 3s p50 200ms #1")
	h.p.Down(h.now, wlan, &h.out)
	h.want("none: abandon no_continuity")
	h.p.Down(h.now, wlan, &h.out)
	h.p.Removed(h.now, wlan, &h.out)
	h.want("same: abandon link_removed #1")
	h.p.Usable(h.now, "rebinds", mihf.UnfreezePathUsable, nil, &h.out)
	h.want("rebinds: unfreeze path_usable #1")
	// What was given up is not frozen, until its path is usable again.
	h.advance(time.Minute)
	h.predict(soon())
	h.want("rebinds: freeze predicted 3s p50 200ms #2")
	h.p.Usable(h.now, "none", mihf.UnfreezePathUsable, nil, &h.out)
	h.p.Usable(h.now, "same", mihf.UnfreezePathUsable, nil, &h.out)
	h.p.HandedOver(h.now, wlan, pr.ID, &h.out)
	h.want("none: abandon no_continuity")
	h.predict(soon())
	h.want("same: freeze predicted 3s p50 200ms #3")
	h.p.ThawAll(h.now, mihf.Unfreeze{}, &h.out)
	h.out.List = nil
}

// "Hints of one flow have rising epochs", also those of an id that comes back.
func TestEpochsRise(t *testing.T) {
	h := newPolicy(t)
	h.p.Add(mihf.FlowSpec{ID: flow, LateFreeze: true}, 1000, wlan, 40)
	h.p.Lost(h.now, wlan, false, &h.out)
	h.advance(10 * time.Second)
	h.usable()
	epoch := uint64(40)
	for i := range h.out.List {
		x := &h.out.List[i]
		if x.Epoch != epoch+1 || x.Owner != 1000 || x.Link != wlan || x.Boot != 7 {
			t.Fatalf("%+v after epoch %d", x, epoch)
		}
		epoch = x.Epoch
	}
	h.out.List = nil
}

// A prediction's back-off doubles until one comes true.
func TestBackoff(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	pause := h.cfg.Backoff
	for range 4 {
		pr := h.predict(soon())
		h.want("freeze predicted 3s p50 200ms #" + string(rune('0'+h.n)))
		h.advance(100 * time.Millisecond)
		h.end(pr, mihf.OutcomeRollback)
		h.out.List = nil
		h.advance(pause - time.Millisecond)
		if h.p.Due(h.now, wlan, soon(), chance) != 0 {
			t.Fatalf("frozen again before %v were over", pause)
		}
		h.advance(time.Millisecond)
		pause *= 2
	}
	h.predict(soon())
	h.p.Lost(h.now, wlan, false, &h.out)
	h.usable()
	h.out.List = nil
	pr := h.predict(soon()) // no pause after it came true
	h.end(pr, mihf.OutcomeRollback)
	h.out.List = nil
	if s := h.status(); s.BackoffUntil != h.now.Add(h.cfg.Backoff) {
		t.Errorf("back-off until %v", s.BackoffUntil)
	}
}

// "at most BudgetShare of any BudgetWindow, the freeze in progress included. A freeze is not
// begun for which the budget is too short to reach the loss."
func TestBudget(t *testing.T) {
	h := newPolicy(t, func(c *hint.Config) { c.Backoff, c.MaxBackoff = 0, 0 })
	h.add(mihf.FlowSpec{})
	h.predict(soon())
	h.out.List = nil
	h.advance(11999 * time.Millisecond)
	if h.status().Needless != 0 || !h.status().Frozen {
		t.Error("booked or thawed before the end")
	}
	h.out.List = nil
	h.advance(time.Millisecond)
	h.want("unfreeze budget #1")
	if got := h.status().Needless; got != 12*time.Second {
		t.Errorf("booked %v", got)
	}
	h.advance(10*time.Minute - 12*time.Second)
	h.predict(soon())
	h.want() // the first of the 12 s leave the window only now
	h.advance(100 * time.Millisecond)
	h.predict(soon())
	h.want() // 100 ms do not reach a loss that is 155 ms away
	h.advance(time.Second)
	h.predict(soon())
	h.want("freeze predicted 3s p50 200ms #4")
	h.advance(1100 * time.Millisecond)
	h.want("unfreeze budget #4")
}

// A suspend, or a broker that was stopped for long, books no more than the lease: the flow
// has thawed alone.
func TestSuspendBooksTheLeaseOnly(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.predict(soon())
	h.want("freeze predicted 3s p50 200ms #1")
	h.now = h.now.Add(8 * time.Hour)
	h.p.Advance(h.now, &h.out)
	h.want("unfreeze max_freeze recovery #1")
	if got := h.status().Needless; got != 3*time.Second {
		t.Errorf("booked %v", got)
	}
}

// A prediction that a suspend ended is no false alarm: its time is booked once, and no
// back-off begins.
func TestSuspendIsNoFalseAlarm(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	pr := h.predict(soon())
	h.advance(time.Second)
	pr.Outcome = mihf.OutcomeExpired
	h.p.Ended(h.now, pr, true, &h.out)
	h.want("freeze predicted 3s p50 200ms #1", "unfreeze expired recovery #1")
	if s := h.status(); s.Needless != time.Second || s.BackoffUntil != 0 {
		t.Errorf("needless %v, back-off until %v", s.Needless, s.BackoffUntil)
	}
}

// To leave the link proves no prediction true: the back-off goes on doubling.
func TestMoveKeepsBackoff(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.end(h.predict(soon()), mihf.OutcomeRollback)
	h.advance(h.cfg.Backoff)
	h.predict(soon())
	h.p.Move(h.now, flow, wwan)
	h.usable()
	h.p.Move(h.now, flow, wlan)
	h.end(h.predict(soon()), mihf.OutcomeRollback)
	h.out.List = nil
	if got := h.status().BackoffUntil.Sub(h.now); got != 2*h.cfg.Backoff {
		t.Errorf("back-off of %v after the second false alarm, want %v", got, 2*h.cfg.Backoff)
	}
}

// The time before a flow leaves the link is booked, for the prediction may yet prove wrong.
func TestMoveBooks(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.predict(soon())
	h.advance(time.Second)
	h.p.Move(h.now, flow, wwan)
	h.p.Move(h.now, flow, wwan)
	h.advance(30 * time.Second)
	h.out.List = nil
	h.usable()
	h.want("unfreeze path_usable lci #1")
	if s := h.status(); s.Needless != time.Second || s.BackoffUntil != 0 || s.Link != wwan {
		t.Errorf("%+v", s)
	}
}

func TestPrepareOnce(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{Continuity: mihf.ContinuityRebinds})
	h.add(mihf.FlowSpec{ID: "same"})
	pr := &mihf.Prediction{ID: mihf.PredictionID{Boot: 7, N: 1}, P10: time.Second}
	for range 3 {
		h.p.Prepare(h.now, flow, wwan, pr, &h.out)
		h.p.Prepare(h.now, "same", wwan, pr, &h.out)
		h.p.Prepare(h.now, "unknown", wwan, pr, &h.out)
	}
	h.want("prepare wwan-00000002 in 1s #1")
}

func TestCharacteristics(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.add(mihf.FlowSpec{ID: "deaf", Hints: mihf.Hints(mihf.HintAbandon)})
	for _, id := range []mihf.FlowID{flow, "deaf", "unknown"} {
		h.p.Characteristics(h.now, id, lci, &h.out)
		h.p.Characteristics(h.now, id, nil, &h.out)
	}
	h.want("characteristics")
}
