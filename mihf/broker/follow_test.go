package broker_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

// view is the state that a reader keeps by what it is told.
type view struct {
	Up, IPv4, IPv6 map[mihf.LinkID]bool
	Open           map[mihf.LinkID]mihf.PredictionID
	Frozen         map[mihf.FlowID]bool
	Sensors        map[string]mihf.Condition
	Egress         map[bool]mihf.LinkID
}

func viewOf(s *mihf.Snapshot) *view {
	v := &view{
		Up: map[mihf.LinkID]bool{}, IPv4: map[mihf.LinkID]bool{}, IPv6: map[mihf.LinkID]bool{},
		Open: map[mihf.LinkID]mihf.PredictionID{}, Frozen: map[mihf.FlowID]bool{},
		Sensors: map[string]mihf.Condition{}, Egress: map[bool]mihf.LinkID{},
	}
	for _, l := range s.Links {
		set(v.Up, l.Link, l.Up)
		set(v.IPv4, l.Link, l.UsableIPv4)
		set(v.IPv6, l.Link, l.UsableIPv6)
		if p, ok := l.Prediction.Get(); ok {
			v.Open[l.Link] = p.ID
		}
	}
	for _, f := range s.Flows {
		set(v.Frozen, f.Spec.ID, f.Frozen)
	}
	for _, c := range s.Sensors {
		v.Sensors[c.Sensor] = c.Condition
	}
	for _, e := range s.Egress {
		v.Egress[e.IPv6] = e.Link
	}
	return v
}

// set keeps only what is true, so that a link that was never told of equals one that is down.
func set[K comparable](m map[K]bool, k K, on bool) {
	if delete(m, k); on {
		m[k] = true
	}
}

func (v *view) apply(d *mihf.Delivery) {
	if d.Kind == mihf.DeliverHint {
		switch h := &d.Hint; h.Kind {
		case mihf.HintFreeze:
			v.Frozen[h.Flow] = true
		case mihf.HintUnfreeze, mihf.HintAbandon:
			delete(v.Frozen, h.Flow)
		default:
		}
		return
	}
	e := &d.Event
	switch e.Kind {
	case mihf.LinkUp:
		set(v.Up, e.Link, true)
	case mihf.LinkDown:
		set(v.Up, e.Link, false)
		delete(v.Open, e.Link)
	case mihf.LinkGoingDown:
		v.Open[e.Link] = e.Prediction.ID
	case mihf.LinkEventRollback, mihf.PredictionExpired, mihf.LinkHandoverComplete:
		if v.Open[e.Link] == e.Prediction.ID {
			delete(v.Open, e.Link)
		}
	case mihf.PathUsable, mihf.PathLost:
		family := v.IPv4
		if e.Path.IPv6 {
			family = v.IPv6
		}
		set(family, e.Link, e.Kind == mihf.PathUsable)
	case mihf.SensorConditionChanged:
		v.Sensors[e.Condition.Sensor] = e.Condition.Condition
	case mihf.DefaultRouteChanged:
		if delete(v.Egress, e.Egress.New.IPv6); e.Egress.New.Link != "" {
			v.Egress[e.Egress.New.IPv6] = e.Egress.New.Link
		}
	default:
	}
}

// Snapshot and deltas share one sequence: whenever a reader starts, and wherever it
// resumes, applying what follows to its snapshot gives the state of a later snapshot.
func TestSnapshotAndDeltasAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failed any // rapid's way out, which must not leave the bubble as a panic
		synctest.Test(t, func(t *testing.T) {
			defer func() { failed = recover() }()
			followAtRandom(t, rt)
		})
		if failed != nil {
			panic(failed)
		}
	})
}

func followAtRandom(t *testing.T, rt *rapid.T) {
	t.Helper()
	b := start(t, func(c *broker.Config) { c.Replay, c.Reports = 64, 8 })
	w := &world{bed: b, flows: b.attach(alice)}
	rt.Repeat(map[string]func(*rapid.T){
		"radio": w.radio, "facts": w.facts, "condition": w.condition, "egress": w.egress, "wait": w.wait,
		"burst": w.burst, "join": w.join, "leave": w.leave, "resume": w.resume, "register": w.register,
	})
	synctest.Wait()
	final, err := b.Snapshot(t.Context(), alice)
	if err != nil {
		rt.Fatal(err)
	}
	for _, f := range w.followers {
		f.settle(rt)
		if d := cmp.Diff(viewOf(final), f.view); d != "" {
			rt.Errorf("a reader's state (-snapshot +reader):\n%s", d)
		}
	}
}

// follower is a reader with the state it keeps.
type follower struct {
	*reader
	view  *view
	place uint64
}

// settle applies all that came, and checks the order.
func (f *follower) settle(rt *rapid.T) {
	for _, d := range f.all() {
		if d.Previous != f.place {
			rt.Fatalf("%s at %d names %d as the one before it, which was %d", show(&d), d.Sequence(), d.Previous, f.place)
		}
		switch f.place = d.Sequence(); d.Kind {
		case mihf.DeliverSnapshot:
			f.view = viewOf(d.Snapshot)
		case mihf.DeliverGap:
		default:
			f.view.apply(&d)
		}
	}
}

// world does random things to a broker.
type world struct {
	bed       *bed
	flows     mihf.Attachment
	followers []*follower
}

func (w *world) publish(rt *rapid.T, o *mihf.Observation) {
	if o.At = w.bed.Now(); o.Kind != mihf.ObsCondition && o.Kind != mihf.ObsEgress {
		o.Link = rapid.SampledFrom([]mihf.LinkID{wlan, wwan}).Draw(rt, "link")
	}
	w.bed.Observe(o)
}

func (w *world) radio(rt *rapid.T) {
	w.publish(rt, rssi(rapid.SampledFrom([]float64{-60, -85}).Draw(rt, "rssi")))
}

func (w *world) facts(rt *rapid.T) {
	if rapid.IntRange(0, 4).Draw(rt, "what") == 0 {
		w.publish(rt, &mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
		return
	}
	w.publish(rt, facts(rapid.Bool().Draw(rt, "up")))
}

func (w *world) condition(rt *rapid.T) {
	c := &mihf.SensorCondition{Sensor: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "sensor"), Condition: mihf.Condition(rapid.IntRange(0, 3).Draw(rt, "condition"))}
	w.publish(rt, &mihf.Observation{Kind: mihf.ObsCondition, Condition: c})
}

func (w *world) egress(rt *rapid.T) {
	e := &mihf.Egress{IPv6: rapid.Bool().Draw(rt, "ipv6"), Link: rapid.SampledFrom([]mihf.LinkID{wlan, wwan, ""}).Draw(rt, "link")}
	w.publish(rt, &mihf.Observation{Kind: mihf.ObsEgress, Egress: e})
}

// burst overruns the ring of reports, so that some are conflated and some dropped.
func (w *world) burst(rt *rapid.T) {
	for range rapid.IntRange(1, 20).Draw(rt, "n") {
		w.publish(rt, heard())
		w.condition(rt)
	}
	synctest.Wait() // readers of never-drop events keep up
}

func (w *world) wait(rt *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "ms")) * time.Millisecond)
}

func (w *world) join(rt *rapid.T) {
	w.follow(rt, &follower{}, mihf.SubscribeRequest{Hints: true})
}

func (w *world) follow(rt *rapid.T, f *follower, req mihf.SubscribeRequest) {
	feed, err := w.bed.Subscribe(w.bed.Context(), alice, req)
	if err != nil {
		rt.Fatal(err)
	}
	w.bed.Cleanup(feed.Close)
	f.reader = read(w.bed, feed, rapid.IntRange(1, 5).Draw(rt, "room"))
	w.followers = append(w.followers, f)
}

func (w *world) take(rt *rapid.T) *follower {
	if len(w.followers) == 0 {
		rt.Skip("nobody follows")
	}
	i := rapid.IntRange(0, len(w.followers)-1).Draw(rt, "follower")
	f := w.followers[i]
	w.followers = slices.Delete(w.followers, i, i+1)
	f.feed.Close()
	<-f.done
	return f
}

func (w *world) leave(rt *rapid.T) { w.take(rt) }

// resume closes a reader in the middle of what it reads, and goes on from where it was.
func (w *world) resume(rt *rapid.T) {
	f := w.take(rt)
	f.settle(rt)
	if f.view == nil {
		return // closed before its snapshot
	}
	for range rapid.IntRange(0, 3).Draw(rt, "missed") {
		w.facts(rt)
	}
	w.follow(rt, f, mihf.SubscribeRequest{Hints: true, Boot: w.bed.Boot(), After: f.place})
}

func (w *world) register(rt *rapid.T) {
	spec := mihf.FlowSpec{RTT: 100 * time.Millisecond}
	spec.LateFreeze = rapid.Bool().Draw(rt, "late")
	spec.Link = rapid.SampledFrom([]mihf.LinkID{wlan, wwan}).Draw(rt, "link")
	if _, err := w.flows.Register(spec); err != nil {
		rt.Fatal(err)
	}
}
