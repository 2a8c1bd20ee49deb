package hint_test

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

const ms = time.Millisecond

// A longer RTT counts at once; a shorter one when all readings of three seconds were clearly
// shorter, and then the longest of them; small changes move nothing.
func TestMeasuredRTTIsSteady(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	if s := h.status(); s.RTT != h.cfg.RTT || s.RTTSource != mihf.RTTAssumed {
		t.Errorf("before any reading: %v %v", s.RTT, s.RTTSource)
	}
	for _, step := range []struct {
		after, reading, want time.Duration
	}{
		{0, 40 * ms, 40 * ms},
		{100 * ms, 0, 40 * ms}, // not known
		{100 * ms, 44 * ms, 40 * ms},
		{100 * ms, 45 * ms, 45 * ms}, // above by more than a tenth
		{100 * ms, 400 * ms, 400 * ms},
		{100 * ms, 50 * ms, 400 * ms},
		{2 * time.Second, 70 * ms, 400 * ms},
		{999 * ms, 60 * ms, 400 * ms},
		{1 * ms, 60 * ms, 70 * ms}, // three seconds: the longest of them
		{time.Second, 50 * ms, 70 * ms},
		{time.Second, 57 * ms, 70 * ms}, // not clearly shorter: from the beginning
		{time.Second, 50 * ms, 70 * ms},
		{time.Second, 50 * ms, 70 * ms},
		{2 * time.Second, 50 * ms, 50 * ms},
		{0, time.Hour, 10 * time.Second}, // no deadline is made of nonsense
	} {
		h.advance(step.after)
		h.p.Measure(h.now, flow, step.reading)
		if s := h.status(); s.RTT != step.want || s.RTTSource != mihf.RTTMeasured {
			t.Errorf("after a reading of %v the RTT is %v %v, want %v", step.reading, s.RTT, s.RTTSource, step.want)
		}
	}
}

// What the transport says is in force, before and after; a lead follows the RTT.
func TestStatedBeforeMeasured(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{})
	h.p.Measure(h.now, flow, 200*ms)
	if s := h.status(); s.Lead != 200*ms+h.cfg.MinMargin {
		t.Errorf("lead %v of a measured RTT of 200ms", s.Lead)
	}
	h.p.Update(&mihf.FlowUpdate{Flow: flow, RTT: mihf.Some(30 * ms)})
	h.p.Measure(h.now, flow, 900*ms)
	if s := h.status(); s.RTT != 30*ms || s.RTTSource != mihf.RTTStated || s.Lead != 30*ms+h.cfg.MinMargin {
		t.Errorf("RTT %v %v, lead %v; the transport said 30ms", s.RTT, s.RTTSource, s.Lead)
	}
}

// A flow that moves has another path: its RTT is not known any more.
func TestMoveForgetsTheMeasuredRTT(t *testing.T) {
	h := newPolicy(t)
	h.add(mihf.FlowSpec{Continuity: mihf.ContinuityRebinds})
	h.p.Measure(h.now, flow, 200*ms)
	h.p.Move(h.now, flow, wwan)
	if s := h.status(); s.RTT != h.cfg.RTT || s.RTTSource != mihf.RTTAssumed {
		t.Errorf("RTT %v %v on the new link", s.RTT, s.RTTSource)
	}
	h.p.Measure(h.now, "nobody", 1) // a flow that is gone
}
