package engine_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/queue"
)

// step is one input of any kind; its numbers say which and how.
type step struct {
	Act        int
	Link, Flow int
	A, B, C    int
	P          float64
	Wait       time.Duration
	Stall      bool // nobody looks at the engine meanwhile
}

var (
	stepLinks = []mihf.LinkID{wlan, wwan, "ethernet-00000003"}
	stepFlows = []mihf.FlowID{"a", "b", "c", "d"}
	waits     = []time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, time.Second, 4 * time.Second, 30 * time.Second}
)

const acts = 22

func drawStep(t *rapid.T) step {
	n := rapid.IntRange(0, 1000)
	return step{
		Act: rapid.IntRange(0, acts-1).Draw(t, "act"), Link: rapid.IntRange(0, 2).Draw(t, "link"), Flow: rapid.IntRange(0, 3).Draw(t, "flow"),
		A: n.Draw(t, "a"), B: n.Draw(t, "b"), C: n.Draw(t, "c"), P: rapid.Float64Range(0, 1).Draw(t, "p"),
		Wait: rapid.SampledFrom(waits).Draw(t, "wait"), Stall: rapid.IntRange(0, 30).Draw(t, "stall") == 0,
	}
}

func randomStep(r *rand.Rand) step {
	return step{
		Act: r.IntN(acts), Link: r.IntN(3), Flow: r.IntN(4), A: r.IntN(1000), B: r.IntN(1000), C: r.IntN(1000),
		P: r.Float64(), Wait: waits[r.IntN(len(waits))],
	}
}

// addresses of a link, one of which another may take over.
func (s *step) device() device {
	v4 := []string{"192.0.2.7/24", "198.51.100.9/24", "203.0.113.77/24"}
	d := device{down: s.A%4 == 0, admin: s.A%13 == 0, name: []string{"dev0", "dev1"}[s.A%29/28]}
	if s.B%4 != 0 {
		d.addrs = append(d.addrs, v4[s.Link])
	}
	if s.B%11 == 0 {
		d.addrs = append(d.addrs, v4[(s.Link+1)%3])
	}
	switch s.B % 3 {
	case 1:
		d.addrs = append(d.addrs, "2001:db8::"+string(rune('1'+s.Link))+"/64")
	case 2:
		d.addrs = append(d.addrs, "?2001:db8::"+string(rune('1'+s.Link))+"/64")
	}
	if s.C%4 != 0 {
		d.routes = append(d.routes, "600")
	}
	if s.C%3 != 0 {
		d.routes = append(d.routes, "v6:600")
	}
	return d
}

func (s *step) spec() mihf.FlowSpec {
	f := mihf.FlowSpec{
		ID: stepFlows[s.Flow], Continuity: mihf.Continuity(s.A % 3), LateFreeze: s.B%2 == 0,
		RTT: time.Duration(s.C) * time.Millisecond, Direction: mihf.Direction(s.B % 3),
	}
	if s.A%2 == 0 {
		f.Link = stepLinks[s.Link]
	}
	if s.B%3 != 0 || f.Link == "" {
		f.Tuples = append(f.Tuples, tuple([]string{"192.0.2.7", "198.51.100.9", "", "2001:db8::1"}[s.C%4], []string{"203.0.113.1", "203.0.113.1", "203.0.113.2", "2001:db8:1::1"}[s.C%4]))
	}
	if s.C%5 == 0 {
		f.Tuples = append(f.Tuples, tuple("", "2001:db8:1::1"))
	}
	if s.A%7 == 0 {
		f.Hints = mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)
	}
	if s.B%7 == 0 {
		f.MaxFreeze = 5 * time.Second
	}
	return f
}

// run does the steps and returns all that came out.
func run(t failer, steps []step, each func(h *engineTest)) []queue.Item {
	t.Helper()
	h := newEngine(t, func(c *engine.Config) {
		c.Hint.MaxFreeze = 20 * time.Second
		c.Hint.BudgetShare, c.Hint.BudgetWindow = 0.1, time.Minute // so that it is reached
		c.Hint.Backoff = 200 * time.Millisecond
		c.Link.FlapGuard = 5 * time.Second
	})
	var out []queue.Item
	for i := range steps {
		h.step(&steps[i])
		out = append(out, h.got...)
		h.drop()
		if each != nil {
			each(h)
		}
	}
	for _, l := range stepLinks {
		h.tell(l).silent = true
	}
	h.advance(2 * time.Minute)
	for id, l := range h.check.links {
		if !l.open.ID.IsZero() {
			t.Fatalf("%s: %v has no outcome", id, l.open.ID)
		}
	}
	for id, f := range h.check.flows {
		if f.frozen {
			t.Fatalf("%s is frozen for ever", id)
		}
	}
	return append(out, h.got...)
}

func (h *engineTest) step(s *step) {
	h.t.Helper()
	link, id := stepLinks[s.Link], stepFlows[s.Flow]
	poa := []mihf.PoA{apA, apB, ""}[s.A%3]
	ssid := []string{"home", "home", "cafe", ""}[s.B%4]
	registered := h.e.Flow(id) != nil
	switch s.Act {
	case 0, 1, 2:
		h.give(link, s.device().facts())
	case 3, 4:
		h.give(link, association(mihf.AssociationState(s.C%5), poa, ssid))
	case 5:
		h.give(link, left(mihf.DownReason(s.C%15), s.A%2 == 0))
	case 6, 7, 8:
		h.foresee(link, s.P, time.Duration(1+s.A*s.A%10000)*time.Millisecond)
		if s.B%3 == 0 {
			h.tell(link).handover = (1 - s.P) / 2
		}
		o := radio(poa, -20-float64(s.C%80))
		if s.B%5 == 0 {
			o.Age = time.Duration(s.A) * time.Millisecond
		}
		h.give(link, o)
	case 9:
		h.tell(link).silent = true
	case 10:
		if s.A%4 == 0 {
			h.give(link, gone())
		}
	case 11:
		h.give("", &mihf.Observation{Kind: mihf.ObsEgress, Egress: &mihf.Egress{IPv6: s.A%2 == 0, Link: append(stepLinks, "")[s.B%4]}})
	case 12:
		h.give("", peer([]string{"203.0.113.1", "203.0.113.2", "2001:db8:1::1"}[s.A%3], append(stepLinks, "")[s.B%4]))
	case 13, 14, 15:
		if spec := s.spec(); !registered {
			h.register(spec)
		}
	case 16:
		if registered && s.A%4 == 0 {
			h.unregister(id)
		}
	case 17:
		h.update(id, s)
	case 18:
		if registered {
			st := h.flow(id)
			_ = h.e.Acknowledge(h.now, &mihf.Ack{Flow: id, Epoch: st.Epoch, Held: time.Duration(s.A) * time.Microsecond}, h.now.Add(-time.Millisecond))
		}
	case 19:
		if s.A%10 == 0 {
			h.check.suspends = true
			h.now = h.now.Add(time.Duration(s.B) * time.Minute)
			h.give("", &mihf.Observation{Kind: mihf.ObsResume, Gap: time.Duration(s.B) * time.Minute})
		}
	case 20:
		_ = h.e.ConfigureThresholds(h.now, link, mihf.Identity{}, []mihf.ThresholdConfig{{
			Parameter: mihf.ParamRSSI, Action: mihf.ThresholdAction(s.A % 3), Period: time.Duration(s.B%10/9) * 300 * time.Millisecond,
			Threshold: mihf.Some(mihf.Threshold{Value: -20 - float64(s.C%80), Direction: mihf.ThresholdDirection(s.B % 2)}),
		}})
	case 21:
		kinds := []mihf.ObservationKind{mihf.ObsResync, mihf.ObsScan, mihf.ObsHandover, mihf.ObsTruth, mihf.ObsDetected, mihf.ObsCondition}
		h.give(link, &mihf.Observation{
			Kind: kinds[s.A%len(kinds)], PoA: poa, Detected: &mihf.Detected{PoA: poa},
			Condition: &mihf.SensorCondition{Sensor: ssid, Condition: mihf.Condition(s.C % 6)},
		})
	}
	if s.Stall {
		h.check.suspends = true
		h.now = h.now.Add(s.Wait)
		return
	}
	h.advance(s.Wait)
}

func (h *engineTest) update(id mihf.FlowID, s *step) {
	h.t.Helper()
	u := mihf.FlowUpdate{Flow: id, RTT: mihf.Some(time.Duration(s.A) * time.Millisecond)}
	spec := s.spec()
	if s.B%2 == 0 {
		u.Tuples = spec.Tuples
	}
	if s.C%2 == 0 {
		u.Link = mihf.Some(spec.Link)
	}
	h.advance(0)
	_ = h.e.Update(h.now, &u) // some are refused
	h.take()
}

// Any interleaving of observations, forecasts, registrations and time keeps every promise;
// the same inputs give the same outputs.
func TestAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 60).Draw(rt, "steps")
		once := run(rt, steps, func(h *engineTest) { h.check.snapshot(h.now, h.e) })
		if again := run(rt, steps, nil); !reflect.DeepEqual(once, again) {
			rt.Fatal("the same inputs gave other outputs")
		}
	})
}
