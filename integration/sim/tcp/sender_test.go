package tcp

import (
	"math"
	"testing"
	"time"
)

// RFC 5681, 3.1: in slow start the window grows by at most a segment for each acknowledgement;
// in congestion avoidance by one for each window acknowledged.
func TestSlowStartAndAvoidance(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 2})
	h.wantSend(0, 1)
	h.advance(100 * time.Millisecond)
	h.ack(1)
	h.wantSend(2, 3)
	h.ack(2)
	h.wantSend(4, 5)
	h.wantWindow(4, unlimited)
	h.s.control.(*reno).ssthresh = 4
	for seq := uint64(3); seq <= 5; seq++ {
		h.ack(seq)
		h.wantSend(seq + 3)
	}
	h.wantWindow(4, 4)
	h.ack(6)
	h.wantSend(9, 10)
	h.wantWindow(5, 4)
}

// A window that isn't used doesn't grow.
func TestUnusedWindow(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 4, Segments: 3})
	h.wantSend(0, 1, 2)
	h.advance(time.Millisecond)
	h.ack(3)
	h.wantSend()
	h.wantWindow(4, unlimited)
}

// RFC 3042 (limited transmit), RFC 5681, 3.2 and RFC 6582, 3.2: two of the ten are lost.
func TestNewReno(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 10})
	h.wantSend(upTo(10)...) // 0 and 4 are lost
	h.advance(100 * time.Millisecond)
	h.ack(0)
	h.wantSend(10)
	h.ack(0)
	h.wantSend(11)
	h.ack(0)
	h.wantSend(0) // "ssthresh = max(FlightSize / 2, 2)", without limited transmit; cwnd 5 + 3
	h.wantWindow(5, 5)
	for range 4 { // 5 + 3 + 4 = 12 are allowed, and outstanding
		h.ack(0)
		h.wantSend()
	}
	h.ack(0) // 9
	h.wantSend(12)
	h.ack(0) // 10
	h.wantSend(13)
	h.ack(4) // partial: "retransmit the first unacknowledged segment", deflate by 4, add 1
	h.wantSend(4, 14)
	if !h.s.Recovering() {
		t.Fatal("a partial acknowledgement ended the recovery")
	}
	h.ack(12) // full, all that was sent when it began: min(ssthresh, FlightSize + 1)
	h.wantWindow(4, 5)
	h.wantSend(15)
	if h.s.Recovering() {
		t.Fatal("still recovering")
	}
}

// RFC 6582, 3.2, step 2: duplicates of what was sent before the recovery ended begin no other.
func TestNewRenoNoSecondRecovery(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 10})
	h.wantSend(upTo(10)...)
	h.advance(time.Millisecond)
	h.expire(time.Second - time.Millisecond)
	h.wantSend(0)
	h.ack(10) // the rest had arrived
	h.wantSend(10, 11)
	h.ack(10)
	h.wantSend(12)
	h.ack(10)
	h.wantSend(13)
	h.ack(10)
	h.wantSend()
	if n := h.s.Stats().Recoveries; n != 0 {
		t.Errorf("%d recoveries", n)
	}
}

// RFC 6298, 2 and 5: 1 s at first, then SRTT + 4 RTTVAR, doubled at each expiry; RFC 5681, 3.1:
// ssthresh is set at the first expiry for a segment, cwnd is one segment.
func TestTimeout(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 10, MinRTO: 200 * time.Millisecond})
	h.wantSend(upTo(10)...)
	h.expire(time.Second)
	h.wantSend(0)
	h.wantWindow(1, 5)
	h.expire(2 * time.Second)
	h.wantSend(0)
	h.wantWindow(1, 5)
	h.advance(100 * time.Millisecond)
	h.ack(1) // SRTT 100, RTTVAR 50
	h.wantSend(1, 2)
	h.wantWindow(2, 5)
	if d := h.s.Next().Sub(h.now); d != 300*time.Millisecond {
		t.Errorf("timeout %v, want 300 ms", d)
	}
	h.advance(200 * time.Millisecond)
	h.ack(3) // RTTVAR 3/4·50 + 1/4·100 = 62.5, SRTT 112.5
	h.wantSend(3, 4, 5)
	if d := h.s.Next().Sub(h.now); d != 362500*time.Microsecond {
		t.Errorf("timeout %v, want 362.5 ms", d)
	}
}

// RFC 6298, 2.4 and 2.5: the least is 1 s unless configured, the most 60 s.
func TestTimeoutBounds(t *testing.T) {
	h := newHarness(t, Config{})
	h.wantSend(upTo(10)...)
	h.advance(time.Millisecond)
	h.ack(1)
	h.wantSend(10, 11)
	for _, s := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		h.expire(seconds(s))
		h.wantSend(1)
	}
}

// RFC 6675, 5: a segment is lost when three above it are reported; the first retransmission
// leaves at once, the others as the pipe allows. Window 10: 0 and 4 are lost.
func TestSACK(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 10, Recovery: BySACK})
	h.wantSend(upTo(10)...)
	h.advance(100 * time.Millisecond)
	h.ack(0, Block{1, 2})
	h.wantSend(10) // limited transmit: 9 in the pipe
	h.ack(0, Block{1, 3})
	h.wantSend(11)
	h.ack(0, Block{1, 4})
	h.wantSend(0) // pipe 12 - 3 - 1 = 8, over cwnd 5
	h.wantWindow(5, 5)
	h.ack(0, Block{5, 6}, Block{1, 4})
	h.wantSend()
	h.ack(0, Block{5, 7}, Block{1, 4})
	h.wantSend()
	h.ack(0, Block{5, 8}, Block{1, 4}) // now 4 is lost: 12 - 6 - 1 in the pipe
	h.wantSend()
	h.ack(0, Block{5, 9}, Block{1, 4}) // 12 - 7 - 1 = 4
	h.wantSend(4)
	h.ack(0, Block{5, 10}, Block{1, 4})
	h.wantSend(12) // NextSeg, rule 2
	h.ack(10)      // both repaired; not yet all that was sent when it began
	h.wantSend(13, 14)
	h.wantWindow(5, 5)
	h.ack(12)
	if h.s.Recovering() {
		t.Error("still recovering")
	}
	if st := h.s.Stats(); st.Recoveries != 1 || st.Retransmissions != 2 || st.Timeouts != 0 {
		t.Errorf("%+v", st)
	}
}

// RFC 6675, 5.1: after a timeout what the receiver has isn't sent again.
func TestSACKTimeout(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 6, Recovery: BySACK})
	h.wantSend(upTo(6)...)
	h.advance(10 * time.Millisecond)
	h.ack(0, Block{2, 3}, Block{4, 5})
	h.wantSend(6, 7)
	h.expire(time.Second - 10*time.Millisecond)
	h.wantSend(0)
	h.ack(1)
	h.wantSend(1, 3)
	h.ack(3)
	h.wantSend(5, 6)
}

// RFC 9438: the plateau and K (4.2), the multiplicative decrease (4.6), fast convergence (4.7),
// and that W_cubic(K) is the plateau.
func TestCUBICVectors(t *testing.T) {
	c := NewCUBIC(100).(*cubic)
	c.Congestion(1, 100)
	if c.cwnd != 70 || c.ssthresh != 70 || c.wMax != 100 {
		t.Fatalf("%+v", c)
	}
	c.begin(1)
	// K = cbrt(100·(1 - 0.7)/0.4) = cbrt(75)
	if want := math.Cbrt(75); math.Abs(c.k-want) > 1e-12 {
		t.Errorf("K %v, want %v", c.k, want)
	}
	for at, want := range map[float64]float64{0: 70, c.k: 100, c.k + 1: 100.4} {
		if got := c.curve(time.Duration(at * 1e9)); math.Abs(got-want) > 1e-6 {
			t.Errorf("W_cubic(%v) = %v, want %v", at, got, want)
		}
	}
	c.Congestion(2, 70)
	if math.Abs(c.wMax-70*1.7/2) > 1e-9 {
		t.Errorf("fast convergence: W_max %v, want %v", c.wMax, 70*1.7/2)
	}
	c.Timeout(3, 49, true)
	if c.cwnd != 1 || math.Abs(c.ssthresh-49*0.7) > 1e-9 {
		t.Errorf("after a timeout: %+v", c)
	}
	c.cwnd = c.ssthresh
	c.begin(4)
	if c.k != 0 || c.wMax != c.cwnd {
		t.Errorf("4.8: K %v, W_max %v, cwnd %v", c.k, c.wMax, c.cwnd)
	}
}

// RFC 9438, 4.3: with a short RTT the window grows as Reno's with the same average, by
// 3·(1 - 0.7)/(1 + 0.7) = 9/17 a round trip, and by 1 above the window before the loss.
func TestCUBICFriendly(t *testing.T) {
	c := NewCUBIC(20).(*cubic)
	c.Congestion(1, 20)
	now := Event{Now: 1, SRTT: time.Millisecond, Limited: true}
	grow := func(rounds int) float64 {
		before := c.wEst
		for range rounds {
			for range int(c.wEst) {
				now.Acked = 1
				c.Acked(now)
			}
			now.Now = now.Now.Add(time.Millisecond)
		}
		return (c.wEst - before) / float64(rounds)
	}
	now.Acked = 0
	c.Acked(now)
	if g := grow(8); math.Abs(g-9.0/17) > 0.04 {
		t.Errorf("grows by %.3f a round trip, want %.3f", g, 9.0/17)
	}
	grow(8)
	if g := grow(4); math.Abs(g-1) > 0.06 {
		t.Errorf("beyond the old window by %.3f, want 1", g)
	}
	if c.cwnd < c.wEst {
		t.Errorf("cwnd %v is below W_est %v", c.cwnd, c.wEst)
	}
}

// RFC 5681, 4.1: after an idle time of more than a timeout the window is the initial one.
func TestIdle(t *testing.T) {
	for name, control := range map[string]func(float64) Control{"Reno": NewReno, "CUBIC": NewCUBIC} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Config{InitialWindow: 2, Control: control})
			for seq := uint64(0); h.s.Window() < 8; seq++ {
				for _, ok := h.s.Poll(h.now); ok; _, ok = h.s.Poll(h.now) {
					h.echo = h.now
				}
				h.advance(time.Millisecond)
				h.ack(seq + 1)
			}
			h.window = 0
			h.ack(h.s.board.high)
			h.advance(10 * time.Second)
			h.window = 100
			h.ack(h.s.board.high)
			h.wantSend(h.s.board.high, h.s.board.high+1)
		})
	}
}

// RFC 9293, 3.8.6.1: a closed window is probed, ever more seldom, and opens again.
func TestClosedWindow(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 2})
	h.wantSend(0, 1)
	h.advance(10 * time.Millisecond)
	h.window = 0
	h.ack(2)
	h.wantSend()
	for _, s := range []int{1, 2, 4} {
		h.expire(seconds(s))
		h.wantSend(2)
		h.ack(2) // still closed
	}
	if st := h.s.Stats(); st.Probes != 3 || st.Timeouts != 0 {
		t.Errorf("%+v", st)
	}
	h.window = 10
	h.ack(2)
	h.wantSend(2, 3)
}

// Acknowledgements of what was never sent, and old ones, change nothing.
func TestStrangeAcks(t *testing.T) {
	h := newHarness(t, Config{InitialWindow: 4})
	h.wantSend(0, 1, 2, 3)
	h.ack(9)
	h.wantSend()
	h.advance(time.Millisecond)
	h.ack(2)
	h.wantSend(4, 5, 6)
	h.ack(1)
	h.wantSend()
	if h.s.Acknowledged() != 2 {
		t.Errorf("acknowledged %d", h.s.Acknowledged())
	}
}
