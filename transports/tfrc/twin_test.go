package tfrc

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

type arrival struct {
	seq     uint64
	at      mihf.Time
	counter int64 // unwrapped
	marked  bool
	nonData bool
}

// drawArrivals draws a sequence of packets: some lost, some without data, and either some
// marked or some late. (A mark makes those that are late lost, and the receiver that takes
// them back leaves the event where it began.)
func drawArrivals(t *rapid.T) []arrival {
	var list []arrival
	marks := rapid.Bool().Draw(t, "marks")
	now, counter := mihf.Time(time.Hour), int64(0)
	n := rapid.IntRange(5, 300).Draw(t, "packets")
	kinds := rapid.SliceOfN(rapid.IntRange(0, 29), n, n).Draw(t, "kinds")
	gaps := rapid.SliceOfN(rapid.IntRange(1, 60), n, n).Draw(t, "gaps")
	for i := range n {
		step := 0
		if gaps[i] > 25 {
			step = min(gaps[i]/25, 5)
		}
		now = now.Add(time.Duration(gaps[i]) * ms)
		counter += int64(step)
		a := arrival{seq: uint64(i + 1), at: now, counter: counter}
		switch k := kinds[i]; {
		case i > 0 && k < 4:
			continue // lost
		case k == 4:
			a.marked = marks
		case k == 5 && i > 0: // the first tells the round-trip time
			a.nonData = true
		}
		list = append(list, a)
	}
	for i := 1; i+1 < len(list); i++ { // swap neighbours: late by one place
		if !marks && kinds[i] == 6 {
			list[i], list[i+1] = list[i+1], list[i]
			list[i].at, list[i+1].at = list[i+1].at, list[i].at
			i++
		}
	}
	return list
}

// twinEvents is RFC 5348's section 5 word by word, over the whole list of arrivals: which
// packets begin a loss event.
func twinEvents(list []arrival, v Variant, rtt time.Duration) (starts []uint64) {
	type loss struct {
		seq     uint64
		at      float64
		counter int64
	}
	var losses []loss
	got := map[uint64]arrival{}
	for _, a := range list {
		got[a.seq] = a
	}
	highest := slices.MaxFunc(list, func(a, b arrival) int { return int(a.seq) - int(b.seq) }).seq
	for seq := list[0].seq; seq <= highest; seq++ {
		a, came := got[seq]
		if came && (!a.marked || a.nonData) {
			continue
		}
		var before, after arrival // S_before and S_after
		later := 0                // packets above seq, and a mark among them
		for _, x := range list {
			switch {
			case x.seq < seq && after.seq == 0 && x.seq > before.seq:
				before = x
			case x.seq > seq:
				if after.seq == 0 {
					after = x
				}
				if later++; x.marked && !x.nonData {
					later += dupThreshold
				}
			}
		}
		if came {
			losses = append(losses, loss{seq, float64(a.at), prevCounter(list, seq)})
		} else if later >= dupThreshold {
			part := float64(after.at-before.at) * float64(seq-before.seq) / float64(after.seq-before.seq)
			losses = append(losses, loss{seq, float64(before.at) + math.Floor(part), prevCounter(list, seq)})
		}
	}
	var last loss
	for i, l := range losses {
		separate := l.at > last.at+float64(rtt)
		if v == CCID3 {
			separate = l.counter-last.counter > 4
		}
		if i == 0 || separate {
			starts = append(starts, l.seq)
			last = l
		}
	}
	return starts
}

// prevCounter is C(X_prev) of RFC 4342, section 10.2. Only packets with data have counters.
func prevCounter(list []arrival, seq uint64) int64 {
	var prev arrival
	for _, a := range list {
		if a.seq < seq && a.seq > prev.seq && !a.nonData {
			prev = a
		}
	}
	return prev.counter
}

// The receiver keeps a few holes and nine intervals; its twin keeps all arrivals. Both
// must find the same loss events, and the same p.
func TestLossEventsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]Variant{RFC5348, CCID3}).Draw(t, "variant")
		list := drawArrivals(t)
		const rtt = 100 * ms
		r := NewReceiver(ReceiverConfig{Variant: v, SegmentBytes: 100})
		var rep Report
		for _, a := range list {
			p := Packet{Seq: a.seq, Bytes: 100, Marked: a.marked, NonData: a.nonData}
			p.RTT, p.WindowCounter = rtt, uint8(a.counter%counterValues)
			if r.Receive(a.at, &p) {
				r.Report(a.at, &rep)
			}
		}
		starts := twinEvents(list, v, rtt)
		if int(r.LossEvents) != len(starts) {
			t.Fatalf("%d loss events, the twin has %v", r.LossEvents, starts)
		}
		if len(starts) == 0 {
			return
		}
		r.Report(list[len(list)-1].at, &rep)
		if got := r.history.events[0].start; got != starts[len(starts)-1] {
			t.Fatalf("newest event at %d, the twin has %v", got, starts)
		}
		first := r.history.events[r.history.n-1].length
		if want := twinLossRate(starts, list, first); math.Abs(r.LossRate()-want) > 1e-9*want {
			var buf [historyLength + 1]float64
			t.Fatalf("p = %v, the twin has %v; intervals %v, loss events %v", r.LossRate(), want, r.history.lengths(&buf, r.highest), starts)
		}
	})
}

// twinLossRate is p by sections 5.3 and 5.4, with the synthetic first interval given.
func twinLossRate(starts []uint64, list []arrival, first float64) float64 {
	var highest uint64
	for _, a := range list {
		highest = max(highest, a.seq)
	}
	lengths := []float64{first}
	for i, s := range starts {
		end := highest + 1
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		length := float64(end - s)
		for _, a := range list {
			if a.nonData && a.seq >= s && a.seq < end {
				length--
			}
		}
		lengths = append(lengths, max(length, 1))
	}
	slices.Reverse(lengths)
	k := min(len(lengths)-1, 8)
	var tot0, tot1, w float64
	for i := range k {
		wi := 1.0
		if i >= 4 {
			wi = 2 * float64(8-i) / 10
		}
		tot0 += lengths[i] * wi
		tot1 += lengths[i+1] * wi
		w += wi
	}
	return w / max(tot0, tot1)
}
