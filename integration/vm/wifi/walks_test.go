package wifi

import (
	"context"
	"slices"
	"testing"
	"time"

	"mihf.dev/integration/vm"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A walked is what came of one walk. Leads are counted to the last data frame that the medium
// delivered; what never came has none.
type walked struct {
	lane
	last                    mihf.Time
	going, frozen, crossing lead          // Link_Going_Down, the flow's Freeze, a crossing of a CQM level
	lost                    time.Duration // from the last data frame to the kernel's word
	hinted, bare            losses
	tcpAfter                int // segments that TCP sent after the last data frame
	prediction              mihf.PredictionID
	begin                   mihf.Time
}

// A lead is a time before the loss; it may be negative.
type lead struct {
	time.Duration
	came bool
}

// losses are packets of a stream.
type losses struct{ sent, fade, after int }

// inTime reports whether a lead is at least the flow's RTT.
func (w *walked) inTime(l lead) bool { return l.came && l.Duration >= w.rtt }

// walk has all lanes walk away at once, each with a stream that obeys hints, one without, and
// TCP, and returns when all are lost.
func (d *daemon) walk(lanes []*lane) (out []*walked) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type flows struct {
		hinted, bare *stream
		tcp          *tcpFlow
		frames       func() int
	}
	all := make([]flows, len(lanes))
	for i, l := range lanes {
		d.setCQM(l.name, cqmDBm)
		all[i] = flows{hinted: d.stream(ctx, l), bare: d.stream(ctx, l), tcp: d.tcp(ctx, l), frames: d.send(l.radio, streamEvery)}
		all[i].hinted.hinted(ctx, d, l)
	}
	d.SetLoss(medium.SNR{})
	begin, longest := clock.Boot().Now(), time.Duration(0)
	for _, l := range lanes {
		d.Join(l.radio, ap1, l.walk())
		longest = max(longest, standing+time.Duration((fromDBm-toDBm)/l.pace*float64(time.Second)))
	}
	time.Sleep(longest)
	for _, l := range lanes {
		d.eventually("the end of "+l.name, func() bool { return d.event(begin, l.link, mihf.LinkDown).had != 0 })
	}
	cancel()
	for i, l := range lanes {
		f := all[i]
		f.frames()
		f.hinted.wait()
		f.bare.wait()
		f.tcp.wait()
		w := &walked{lane: *l, last: d.Truth(ap1, l.radio).LastData, begin: begin}
		going := d.event(begin, l.link, mihf.LinkGoingDown)
		w.prediction = going.Prediction.ID
		w.going = before(w.last, going.had)
		w.frozen = before(w.last, f.hinted.freezeAt())
		if c, ok := d.kernel.first(begin, l.name, crossed); ok {
			w.crossing = before(w.last, c.at)
		}
		if k, ok := d.kernel.first(begin, l.name, disconnected); ok {
			w.lost = k.at.Sub(w.last)
		}
		w.hinted, w.bare, w.tcpAfter = f.hinted.losses(w.last), f.bare.losses(w.last), f.tcp.after(w.last)
		out = append(out, w)
	}
	d.SetLoss(medium.NoLoss{})
	return out
}

func before(last, at mihf.Time) lead { return lead{last.Sub(at), at != 0} }

// event is the first of a kind on a link behind a moment; the zero moment: there was none.
func (d *daemon) event(after mihf.Time, link mihf.LinkID, k mihf.Kind) moment {
	for _, e := range d.fronts[0].of(link, k) {
		if e.had >= after {
			return e
		}
	}
	return moment{}
}

// walkAll has so many walks walked, as many at a time as there are lanes.
func (d *daemon) walkAll(lanes []*lane, count int) (out []*walked) {
	d.t.Helper()
	for n := 0; n < count; n += len(lanes) {
		batch := lanes[:min(len(lanes), count-n)]
		for i, l := range batch {
			l.draw(n+i, count)
		}
		out = append(out, d.walk(batch)...)
		for _, l := range batch {
			d.Join(l.radio, ap1, medium.Steady(-55))
		}
		d.attached(lanes)
	}
	for _, w := range out {
		d.t.Logf("%.1f dB/s, RTT %3d ms: before the last data frame Link_Going_Down %v, Freeze %v, CQM %v; lost with hints %+v, without %+v, TCP sent %d after",
			w.pace, w.rtt.Milliseconds(), w.going, w.frozen, w.crossing, w.hinted, w.bare, w.tcpAfter)
	}
	return out
}

func (l lead) String() string {
	if !l.came {
		return "never"
	}
	return l.Round(time.Millisecond).String()
}

// share is how many of the walks are so.
func share(list []*walked, so func(*walked) bool) (n int) {
	for _, w := range list {
		if so(w) {
			n++
		}
	}
	return n
}

// enough is 95 of a hundred, and of a sample all but one.
func enough(of int) int { return min(of-1, (of*95+99)/100) }

// wantLeads checks what the walks are to show.
func wantLeads(t *testing.T, list []*walked) {
	t.Helper()
	for _, c := range []struct {
		what string
		so   func(*walked) bool
	}{
		{"announced one RTT before the last data frame", func(w *walked) bool { return w.inTime(w.going) }},
		{"frozen one RTT before the last data frame", func(w *walked) bool { return w.inTime(w.frozen) }},
		{"with nothing sent after the last data frame", func(w *walked) bool { return w.hinted.after == 0 }},
	} {
		if n := share(list, c.so); n < enough(len(list)) {
			t.Errorf("%d of %d walks were %s", n, len(list), c.what)
		}
	}
	// Without hints the loss comes as a surprise: else the test shows nothing.
	if n := share(list, func(w *walked) bool { return w.bare.after > 0 }); n < enough(len(list)) {
		t.Errorf("without hints %d of %d walks had packets sent after the last data frame", n, len(list))
	}
}

// Stations walk away at 1 to 6 dB/s with shadowing: a sample. make results has all.
func TestWalks(t *testing.T) {
	d, lanes := startLanes(t, setup{fronts: 1})
	wantLeads(t, d.walkAll(lanes, len(lanes)))
}

// still is the signal of a lane that stays: at one place, or going slowly to and fro.
func (l *lane) still(i int) medium.Signal {
	levels := []float64{-55, -65, -72}
	var s medium.Signal = medium.Steady(levels[i%3])
	if i >= len(levels) {
		const leg = 60 * time.Second
		var script medium.Script
		for n := range 120 { // to -57 and to -75 dBm and back, at 0.3 dB/s
			script = append(script, medium.Point{At: time.Duration(n) * leg, DBm: []float64{-57, -75}[n%2]})
		}
		s = script
	}
	return medium.NewShadow(s, shadowDB, shadowLasts, time.Hour, uint64(100+i))
}

// alarms has the lanes stay, with data, and returns how many losses were announced, and how
// often the signal crossed a CQM level.
func (d *daemon) alarms(lanes []*lane, length time.Duration) (announced, crossings int) {
	d.t.Helper()
	d.SetLoss(medium.SNR{})
	begin := clock.Boot().Now()
	var stops []func() int
	for i, l := range lanes {
		d.setCQM(l.name, cqmDBm+8)
		d.Join(l.radio, ap1, l.still(i))
		stops = append(stops, d.send(l.radio, 5*streamEvery))
	}
	time.Sleep(length)
	for i, l := range lanes {
		stops[i]()
		for _, e := range d.fronts[0].of(l.link, mihf.LinkGoingDown) {
			if e.had >= begin && e.Prediction.Revision == 0 {
				announced++
			}
		}
		if e := d.event(begin, l.link, mihf.LinkDown); e.had != 0 {
			d.t.Errorf("%s was lost", l.name)
		}
		crossings += d.kernel.count(begin, l.name, crossed)
	}
	return announced, crossings
}

// Stations that stay, or move slowly, give no false alarm: a sample. make results has 30
// minutes of six stations.
func TestStill(t *testing.T) {
	d, lanes := startLanes(t, setup{fronts: 1})
	if n, _ := d.alarms(lanes, time.Minute); n > 0 {
		t.Errorf("%d losses announced", n)
	}
}

// quantiles are those of what came; 0 where nothing did.
func quantiles(list []*walked, of func(*walked) lead) (p10, p50, p90 time.Duration) {
	var all []time.Duration
	for _, w := range list {
		if l := of(w); l.came {
			all = append(all, l.Duration)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	at := func(q int) time.Duration { return all[(len(all)-1)*q/100] }
	return at(10), at(50), at(90)
}

// explained is why a prediction was announced.
func (d *daemon) explained(id mihf.PredictionID) *mihf.Explanation {
	d.t.Helper()
	e, err := d.client().Explain(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

// full skips what only make results measures.
func full(t *testing.T) {
	t.Helper()
	vm.Guest(t)
	if !vm.Full() {
		t.Skip("MIHF_FULL is not set: only make results measures all")
	}
}
