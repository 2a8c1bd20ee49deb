package tcp

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

// RFC 8985, 6.2, step 5: what was sent before something that arrived, by more than the RTT and the
// time for reordering, is lost; before that a timer waits for it.
func TestRACKReorderingWindow(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 4, Recovery: ByTime})
	h.wantSend(0, 1, 2, 3)
	h.advance(100 * time.Millisecond)
	h.ack(1) // the least RTT is 100 ms: a quarter is for reordering
	h.wantSend(4, 5)
	h.advance(10 * time.Millisecond)
	h.ack(1, Block{2, 4}) // 1 is late
	h.wantSend(6, 7)
	if h.s.Recovering() {
		t.Fatal("lost before the time for reordering is over")
	}
	h.expire(25 * time.Millisecond) // 110 ms, the RTT of those behind, and 25
	if !h.s.Recovering() {
		t.Fatal("not taken for lost")
	}
	h.wantSend(1)
}

// 6.2, step 4: with three segments reported above it and no reordering ever seen, nothing waits.
func TestRACKThreeAbove(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 6, Recovery: ByTime})
	h.wantSend(upTo(6)...)
	h.advance(100 * time.Millisecond)
	h.ack(0, Block{1, 3})
	h.wantSend(6, 7)
	h.ack(0, Block{1, 4})
	h.wantSend(0)
	if st := h.s.Stats(); st.Recoveries != 1 {
		t.Errorf("%+v", st)
	}
}

// The same, but late: it arrives within the time, nothing is sent again, and reordering is known.
func TestRACKReordering(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 4, Recovery: ByTime})
	h.wantSend(0, 1, 2, 3)
	h.advance(100 * time.Millisecond)
	h.ack(1)
	h.wantSend(4, 5)
	h.ack(1, Block{2, 4})
	h.wantSend(6, 7)
	h.advance(10 * time.Millisecond)
	h.ack(4)
	h.s.Advance(h.now.Add(time.Hour))
	if st := h.s.Stats(); st.Retransmissions != 0 || st.Recoveries != 0 {
		t.Errorf("%+v", st)
	}
	if r := h.s.repair.(*rack); !r.reordering {
		t.Error("reordering was not seen")
	}
}

// 6.2, step 4: a segment that was sent again for nothing widens the time, once a round trip; it
// narrows after 16 recoveries.
func TestRACKAdapts(t *testing.T) {
	s := NewSender(Config{Recovery: ByTime})
	r := s.repair.(*rack)
	s.board.high = 10
	s.dsack = true
	r.adapt(s, false)
	r.adapt(s, false)
	if r.steps != 2 {
		t.Fatalf("%d steps", r.steps)
	}
	s.board.una = 10
	r.adapt(s, false)
	if r.steps != 3 {
		t.Fatalf("%d steps after a round trip", r.steps)
	}
	s.dsack = false
	for range persistence - 1 {
		r.adapt(s, true)
	}
	if r.steps != 3 {
		t.Fatalf("%d steps after 15 recoveries", r.steps)
	}
	r.adapt(s, true)
	if r.steps != 1 {
		t.Errorf("%d steps after 16 recoveries", r.steps)
	}
}

// 7.2 and 7.3: two round trips after the last segment a probe goes, the highest again where there
// is nothing new; what is missing below it then shows by the report on the probe.
func TestTailLossProbe(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 5, Segments: 5, Recovery: ByTime})
	h.wantSend(0, 1, 2, 3, 4)
	h.advance(100 * time.Millisecond)
	h.ack(2) // 2, 3 and 4 are lost
	h.wantSend()
	h.expire(200 * time.Millisecond)
	h.wantSend(4)
	h.advance(100 * time.Millisecond)
	h.ack(2, Block{4, 5})
	h.wantSend(2, 3)
	if st := h.s.Stats(); st.TailProbes != 1 || st.Recoveries != 1 || st.Timeouts != 0 {
		t.Errorf("%+v", st)
	}
}

// 7.3: where there is new data, that is the probe, and no loss is concluded from it.
func TestTailProbeWithNewData(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 2, Recovery: ByTime})
	h.wantSend(0, 1)
	h.advance(100 * time.Millisecond)
	h.ack(1)
	h.wantSend(2, 3)
	h.expire(200 * time.Millisecond)
	h.wantSend(4)
	h.advance(100 * time.Millisecond)
	before := h.s.Window()
	h.ack(5)
	if h.s.Window() < before {
		t.Errorf("the window fell from %v to %v", before, h.s.Window())
	}
}

// 7.4: a probe that repaired the last segment has hidden a loss, which is answered once it is sure
// that it didn't come twice.
func TestTailProbeHidesALoss(t *testing.T) {
	for name, dsack := range map[string]bool{"repaired": false, "came twice": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Config{InitialWindow: 10, Recovery: ByTime})
			h.window = 3
			h.s.window = 3
			h.wantSend(0, 1, 2)
			h.advance(100 * time.Millisecond)
			h.ack(2)
			h.wantSend(3, 4)
			h.ack(4) // all but the last
			h.window = 1
			h.ack(4)
			h.wantSend()
			h.s.board.send(4, h.now)
			h.s.repair.(*rack).schedule(h.s, h.now)
			h.expire(h.s.Next().Sub(h.now))
			h.wantSend(4)
			before := h.s.Window()
			h.advance(100 * time.Millisecond)
			h.window = 5
			h.ack(5)
			h.wantSend(upTo(10)[5:]...)
			h.advance(100 * time.Millisecond)
			a := Ack{Next: 6, Window: h.window, Echo: h.echo}
			if dsack {
				a.Blocks[0], a.Used, a.DSACK = Block{4, 5}, 1, true
			}
			h.s.OnAck(h.now, a)
			if fell := h.s.Window() < before; fell == dsack {
				t.Errorf("window %v, before the probe %v", h.s.Window(), before)
			}
		})
	}
}

// RFC 6937, section 4: in a recovery from one loss of a window of 20, one segment is sent for every
// two that are delivered.
func TestProportionalReduction(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 20, Recovery: ByTime})
	h.wantSend(upTo(20)...)
	h.advance(100 * time.Millisecond)
	h.ack(0, Block{1, 4})
	sent, longest := 0, 0
	for to := uint64(5); ; to++ {
		n := 0
		for _, ok := h.s.Poll(h.now); ok; _, ok = h.s.Poll(h.now) {
			n++
		}
		sent, longest = sent+n, max(longest, n)
		if to > 20 {
			break
		}
		h.ack(0, Block{1, to})
	}
	// The retransmission, and half of the 19 that came; two at first, for the three that came before.
	if sent < 8 || sent > 10 || longest > 2 {
		t.Errorf("%d segments in the recovery, up to %d at once", sent, longest)
	}
	if h.s.Window() != 10 {
		t.Errorf("window %v", h.s.Window())
	}
}

// 6.3: at a timeout only the first segment and those that are old enough count as lost.
func TestRACKTimeout(t *testing.T) {
	s := NewSender(Config{Recovery: ByTime})
	r := s.repair.(*rack)
	for seq := range uint64(4) {
		s.board.send(seq, mihf.Time(1e9+int64(seq)*3e8))
	}
	r.rtt, r.minRTT, s.rto.srtt = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	r.timeout(s, mihf.Time(1.65e9))
	for seq, want := range []bool{true, true, false, false} {
		if got := s.board.at(uint64(seq)).lost; got != want {
			t.Errorf("segment %d: lost %v", seq, got)
		}
	}
}
