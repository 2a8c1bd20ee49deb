package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// What a run counts as, by its timeline alone.
func TestFill(t *testing.T) {
	const start = mihf.Time(time.Hour)
	at := func(ms int) mihf.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	event := func(ms int, k mihf.Kind, n uint64, o mihf.Outcome) Entry {
		p := mihf.Prediction{ID: mihf.PredictionID{Boot: 1, N: n}, OpenedAt: at(ms), Outcome: o}
		return Entry{at: at(ms), event: &mihf.Event{Kind: k, Link: link, Prediction: p}}
	}
	from := func(front string, ms int, k mihf.HintKind, c mihf.UnfreezeCause) Entry {
		return Entry{From: front, at: at(ms), hint: &mihf.Hint{Kind: k, Flow: "f", Link: link, Unfreeze: mihf.Unfreeze{Cause: c}}}
	}
	hint := func(ms int, k mihf.HintKind, c mihf.UnfreezeCause) Entry { return from("grpc", ms, k, c) }
	loss := Entry{at: at(5000), truth: &mihf.Observation{At: at(5000), Link: link, Truth: &mihf.Truth{Kind: "loss"}}}
	type result struct {
		OK                               bool
		Lead, Before, NATS, Frozen       *float64
		Outcome                          string
		Rollbacks, FalseAlarms, Needless int
	}
	for name, c := range map[string]struct {
		timeline []Entry
		want     result
		fronts   []string
	}{
		"in time, out of order": {
			[]Entry{
				loss, hint(4600, mihf.HintFreeze, 0), event(4500, mihf.LinkGoingDown, 2, 0), event(5030, mihf.LinkDown, 2, mihf.OutcomeLinkDown),
				hint(7000, mihf.HintUnfreeze, mihf.UnfreezePathUsable),
				event(1000, mihf.LinkGoingDown, 1, 0), hint(1100, mihf.HintFreeze, 0),
				event(2000, mihf.LinkEventRollback, 1, mihf.OutcomeRollback), hint(2000, mihf.HintUnfreeze, mihf.UnfreezeRollback),
			},
			result{OK: true, Lead: new(float64(500)), Before: new(float64(400)), Frozen: new(float64(2400)), Outcome: "link_down", Rollbacks: 1, Needless: 1},
			nil,
		},
		"too late": {
			[]Entry{event(4990, mihf.LinkGoingDown, 1, 0), loss, hint(5010, mihf.HintFreeze, 0), event(5030, mihf.LinkDown, 1, mihf.OutcomeLinkDown)},
			result{Lead: new(float64(10)), Before: new(float64(-10)), Outcome: "link_down"},
			nil,
		},
		"on one front in time, on the other not": {
			[]Entry{
				event(4500, mihf.LinkGoingDown, 2, 0), hint(4600, mihf.HintFreeze, 0), loss, from("nats", 5010, mihf.HintFreeze, 0),
				event(5030, mihf.LinkDown, 2, mihf.OutcomeLinkDown), hint(7000, mihf.HintUnfreeze, mihf.UnfreezePathUsable), from("nats", 7200, mihf.HintUnfreeze, mihf.UnfreezePathUsable),
			},
			result{Lead: new(float64(500)), Before: new(float64(400)), NATS: new(float64(-10)), Frozen: new(float64(2400)), Outcome: "link_down"},
			[]string{"nats"},
		},
		"a front whose client heard nothing": {
			[]Entry{event(4500, mihf.LinkGoingDown, 2, 0), hint(4600, mihf.HintFreeze, 0), loss, event(5030, mihf.LinkDown, 2, mihf.OutcomeLinkDown)},
			result{Lead: new(float64(500)), Before: new(float64(400)), Outcome: "link_down"},
			[]string{"nats"},
		},
		"needless on both, which is one": {
			[]Entry{
				event(1000, mihf.LinkGoingDown, 1, 0), hint(1100, mihf.HintFreeze, 0), from("nats", 1100, mihf.HintFreeze, 0),
				event(2000, mihf.LinkEventRollback, 1, mihf.OutcomeRollback), hint(2000, mihf.HintUnfreeze, mihf.UnfreezeRollback), from("nats", 2000, mihf.HintUnfreeze, mihf.UnfreezeRollback),
				event(4500, mihf.LinkGoingDown, 2, 0), hint(4600, mihf.HintFreeze, 0), from("nats", 4601, mihf.HintFreeze, 0), loss, event(5030, mihf.LinkDown, 2, mihf.OutcomeLinkDown),
			},
			result{OK: true, Lead: new(float64(500)), Before: new(float64(400)), NATS: new(float64(399)), Outcome: "link_down", Rollbacks: 1, Needless: 1},
			[]string{"nats"},
		},
		"missed": {[]Entry{loss}, result{Outcome: "missed"}, nil},
		"thawed before the loss": {
			[]Entry{
				event(1000, mihf.LinkGoingDown, 1, 0), hint(1000, mihf.HintFreeze, 0),
				event(4000, mihf.PredictionExpired, 1, mihf.OutcomeExpired), hint(4000, mihf.HintUnfreeze, mihf.UnfreezeExpired), loss,
			},
			result{Outcome: "missed", FalseAlarms: 1, Needless: 1},
			nil,
		},
		"no loss": {nil, result{Outcome: "missed"}, nil},
	} {
		r := &Report{Timeline: c.timeline, fronts: append([]string{"grpc"}, c.fronts...)}
		r.fill(start)
		got := result{
			OK: r.OK(), Lead: r.Prediction.LeadMs, Before: r.Freeze.GRPC, NATS: r.Freeze.NATS, Frozen: r.FrozenMs, Outcome: r.Outcome,
			Rollbacks: r.Rollbacks, FalseAlarms: r.FalseAlarms, Needless: r.NeedlessFreeze,
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
