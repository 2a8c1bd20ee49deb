package freeze

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/mihf"
)

// Every packet of the video has a frame, and the mean rate is the video's.
func TestVideoPackets(t *testing.T) {
	v := &video{p: parametersForTest(t)}
	const frames = 240
	for tag, frame := uint64(0), 0; tag < v.frameEnd(frames-1); tag++ {
		for v.frameEnd(frame) <= tag {
			frame++
		}
		if got := v.frameOf(tag); got != frame {
			t.Fatalf("packet %d: frame %d, want %d", tag, got, frame)
		}
	}
	if bits := v.frameEnd(frames-1) * 500 * 8; bits != 10_000_000 {
		t.Errorf("%d bits in 10 s", bits)
	}
}

// The sender's queue is bounded; what is late doesn't count.
func TestVideoQueueAndDeadline(t *testing.T) {
	p := parametersForTest(t)
	v := &video{p: p, begin: mihf.Time(time.Second)}
	for range 5 {
		v.next()
	}
	if len(v.queue) != p.QoE.SenderQueue || v.dropped != int(v.made)-p.QoE.SenderQueue {
		t.Errorf("%d wait, %d dropped of %d", len(v.queue), v.dropped, v.made)
	}
	for want := range uint64(3) {
		if tag, ok := v.Next(0); !ok || tag != want {
			t.Errorf("packet %d, %v; want %d", tag, ok, want)
		}
	}
	v.arrived(v.captured(0).Add(time.Second), 0)
	v.arrived(v.captured(0).Add(time.Second+1), 1)
	v.arrived(v.captured(1).Add(time.Second), 12)
	if d := cmp.Diff([]int{1, 1, 0, 0, 0}, v.intime); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The model of the picture: intact at 38 dB, noise at 7 dB; what is missing keeps four fifths of
// what the last frame had above noise.
func TestPSNR(t *testing.T) {
	v := &video{p: parametersForTest(t)}
	for range 5 {
		v.next()
	}
	v.intime = []int{10, 0, 0, 0, 0}
	v.intime[3] = int(v.frameEnd(3) - v.frameEnd(2))
	v.intime[0] = int(v.frameEnd(0))
	want := []float64{38, 7 + 31*0.8, 7 + 31*0.64, 38, 7 + 31*0.8}
	for i, got := range v.psnr() {
		if math.Abs(got-want[i]) > 1e-9 {
			t.Errorf("frame %d: %v dB, want %v", i, got, want[i])
		}
	}
	if d := cmp.Diff([]float64{2, 3, 5, 7}, average([]float64{2, 4, 6, 8}, 2)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A sample of freeze-qoe: what comes in time is what each link carries.
func TestQoESample(t *testing.T) {
	p := parametersForTest(t)
	for v := range variants {
		seen := []viewing{p.view(1, v)}
		for i, x := range p.QoE.Visit {
			// The mean holds the first second as well, which the lowest leaves out.
			if m := p.visited(seen, i); m.share < 0.8*p.carries(x) || m.share > 1.05*p.carries(x) || m.psnr < m.lowest-0.5 {
				t.Errorf("%v, visit %d: %+v; the link carries %.2f", v, i, m, p.carries(x))
			}
		}
	}
}

// A sample of freeze-motivation: the longer the break, the longer the silence after it, up to the
// 64 s in which a packet always goes.
func TestMotivationSample(t *testing.T) {
	p := parametersForTest(t)
	b := p.index(t, "802.11b")
	all := make([]stationary, len(p.Technology))
	all[b] = stationaryTest["802.11b"]
	last := 0.0
	for _, g := range p.gaps(all[b]) {
		if g.length > time.Minute {
			continue // by the experiment
		}
		c := p.crossingOf(1, b, b, plain, all)
		c.outage = g.length
		o := p.cross(1, c)
		if g.figure == "4" && (o.first < 5 || o.first > 64) || g.figure == "3" && (o.first < 0.05 || o.first > 0.2) {
			t.Errorf("%+v: first packet after %.3f s", g, o.first)
		}
		last = max(last, o.first)
	}
	if last < 5 {
		t.Errorf("longest %.1f s", last)
	}
}

// A sample of freeze-fairness: neither flow starves the other.
func TestFairnessSample(t *testing.T) {
	p := parametersForTest(t)
	b := p.index(t, "802.11b")
	all := make([]stationary, len(p.Technology))
	all[b] = stationaryTest["802.11b"]
	for r := range rivals {
		g := p.share(1, p.crossingOf(1, b, b, frozen, all), r)
		payload := float64(p.Technology[b].RateBPS) / 8 * 20 * 500 / 532
		if sum := g.flow + g.tcp; sum < 0.85*payload || sum > 1.01*payload || g.flow < 0.05*sum || g.tcp < 0.05*sum {
			t.Errorf("%v: %+v of %.0f bytes", r, g, payload)
		}
	}
}

// Ratios are judged by rival: those of the other do not count.
func TestFairClaims(t *testing.T) {
	// One pair: NewReno with tfrc 1, freeze 1.2, LCI 1.4; CUBIC with 1, 1.6, 1.2.
	ratios := []float64{1, 1.2, 1.4, 1, 1.6, 1.2}
	var holds []bool
	for r := range rivals {
		for _, c := range fairClaims(ratios, r) {
			holds = append(holds, c.Holds)
		}
	}
	if d := cmp.Diff([]bool{true, false, false, false}, holds); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// All experiments give what they promise, with a plot and claims: here the quickest.
func TestRunQoE(t *testing.T) {
	r, err := runQoE(t.Context(), experiment.Options{Seed: 1, Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 5*int(variants) || len(r.Claims) != 4 || len(r.Plots) != 1 || len(r.Plots[0].Lines) != int(variants) {
		t.Errorf("%d rows, %d claims, %d plots", len(r.Rows), len(r.Claims), len(r.Plots))
	}
}
