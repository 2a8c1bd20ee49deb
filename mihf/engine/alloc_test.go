package engine_test

import (
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/predictors/level"
)

// "From a radio observation to the hints it causes nothing is allocated once the buffers
// have their size": reports, announcement, freeze, revision, renewal, rollback and thaw.
func TestNoAllocationToTheFreeze(t *testing.T) {
	cfg := engine.Defaults()
	cfg.Boot = 7
	s := &scripted{}
	cfg.NewPredictor = func(mihf.LinkID) engine.Predictor { return s }
	e := engine.New(cfg)
	now := start
	o := wifi4.facts()
	o.Link = wlan
	e.Observe(now, o)
	for _, id := range []mihf.FlowID{"a", "b", "c"} {
		if _, err := e.Register(now, &mihf.FlowSpec{ID: id, Link: wlan, RTT: 100 * time.Millisecond}, 0); err != nil {
			t.Fatal(err)
		}
	}
	sample := radio(apA, -60)
	sample.Link = wlan
	seen := map[string]int{}
	counting := true
	take := func() {
		items := e.Out()
		if !counting {
			return
		}
		for i := range items {
			k := kindOf(&items[i])
			if p := &items[i].Event.Prediction; p.Revision > 0 && k == "link_going_down" {
				k = "revision"
			}
			seen[k]++
		}
	}
	look := func(rssi, loss float64, within time.Duration) {
		now = now.Add(50 * time.Millisecond)
		e.Advance(now)
		take()
		*s = scripted{loss: loss, within: within, told: now}
		sample.At = now
		sample.Values.Set(mihf.ParamRSSI, rssi)
		e.Observe(now, sample)
		take()
	}
	// One round is a fade: announced, revised, frozen, renewed, taken back.
	round := func() {
		for i := range 40 {
			look(-70-float64(i%7), 0.9, time.Duration(5000-100*i)*time.Millisecond)
		}
		for range 40 {
			look(-75, 0.95, 300*time.Millisecond)
		}
		for range 20 {
			look(-60, 0, time.Second)
		}
		now = now.Add(20 * time.Minute) // the guard, the back-off and the budget end
		e.Advance(now)
		take()
	}
	for range 70 { // as many predictions as are explained
		round()
	}
	counting = false
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations a fade", n)
	}
	for _, k := range []string{"link_parameters_report", "link_going_down", "revision", "freeze", "link_event_rollback", "unfreeze"} {
		if seen[k] < 70 {
			t.Errorf("%d times %s in 70 fades: the test does not reach it", seen[k], k)
		}
	}
	if renewed := seen["freeze"] - seen["unfreeze"]; renewed < 70 {
		t.Errorf("%d renewals", renewed)
	}
}

// The same with the predictor in use.
func TestNoAllocationWithPredictor(t *testing.T) {
	b := newBench(t, 10)
	for range 2000 {
		b.observe()
	}
	if n := testing.AllocsPerRun(2000, b.observe); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

// bench is an engine with a link, the predictor in use and many flows.
type bench struct {
	e      *engine.Engine
	now    mihf.Time
	sample *mihf.Observation
	n      int
	level  func(i int) float64
}

func newBench(t testing.TB, flows int) *bench {
	t.Helper()
	cfg := engine.Defaults()
	cfg.Boot = 7
	cfg.NewPredictor = func(mihf.LinkID) engine.Predictor { return level.New() }
	b := &bench{e: engine.New(cfg), now: start, sample: radio(apA, -60), level: func(i int) float64 { return -60 - float64(i%4) }}
	b.sample.Link = wlan
	o := wifi4.facts()
	o.At, o.Link = b.now, wlan
	b.e.Observe(b.now, o)
	for i := range flows {
		spec := mihf.FlowSpec{ID: mihf.FlowID(time.Duration(i).String()), Link: wlan, RTT: time.Duration(20+i%300) * time.Millisecond}
		if _, err := b.e.Register(b.now, &spec, 0); err != nil {
			t.Fatal(err)
		}
	}
	b.e.Out()
	return b
}

func (b *bench) observe() {
	b.n++
	b.now = b.now.Add(100 * time.Millisecond)
	b.sample.At = b.now
	b.sample.Values.Set(mihf.ParamRSSI, b.level(b.n))
	b.e.Observe(b.now, b.sample)
	b.e.Out()
}

func benchmarkFlows(b *testing.B, flows int) {
	b.Helper()
	x := newBench(b, flows)
	for range 300 {
		x.observe()
	}
	b.ReportAllocs()
	for b.Loop() {
		x.observe()
	}
}

// A radio sample on a calm link, with that many flows on it.
func BenchmarkObserve1(b *testing.B)     { benchmarkFlows(b, 1) }
func BenchmarkObserve100(b *testing.B)   { benchmarkFlows(b, 100) }
func BenchmarkObserve10000(b *testing.B) { benchmarkFlows(b, 10000) }

// benchmarkRisky is a sample on a link that a loss is foreseen for, too far away to freeze
// anybody: each flow's rule is weighed.
func benchmarkRisky(b *testing.B, flows int) {
	b.Helper()
	x := newBench(b, flows)
	s := &scripted{}
	cfg := engine.Defaults()
	cfg.Boot = 7
	cfg.NewPredictor = func(mihf.LinkID) engine.Predictor { return s }
	e := engine.New(cfg)
	o := wifi4.facts()
	o.At, o.Link = x.now, wlan
	e.Observe(x.now, o)
	for i := range flows {
		spec := mihf.FlowSpec{ID: mihf.FlowID(time.Duration(i).String()), Link: wlan, RTT: time.Duration(20+i%300) * time.Millisecond}
		if _, err := e.Register(x.now, &spec, 0); err != nil {
			b.Fatal(err)
		}
	}
	x.e = e
	s.loss, s.within = 0.2, 10*time.Second
	e.Out()
	x.observe()
	b.ReportAllocs()
	for b.Loop() {
		s.told = x.now.Add(100 * time.Millisecond)
		x.observe()
	}
}

func BenchmarkObserveRisky1(b *testing.B)     { benchmarkRisky(b, 1) }
func BenchmarkObserveRisky100(b *testing.B)   { benchmarkRisky(b, 100) }
func BenchmarkObserveRisky10000(b *testing.B) { benchmarkRisky(b, 10000) }
