package tally_test

import (
	"testing"
	"time"

	"mihf.dev/cmd/mihctl/internal/tally"
	"mihf.dev/mihf"
)

const wlan, wwan = mihf.LinkID("wifi-00000001"), mihf.LinkID("wwan-00000001")

func at(s float64) mihf.Time { return mihf.Time(time.Hour).Add(time.Duration(s * 1e9)) }

// run is a run as the tally sees it.
type run struct{ tally.Tally }

func (r *run) event(s float64, k mihf.Kind, link mihf.LinkID, n uint64, o mihf.Outcome) {
	p := mihf.Prediction{Outcome: o, OpenedAt: at(s)}
	if n > 0 {
		p.ID = mihf.PredictionID{Boot: 1, N: n}
	}
	r.Event(&mihf.Event{Kind: k, Link: link, At: at(s), Prediction: p})
}

func (r *run) hint(s float64, k mihf.HintKind, flow mihf.FlowID, link mihf.LinkID, c mihf.UnfreezeCause) {
	r.Hint(at(s), &mihf.Hint{Kind: k, Flow: flow, Link: link, Unfreeze: mihf.Unfreeze{Cause: c}})
}

func (r *run) truth(s float64, kind string, link mihf.LinkID) {
	r.Truth(&mihf.Observation{At: at(s), Link: link, Truth: &mihf.Truth{Kind: kind}})
}

func TestTally(t *testing.T) {
	r := &run{}
	t.Log("# a rollback with a needless freeze, whose lease is renewed once")
	r.event(1, mihf.LinkGoingDown, wlan, 1, 0)
	r.hint(1, mihf.HintFreeze, "a", wlan, 0)
	r.hint(2, mihf.HintFreeze, "a", wlan, 0)
	r.event(3, mihf.LinkEventRollback, wlan, 1, mihf.OutcomeRollback)
	r.hint(3, mihf.HintUnfreeze, "a", wlan, mihf.UnfreezeRollback)
	t.Log("# a false alarm without a freeze; blind times are not judged")
	r.event(4, mihf.LinkGoingDown, wwan, 2, 0)
	r.event(9, mihf.PredictionExpired, wwan, 2, mihf.OutcomeExpired)
	r.truth(9, "blind", wwan)
	t.Log("# a loss that was foreseen; another link's frozen flow has nothing to do with it")
	r.event(10, mihf.LinkGoingDown, wlan, 3, 0)
	r.hint(10.5, mihf.HintFreeze, "a", wlan, 0)
	r.hint(10, mihf.HintFreeze, "b", wwan, 0)
	r.truth(12, "loss", wlan)
	r.event(12.5, mihf.LinkDown, wlan, 3, mihf.OutcomeLinkDown)
	r.hint(14, mihf.HintUnfreeze, "a", wlan, mihf.UnfreezePathUsable)
	t.Log("# one that was not")
	r.truth(20, "loss", wlan)
	r.event(20.5, mihf.LinkDown, wlan, 0, 0)

	if r.Announced != 3 || r.CameTrue != 1 || r.Rollbacks != 1 || r.FalseAlarms != 1 || r.Freezes != 3 || r.Needless != 1 || len(r.Losses) != 2 {
		t.Fatalf("%+v", r.Tally)
	}
	l := &r.Losses[0]
	lead, foreseen := l.Lead()
	frozen, ok := l.FrozenBefore()
	if !foreseen || lead != 2*time.Second || !ok || frozen != 1500*time.Millisecond || l.Outcome != mihf.OutcomeLinkDown || len(l.Frozen) != 1 {
		t.Errorf("lead %v, %v; frozen %v, %v; %+v", lead, foreseen, frozen, ok, l)
	}
	l = &r.Losses[1]
	_, foreseen = l.Lead()
	if _, ok := l.FrozenBefore(); foreseen || ok {
		t.Errorf("foreseen %v, frozen %v", foreseen, ok)
	}
}

// "a needless freeze is a Freeze that ended with neither a loss nor a handover"
func TestNeedless(t *testing.T) {
	for cause, want := range map[mihf.UnfreezeCause]int{
		mihf.UnfreezeRollback: 1, mihf.UnfreezeExpired: 1, mihf.UnfreezeBudget: 1,
		mihf.UnfreezePathUsable: 0, mihf.UnfreezeHandoverComplete: 0, mihf.UnfreezeMaxFreeze: 0, mihf.UnfreezeOperator: 0,
	} {
		r := &run{}
		r.hint(1, mihf.HintFreeze, "a", wlan, 0)
		r.hint(2, mihf.HintUnfreeze, "a", wlan, cause)
		if r.Needless != want {
			t.Errorf("%v: %d needless, want %d", cause, r.Needless, want)
		}
	}
}
