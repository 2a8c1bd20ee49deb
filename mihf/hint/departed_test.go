package hint_test

import (
	"fmt"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// "The account outlives a registration": who comes back under its id is not frozen before
// its back-off is over, and the same id of another owner starts anew.
func TestAccountOutlivesRegistration(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	pr := h.predict(soon())
	h.want("freeze predicted 3s p50 200ms #1")
	h.end(pr, mihf.OutcomeRollback)
	h.want("unfreeze rollback #1")
	before := h.status()
	if before.BackoffUntil == 0 {
		t.Fatal("no back-off after a needless freeze")
	}
	h.p.Remove(flow)
	h.add(mihf.FlowSpec{})
	if got := h.status(); got.BackoffUntil != before.BackoffUntil || got.Needless != before.Needless {
		t.Errorf("came back with %v, %v; want %v, %v", got.BackoffUntil, got.Needless, before.BackoffUntil, before.Needless)
	}
	h.predict(soon())
	h.want()
	h.p.Remove(flow)
	h.p.Add(mihf.FlowSpec{ID: flow}, 1001, wlan, 0)
	if got := h.status(); got.BackoffUntil != 0 {
		t.Error("another owner inherits the account")
	}
}

// A freeze that a registration ends in the middle of is charged to the end of its lease; one
// whose loss has come is not.
func TestFreezeIsChargedWhereItsFlowLeaves(t *testing.T) {
	for lost, want := range map[bool]time.Duration{false: 4500 * time.Millisecond, true: 0} {
		h := newPolicy(t)
		h.add(mihf.FlowSpec{})
		h.predict(soon())
		h.advance(1500 * time.Millisecond)
		h.want("freeze predicted 3s p50 200ms #1", "freeze predicted 3s p50 1ms #1")
		if lost {
			h.p.Lost(h.now, wlan, false, &h.out)
		}
		h.p.Remove(flow)
		h.advance(time.Minute)
		h.add(mihf.FlowSpec{})
		if got := h.status().Needless; got != want {
			t.Errorf("lost %v: charged %v, want %v", lost, got, want)
		}
	}
}

// What is kept of flows that are gone is bounded; the oldest goes first.
func TestAccountsAreBounded(t *testing.T) {
	h := newPolicy(t)
	id := func(i int) mihf.FlowID { return mihf.FlowID(fmt.Sprint("f", i)) }
	const flows = 1100 // more than are kept
	for i := range flows {
		h.add(mihf.FlowSpec{ID: id(i)})
		h.end(h.predict(soon()), mihf.OutcomeRollback)
		h.out.List = nil
		h.p.Remove(id(i))
	}
	for i, kept := range map[int]bool{0: false, flows - 1: true} {
		h.add(mihf.FlowSpec{ID: id(i)})
		var s mihf.FlowStatus
		h.p.Status(h.now, id(i), &s)
		if got := s.BackoffUntil != 0; got != kept {
			t.Errorf("account of flow %d kept: %v, want %v", i, got, kept)
		}
	}
}
