package hint_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
)

// twin is what a transport sees of one flow, and the dumb count of its needless time.
type twin struct {
	frozen     bool
	since      mihf.Time
	epoch      uint64
	prediction uint64
	lost       bool // the loss came while it was frozen
	spans      [][2]mihf.Time
}

// needless sums the spans inside the window that ends at t.
func (w *twin) needless(t mihf.Time, window time.Duration) (sum time.Duration) {
	for _, s := range w.spans {
		if from, to := max(s[0], t.Add(-window)), min(s[1], t); to > from {
			sum += to.Sub(from)
		}
	}
	return sum
}

func (w *twin) take(t *rapid.T, cfg *hint.Config, x *mihf.Hint) {
	if x.Epoch <= w.epoch {
		t.Fatalf("epoch %d after %d", x.Epoch, w.epoch)
	}
	w.epoch = x.Epoch
	switch x.Kind {
	case mihf.HintFreeze:
		if !w.frozen {
			w.frozen, w.since, w.prediction, w.lost = true, x.At, x.Prediction.N, x.Prediction.IsZero()
		}
		if w.prediction != x.Prediction.N {
			t.Fatalf("renewed for prediction %d, frozen for %d", x.Prediction.N, w.prediction)
		}
		if end := x.At.Add(x.Freeze.Lease); x.Freeze.Lease <= 0 || end > w.since.Add(cfg.MaxFreeze) {
			t.Fatalf("leased %v, frozen since %v, now %v", x.Freeze.Lease, w.since, x.At)
		}
		if (x.Freeze.Reason == mihf.FreezePredicted) != !x.Prediction.IsZero() {
			t.Fatalf("%+v", x)
		}
	case mihf.HintUnfreeze, mihf.HintAbandon:
		if x.Kind == mihf.HintUnfreeze && !w.frozen {
			t.Fatal("unfreeze without freeze")
		}
		if w.frozen && !w.lost {
			w.spans = append(w.spans, [2]mihf.Time{w.since, x.At})
		}
		w.frozen = false
	default:
	}
}

// In any interleaving freezes and their ends alternate, epochs rise, nothing is frozen past
// its longest freeze, and the time frozen for losses that did not come stays within the
// budget of every window.
func TestAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := hint.Defaults()
		cfg.MaxFreeze = 20 * time.Second
		cfg.BudgetWindow = time.Minute
		cfg.BudgetShare = 0.1
		cfg.Backoff, cfg.MaxBackoff = 100*time.Millisecond, time.Second
		h := &policyTest{t: t, cfg: cfg, now: mihf.Time(time.Hour)}
		h.p = hint.New(cfg, 7)
		flows := map[mihf.FlowID]*twin{}
		where := map[mihf.FlowID]mihf.LinkID{}
		ids := []mihf.FlowID{"a", "b", "c"}
		for i, id := range ids {
			h.p.Add(mihf.FlowSpec{
				ID: id, Continuity: mihf.Continuity(i % 2), LateFreeze: rapid.Bool().Draw(rt, "late"),
				RTT: time.Duration(rapid.Int64Range(1, 1000).Draw(rt, "rtt")) * time.Millisecond,
			}, 0, wlan, 0)
			flows[id], where[id] = &twin{}, wlan
		}
		look := func() {
			for i := range h.out.List {
				x := &h.out.List[i]
				flows[x.Flow].take(rt, &cfg, x)
			}
			h.out.List = h.out.List[:0]
			limit := time.Duration(cfg.BudgetShare * float64(cfg.BudgetWindow))
			for _, id := range ids {
				w := flows[id]
				var s mihf.FlowStatus
				h.p.Status(h.now, id, &s)
				if s.Frozen != w.frozen || s.Epoch != w.epoch || s.Link != where[id] {
					rt.Fatalf("%+v, its transport has %+v", s, w)
				}
				sum := w.needless(h.now, cfg.BudgetWindow)
				if w.frozen && !w.lost {
					sum += h.now.Sub(w.since)
				}
				if sum > limit {
					rt.Fatalf("%s: %v frozen for nothing within %v", id, sum, cfg.BudgetWindow)
				}
				if w.frozen && h.now > w.since.Add(cfg.MaxFreeze) {
					rt.Fatalf("frozen since %v, now %v", w.since, h.now)
				}
			}
			if next := h.p.Next(); next != 0 && next <= h.now {
				rt.Fatalf("wants to be woken at %v, now %v", next, h.now)
			}
		}
		var open *mihf.Prediction
		for range rapid.IntRange(1, 120).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "flow")
			switch rapid.IntRange(0, 8).Draw(rt, "act") {
			case 0, 1, 2:
				open = h.predict(likely(rapid.Float64Range(0.3, 1).Draw(rt, "p"), time.Duration(rapid.Int64Range(10, 2000).Draw(rt, "within"))*time.Millisecond))
			case 3, 4:
				if open != nil {
					h.end(open, rapid.SampledFrom([]mihf.Outcome{mihf.OutcomeRollback, mihf.OutcomeExpired}).Draw(rt, "outcome"))
				}
				open = nil
			case 5:
				for _, id := range ids {
					if where[id] == wlan && flows[id].frozen {
						flows[id].lost = true
					}
				}
				h.p.Lost(h.now, wlan, false, &h.out)
			case 6:
				h.p.Usable(h.now, id, mihf.UnfreezePathUsable, lci, &h.out)
			case 7:
				to := rapid.SampledFrom([]mihf.LinkID{wlan, wwan}).Draw(rt, "to")
				if w := flows[id]; to != where[id] && w.frozen && !w.lost {
					w.spans = append(w.spans, [2]mihf.Time{w.since, h.now}) // until it left the link
					w.lost = true
				}
				where[id] = to
				h.p.Move(h.now, id, to)
			case 8:
				h.p.Abandon(h.now, id, mihf.AbandonAddressGone, &h.out)
			}
			look()
			h.advance(time.Duration(rapid.SampledFrom([]int64{0, 1e7, 3e8, 2e9, 9e9}).Draw(rt, "wait")))
			look()
		}
	})
}
