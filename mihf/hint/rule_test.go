package hint_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
)

// Lead by direction: receiving one RTT plus margin, sending the local drain plus margin,
// both the larger; a lead that is given stands.
func TestLead(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		spec mihf.FlowSpec
		want time.Duration
	}{
		{mihf.FlowSpec{}, 105 * ms},
		{mihf.FlowSpec{Direction: mihf.DirectionReceive, RTT: 40 * ms}, 45 * ms},
		{mihf.FlowSpec{Direction: mihf.DirectionSend, RTT: 40 * ms}, 15 * ms},
		{mihf.FlowSpec{Direction: mihf.DirectionSend, LocalDrain: 80 * ms}, 85 * ms},
		{mihf.FlowSpec{RTT: 40 * ms, LocalDrain: 80 * ms}, 85 * ms},
		{mihf.FlowSpec{RTT: 40 * ms, Lead: 7 * ms}, 7 * ms},
	} {
		h := newPolicy(t)
		if got := h.add(c.spec); got.Lead != c.want || got.Lease != 3*time.Second || got.Hints == 0 || got.Boot != 7 {
			t.Errorf("%+v: %+v, want lead %v", c.spec, got, c.want)
		}
	}
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.p.Update(&mihf.FlowUpdate{Flow: flow, RTT: mihf.Some(300 * ms), Link: mihf.Some(wwan), Tuples: []mihf.Endpoints{{Protocol: 6}}})
	h.p.Update(&mihf.FlowUpdate{Flow: "unknown", RTT: mihf.Some(time.Second)})
	if s := h.status(); s.Lead != 305*ms || s.Spec.Link != wwan || len(s.Spec.Tuples) != 1 || s.Link != wlan {
		t.Errorf("%+v", s)
	}
}

// Each flow is frozen at its own moment: the one with the longer lead first.
func TestEachAtItsOwnMoment(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{ID: "far", RTT: 600 * time.Millisecond})
	h.add(mihf.FlowSpec{ID: "near", RTT: 40 * time.Millisecond})
	at := map[mihf.FlowID]time.Duration{}
	const loss = 3 * time.Second
	for left := loss; left > 0; left -= chance.Interval {
		f := &mihf.Forecast{}
		f.Loss.Set(func(s float64) float64 { // sure, and within 100 ms of that moment
			return min(max((s-left.Seconds())/0.1+0.5, 0), 1)
		})
		if h.p.Due(h.now, wlan, f, chance) > 0 {
			h.p.Freeze(h.now, &mihf.Prediction{ID: mihf.PredictionID{Boot: 7, N: 1}}, &h.out)
		}
		for i := range h.out.List {
			at[h.out.List[i].Flow] = left
		}
		h.out.List = h.out.List[:0]
		h.now = h.now.Add(chance.Interval)
	}
	for id, lead := range map[mihf.FlowID]time.Duration{"far": 605 * time.Millisecond, "near": 45 * time.Millisecond} {
		if at[id] < lead-50*time.Millisecond || at[id] > lead+200*time.Millisecond {
			t.Errorf("%s was frozen %v before the loss, its lead is %v", id, at[id], lead)
		}
	}
}

// A loss that is certain but far away does not freeze at once.
func TestCertainButFar(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{RTT: 40 * time.Millisecond})
	f := &mihf.Forecast{}
	f.Loss.Set(func(s float64) float64 { return max(0, min((s-4)/2, 1)) })
	if h.p.Due(h.now, wlan, f, hint.Chance{Interval: 50 * time.Millisecond, ExpiresIn: 9 * time.Second}) != 0 {
		t.Error("frozen 4 s before the loss")
	}
}

// The rule as stated in the package comment, against Due, for any flow and forecast.
func TestRule(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ms := func(name string, high int64) time.Duration {
			return time.Duration(rapid.Int64Range(1, high).Draw(rt, name)) * time.Millisecond
		}
		h := &policyTest{t: t, cfg: hint.Defaults(), now: mihf.Time(time.Hour)}
		h.p = hint.New(h.cfg, 7)
		spec := mihf.FlowSpec{ID: flow, Lead: ms("lead", 2000), CostMiss: ms("miss", 10000)}
		if rapid.Bool().Draw(rt, "costed") {
			spec.CostNeedless = ms("needless", 10000)
		}
		h.add(spec)
		f := likely(rapid.Float64Range(0, 1).Draw(rt, "p"), ms("within", 10000))
		ch := hint.Chance{Interval: ms("interval", 1000), ExpiresIn: ms("expires", 10000)}
		miss := f.Loss.Within(ch.Interval+spec.Lead) * spec.CostMiss.Seconds()
		needless := ch.ExpiresIn.Seconds()
		if spec.CostNeedless > 0 {
			needless = spec.CostNeedless.Seconds()
		}
		needless *= 1 - f.Loss.Within(ch.ExpiresIn)
		early := (1 - f.Loss.Within(ch.Interval+spec.Lead)) * ch.Interval.Seconds()
		want := 0
		if miss > needless && miss > early {
			want = 1
		}
		if got := h.p.Due(h.now, wlan, f, ch); got != want {
			rt.Fatalf("due %d, want %d: miss %v, needless %v, early %v", got, want, miss, needless, early)
		}
		if w, ok := h.p.Weigh(flow, f, ch); !ok || w.Fires() != (want == 1) {
			rt.Fatalf("%+v", w)
		}
	})
}

// The transports of one user, slow or lying, don't change the lead of another's flows;
// what was learned of them outlives their registration.
func TestMarginIsTheOwners(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{RTT: 100 * time.Millisecond})
	before := h.status().Lead
	const other = mihf.FlowID("01J00000000000000000000077")
	h.p.Add(mihf.FlowSpec{ID: other, RTT: 100 * time.Millisecond}, 1001, wlan, 0)
	for range 40 {
		h.p.Characteristics(h.now, other, lci, &h.out)
		made := h.now
		h.now = h.now.Add(time.Second)
		h.p.Acknowledge(h.now, &mihf.Ack{Flow: other, Epoch: h.out.List[len(h.out.List)-1].Epoch}, made)
	}
	if got := h.status().Lead; got != before {
		t.Errorf("lead %v, before another user was slow %v", got, before)
	}
	h.p.Remove(other)
	for owner := range uint32(1022) {
		h.p.Add(mihf.FlowSpec{ID: other}, 2000+owner, wlan, 0)
		h.p.Remove(other)
	}
	if m := h.p.Margin(1001); m != h.cfg.MaxMargin {
		t.Errorf("margin %v of the slow one", m)
	}
	h.p.Add(mihf.FlowSpec{ID: other}, 1, wlan, 0) // one more than are kept
	if m := h.p.Margin(1001); m != h.cfg.MinMargin {
		t.Errorf("margin %v of an owner that is long gone", m)
	}
	h.out.List = nil
}

// The margin is the p99 of what acknowledgements take, each hint counted once.
func TestMargin(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{RTT: 100 * time.Millisecond})
	ack := func(took, held time.Duration) {
		h.p.Characteristics(h.now, flow, lci, &h.out)
		made := h.now
		h.now = h.now.Add(took)
		a := mihf.Ack{Flow: flow, Epoch: h.out.List[len(h.out.List)-1].Epoch, Held: held}
		h.p.Acknowledge(h.now, &a, made)
		h.p.Acknowledge(h.now.Add(time.Second), &a, made) // again, late: not counted
	}
	for range 15 {
		ack(50*time.Millisecond, 0)
	}
	if h.p.Margin(1000) != h.cfg.MinMargin {
		t.Errorf("margin %v of 15 samples", h.p.Margin(1000))
	}
	ack(30*time.Millisecond, 20*time.Millisecond)
	if h.p.Margin(1000) != 50*time.Millisecond || h.status().Lead != 150*time.Millisecond {
		t.Errorf("margin %v", h.p.Margin(1000))
	}
	for range 128 {
		ack(10*time.Millisecond, 2*time.Millisecond)
	}
	ack(400*time.Millisecond, 0) // one outlier of 128
	if h.p.Margin(1000) != 8*time.Millisecond {
		t.Errorf("margin %v", h.p.Margin(1000))
	}
	ack(10*time.Second, 0)
	ack(10*time.Second, 0)
	if h.p.Margin(1000) != h.cfg.MaxMargin {
		t.Errorf("margin %v", h.p.Margin(1000))
	}
	ack(time.Millisecond, time.Second)  // held longer than it took: not believed
	ack(time.Millisecond, -time.Second) // nor this
	h.p.Acknowledge(h.now, &mihf.Ack{Flow: flow, Epoch: 1 << 40}, h.now)
	h.p.Acknowledge(h.now, &mihf.Ack{Flow: "unknown"}, h.now)
	if s := h.status(); s.Acknowledged != s.Epoch || h.p.Margin(1000) != h.cfg.MaxMargin {
		t.Errorf("%+v", s)
	}
	h.out.List = nil
}
