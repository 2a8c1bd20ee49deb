package freeze

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/cmd/mihsim/internal/experiment"
)

// parametersForTest are those of the experiments, with less time to settle and to measure.
func parametersForTest(t *testing.T) *parameters {
	t.Helper()
	p, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Technology {
		p.Technology[i].SettleSeconds /= 4
	}
	p.Handover.MeasuredSeconds = 15
	p.Fairness.SettleSeconds, p.Fairness.AveragedSeconds = 10, 20
	p.QoE.VisitSeconds = 20
	return p
}

func (p *parameters) index(t *testing.T, name string) int {
	t.Helper()
	for i, x := range p.Technology {
		if x.Name == name {
			return i
		}
	}
	t.Fatalf("no technology %q", name)
	return 0
}

func TestParameters(t *testing.T) {
	p := parametersForTest(t)
	if len(p.Technology) != 4 || p.TFRC.SegmentBytes != 500 || p.Path.QueuePackets != 50 || len(p.QoE.Visit) != 5 {
		t.Errorf("%+v", p)
	}
}

// The stationary state of Table 3: a flow takes what the link has for its payload, and its queue
// is neither empty nor always full.
func TestStationary(t *testing.T) {
	p := parametersForTest(t)
	for _, name := range []string{"UMTS", "802.11b"} {
		x := p.Technology[p.index(t, name)]
		v := p.stationaryRun(1, x)
		payload := float64(x.RateBPS) / 8 * 500 / 532
		base := 2 * (x.DelaySeconds + p.Path.FirstDelaySeconds)
		full := base + 51*532*8/float64(x.RateBPS)
		if v.rate < 0.95*payload || v.rate > 1.001*payload || v.rtt < base || v.rtt > full || v.lossRate <= 0 {
			t.Errorf("%s: %+v; payload %.0f, round trip %.3f to %.3f", name, v, payload, base, full)
		}
	}
}

// stationaryTest is near what the stationary runs give, so that tests need none.
var stationaryTest = map[string]stationary{
	"UMTS": {rate: 45_100, rtt: 0.76}, "802.16": {rate: 1_116_000, rtt: 0.097},
	"802.11b": {rate: 1_292_000, rtt: 0.0396}, "802.11g": {rate: 6_343_000, rtt: 0.0247},
}

func (p *parameters) crossForTest(seed uint64, from, to int, v variant) outcome {
	all := make([]stationary, len(p.Technology))
	for i, x := range p.Technology {
		all[i] = stationaryTest[x.Name]
	}
	return p.cross(seed, p.crossingOf(seed, from, to, v, all))
}

// A sample of freeze-handover: nothing is lost while down, and less is wasted than by TFRC, which
// restarts at about the paper's 100 ms.
func TestHandoverSample(t *testing.T) {
	p := parametersForTest(t)
	for _, names := range [][2]string{{"802.11b", "802.11b"}, {"UMTS", "802.11b"}, {"802.11b", "UMTS"}} {
		from, to := p.index(t, names[0]), p.index(t, names[1])
		tfrc := p.crossForTest(1, from, to, plain)
		if tfrc.lostDown == 0 || tfrc.lostBreak < tfrc.lostDown || !(tfrc.first > 0) {
			t.Errorf("%v, TFRC: %+v", names, tfrc)
		}
		for _, v := range []variant{frozen, frozenLCI} {
			o := p.crossForTest(1, from, to, v)
			if o.lostDown != 0 || o.lostBreak != 0 {
				t.Errorf("%v, %v: lost %d, %d", names, v, o.lostDown, o.lostBreak)
			}
			if o.wasted >= tfrc.wasted || o.first >= tfrc.first {
				t.Errorf("%v, %v: wasted %.1f, first packet after %.3f s; TFRC %.1f, %.3f", names, v, o.wasted, o.first, tfrc.wasted, tfrc.first)
			}
			if v == frozenLCI && o.delivered < tfrc.delivered {
				t.Errorf("%v, %v: delivered %d, TFRC %d", names, v, o.delivered, tfrc.delivered)
			}
		}
	}
}

// The same seed gives the same outcome, and a freeze that comes while the queue is full still
// loses nothing: the lead counts it.
func TestCrossingIsDeterministic(t *testing.T) {
	p := parametersForTest(t)
	b := p.index(t, "802.11b")
	first := p.crossForTest(5, b, b, frozen)
	if d := cmp.Diff(first, p.crossForTest(5, b, b, frozen), cmp.AllowUnexported(outcome{})); d != "" {
		t.Errorf("(-first +second)\n%s", d)
	}
	if plain1, plain2 := p.crossForTest(5, b, b, plain), p.crossForTest(6, b, b, plain); plain1.lostBreak == plain2.lostBreak && plain1.wasted == plain2.wasted {
		t.Error("two seeds gave one outcome")
	}
}

// The integral of wasted capacity, by hand: 100 packets/s wanted; from 2 s on 50, from 4 s on 90,
// restored at 5 s.
func TestWaste(t *testing.T) {
	p := parametersForTest(t)
	w := &watcher{p: p, c: crossing{target: 100 * 500, limit: 45 * time.Second}, back: 10 * time.Second}
	w.out.restored = math.NaN()
	for at, rate := range []float64{0, 0, 50, 50, 90} {
		w.waste(w.back + time.Duration(at)*time.Second)
		w.rate = rate * 500
	}
	w.waste(15 * time.Second)
	if want := 200.0 + 100 + 10; math.Abs(w.out.wasted-want) > 1e-9 {
		t.Errorf("wasted %v, want %v", w.out.wasted, want)
	}
	w.rate = 0
	w.waste(10 * time.Minute) // the limit is 45 s
	if want := 310 + 100*40.0; math.Abs(w.out.wasted-want) > 1e-9 {
		t.Errorf("wasted %v, want %v", w.out.wasted, want)
	}
}

func TestSummary(t *testing.T) {
	p := parametersForTest(t)
	m := p.summary([]outcome{
		{lostDown: 2, lostBreak: 3, first: 1, restored: 2, wasted: 10, delivered: 5},
		{lostDown: 0, lostBreak: 1, first: math.NaN(), restored: math.NaN(), wasted: 20, delivered: 0},
	})
	want := summary{lostDown: 1, lostBreak: 2, first: 1, restored: (2 + 45) / 2.0, wasted: 15, delivered: 2.5, mostLost: 2, unrestored: 1}
	if d := cmp.Diff(want, m, cmp.AllowUnexported(summary{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestSteps(t *testing.T) {
	got := steps([]experiment.Point{{X: -9, Y: 1}, {X: 0, Y: 2}, {X: 3, Y: 5}, {X: 99, Y: 1}}, -5*time.Second, 20*time.Second)
	want := []experiment.Point{{X: 0, Y: 2}, {X: 3, Y: 2}, {X: 3, Y: 5}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
