package engine_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/queue"
	"mihf.dev/predictors/level"
)

// The same seed and commit give the same history.
var (
	seed  = flag.Uint64("seed", 0, "seed of the simulations; 0: one from the clock")
	seeds = flag.Int("seeds", 1, "how many seeds to simulate")
)

// reaching is a seed whose history has everything in it.
const reaching = 1

func eachSeed(t *testing.T, f func(t *testing.T, seed uint64)) {
	t.Helper()
	first := *seed
	if first == 0 {
		f(t, reaching)
	}
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for i := range *seeds {
		s := first + uint64(i)
		t.Logf("reproduce with -run '%s' -seed %d -seeds 1", t.Name(), s)
		f(t, s)
		if t.Failed() {
			return
		}
	}
}

// Long histories of inputs of any kind, plausible or not, with all invariants checked after
// each. Played twice they are equal.
func TestLongNonsense(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 0))
		steps := make([]step, 800)
		for i := range steps {
			steps[i] = randomStep(r)
		}
		once := run(t, steps, nil)
		if again := run(t, steps, nil); !reflect.DeepEqual(once, again) {
			t.Error("the same inputs gave other outputs")
		}
		n := map[string]int{}
		for i := range once {
			n[kindOf(&once[i])]++
		}
		t.Logf("%d items: %v", len(once), n)
		if seed != reaching {
			return
		}
		for _, must := range []string{"freeze", "unfreeze", "switch", "prepare", "abandon", "link_going_down", "link_down", "link_event_rollback", "prediction_expired"} {
			if n[must] == 0 {
				t.Errorf("never a %s: the simulation does not reach what it should", must)
			}
		}
	})
}

func kindOf(it *queue.Item) string {
	if it.IsHint {
		return it.Hint.Kind.String()
	}
	return it.Event.Kind.String()
}

// walker is a person with a laptop between access points along a corridor, and a modem.
type walker struct {
	*engineTest
	r        *rand.Rand
	at, goal float64 // metres
	shadow   float64 // dB, slow
	ap       int     // associated; -1: none
	joining  mihf.Time
	address  mihf.Time // when DHCP answers
	routeOff mihf.Time // until when the route is withdrawn
	egress   mihf.LinkID
	facts    device
	freezes  map[mihf.FlowID]int
	losses   int
	inTime   int
}

const (
	apCount   = 4
	apSpacing = 90.0
)

func (w *walker) signal(ap int) float64 {
	d := math.Hypot(w.at-float64(ap)*apSpacing, 3)
	return -38 - 32*math.Log10(d) + w.shadow
}

// tick is a tenth of a second.
func (w *walker) tick() {
	if math.Abs(w.goal-w.at) < 1 || w.r.IntN(600) == 0 {
		w.goal = w.r.Float64()*apSpacing*(apCount+1) - apSpacing
	}
	w.at += 0.14 * math.Copysign(1, w.goal-w.at)
	w.shadow += -0.02*w.shadow + 0.5*w.r.NormFloat64()
	w.radio()
	w.network()
	w.advance(100 * time.Millisecond)
}

func (w *walker) poa(ap int) mihf.PoA { return mihf.PoA([]string{"A", "B", "C", "D"}[ap]) }

func (w *walker) radio() {
	if w.ap >= 0 {
		v := w.signal(w.ap) + 1.5*w.r.NormFloat64()
		if v > -100 && v < -10 && w.r.IntN(50) != 0 {
			w.give(wlan, radio(w.poa(w.ap), v))
		}
		switch {
		case w.signal(w.ap) < -88: // not heard any more
			w.leave(left(mihf.DownBeaconLoss, false))
		case w.signal(w.ap) < -78 && w.best() != w.ap && w.r.IntN(20) == 0:
			w.leave(left(mihf.DownExplicitDisconnect, true)) // the supplicant roams
			w.joining = w.now.Add(time.Duration(50+w.r.IntN(800)) * time.Millisecond)
		}
		return
	}
	if w.joining == 0 && w.signal(w.best()) > -82 {
		w.joining = w.now.Add(time.Duration(300+w.r.IntN(3000)) * time.Millisecond)
	}
	if w.joining.Due(w.now) {
		w.joining, w.ap = 0, w.best()
		w.give(wlan, association(mihf.AssociationAuthenticating, w.poa(w.ap), "home"))
		w.facts.down = false
		w.give(wlan, w.facts.facts())
		w.give(wlan, association(mihf.AssociationAuthorised, w.poa(w.ap), "home"))
		if len(w.facts.addrs) == 0 {
			w.address = w.now.Add(time.Duration(200+w.r.IntN(4000)) * time.Millisecond)
		}
	}
}

func (w *walker) best() int {
	best := 0
	for i := range apCount {
		if w.signal(i) > w.signal(best) {
			best = i
		}
	}
	return best
}

func (w *walker) leave(o *mihf.Observation) {
	w.ap = -1
	w.losses++
	for id := range w.freezes {
		if w.e.Flow(id).Link == wlan && w.flow(id).Frozen {
			w.inTime++
		}
	}
	w.give(wlan, o)
	w.facts.down = true
	w.give(wlan, w.facts.facts())
}

// network is DHCP, routes and the kernel's choice.
func (w *walker) network() {
	before := w.facts
	switch {
	case w.ap < 0 && len(w.facts.addrs) > 0 && w.r.IntN(100) == 0:
		w.facts.addrs, w.facts.routes = nil, nil // NetworkManager gives it up
	case w.ap >= 0 && w.address.Due(w.now):
		w.address = 0
		w.facts.addrs, w.facts.routes = wifi4.addrs, wifi4.routes
	case len(w.facts.routes) > 0 && w.r.IntN(1500) == 0:
		w.facts.routes, w.routeOff = nil, w.now.Add(time.Duration(500+w.r.IntN(8000))*time.Millisecond)
	case w.routeOff.Due(w.now):
		w.routeOff = 0
		if len(w.facts.addrs) > 0 {
			w.facts.routes = wifi4.routes
		}
	}
	if !reflect.DeepEqual(before, w.facts) {
		w.give(wlan, w.facts.facts())
	}
	to := wwan
	if w.ap >= 0 && len(w.facts.routes) > 0 {
		to = wlan
	}
	if to != w.egress {
		w.egress = to
		w.give("", egress(to))
		w.give("", peer("203.0.113.1", to))
	}
}

// An hour of walking, with the predictor in use.
func TestWalkingForAnHour(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		t.Helper()
		h := newEngine(t, func(c *engine.Config) { c.NewPredictor = func(mihf.LinkID) engine.Predictor { return level.New() } })
		w := &walker{engineTest: h, r: rand.New(rand.NewPCG(seed, 1)), ap: -1, freezes: map[mihf.FlowID]int{}, facts: device{down: true}}
		h.give(wwan, cell4.facts())
		for _, spec := range []mihf.FlowSpec{
			{ID: "tcp", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}, Link: wlan, RTT: 80 * time.Millisecond, MaxFreeze: 10 * time.Second},
			{ID: "dccp", Link: wlan, RTT: 200 * time.Millisecond, LateFreeze: true},
			{ID: "quic", Tuples: []mihf.Endpoints{tuple("", "203.0.113.1")}, Continuity: mihf.ContinuityRebinds, RTT: 50 * time.Millisecond},
		} {
			h.register(spec)
			w.freezes[spec.ID] = 0
		}
		n, moves, last := map[string]int{}, 0, mihf.Time(0)
		for range 36000 {
			w.tick()
			for i := range h.got {
				it := &h.got[i]
				n[kindOf(it)]++
				if it.IsHint && it.Hint.Kind == mihf.HintSwitch {
					moves++
					if it.Hint.Switch.Target == wlan && it.Hint.At.Sub(last) < 5*time.Second {
						t.Fatalf("sent back after %v", it.Hint.At.Sub(last))
					}
					last = it.Hint.At
				}
			}
			h.drop()
		}
		h.check.snapshot(h.now, h.e)
		t.Logf("%d losses, %d flows frozen in time; %v", w.losses, w.inTime, n)
		if n["link_going_down"] == 0 || n["link_handover_complete"] == 0 || n["freeze"] == 0 || w.inTime == 0 {
			t.Error("the simulation does not reach what it should")
		}
	})
}
