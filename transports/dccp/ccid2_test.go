package dccp

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

// window drives a sender of CCID 2 with acknowledgements made by hand.
type window struct {
	t   *testing.T
	now mihf.Time
	c   *Conn
	s   *sender2
	seq Seq
	got ackVector
}

func newWindow(t *testing.T) *window {
	t.Helper()
	c, err := NewClient(Config{MTU: 1424}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := &window{t: t, now: mihf.Time(time.Hour), c: c, seq: 100}
	c.gss = w.seq
	w.s = newSender2(w.now, c)
	w.got.add(w.seq)
	return w
}

// send sends up to n packets with data, as far as the window lets it, and returns how many.
func (w *window) send(n int) (sent int) {
	for range n {
		if !w.s.ready(w.now, 1000).Due(w.now) {
			break
		}
		w.seq = w.seq.Add(1)
		w.s.data(w.now, w.seq, 1000)
		sent++
	}
	return sent
}

// arrive acknowledges the newest n packets, but for those that lie `lost` before the
// newest.
func (w *window) arrive(n int64, lost ...int64) {
	w.now = w.now.Add(100 * time.Millisecond)
	gone := map[int64]bool{}
	for _, l := range lost {
		gone[l] = true
	}
	for i := n - 1; i >= 0; i-- {
		if !gone[i] {
			w.got.add(w.seq.Add(-i))
		}
	}
	w.ack()
}

func (w *window) ack() {
	a := arrival{typ: TypeAck, ack: w.got.newest, elapsed: -1}
	b := w.got.append(nil)
	r := ReadOptions(b)
	for o := (Option{}); r.Next(&o); {
		a.vectors[a.nvectors] = o.Data
		a.nvectors++
	}
	w.s.acked(w.now, &a)
}

func (w *window) want(cwnd, pipe int64) {
	w.t.Helper()
	if w.s.cwnd != cwnd || w.s.pipe != pipe {
		w.t.Fatalf("cwnd %d, pipe %d; want %d, %d", w.s.cwnd, w.s.pipe, cwnd, pipe)
	}
}

// RFC 4341, section 5.
func TestWindow(t *testing.T) {
	t.Run("initial, and no more than cwnd in flight", func(t *testing.T) {
		w := newWindow(t)
		w.want(3, 0) // RFC 3390: 4380 bytes
		if n := w.send(10); n != 3 {
			t.Fatalf("sent %d", n)
		}
		w.want(3, 3)
	})
	t.Run("slow-start grows by one for two, at most Ack Ratio/2 an Ack", func(t *testing.T) {
		w := newWindow(t)
		w.send(10)
		w.arrive(3)
		w.want(4, 0)
	})
	t.Run("a duplicate acknowledgement changes nothing", func(t *testing.T) {
		w := newWindow(t)
		w.send(10)
		w.arrive(2)
		cwnd, pipe := w.s.cwnd, w.s.pipe
		w.ack()
		w.want(cwnd, pipe)
	})
	t.Run("three later packets tell of a loss, which halves the window once", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 20
		w.send(20)
		w.arrive(20, 10, 12, 5)
		w.want(10, 0)
		if w.s.losses != 3 || w.s.ssthresh != 10 {
			t.Errorf("losses %d, ssthresh %d", w.s.losses, w.s.ssthresh)
		}
		w.send(10)
		w.arrive(10, 6)
		w.want(5, 0)
	})
	t.Run("two later packets do not", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 20
		w.send(20)
		w.arrive(20, 2)
		if w.s.losses != 0 || w.s.pipe != 1 {
			t.Errorf("losses %d, pipe %d", w.s.losses, w.s.pipe)
		}
	})
	t.Run("a packet that was only late counts as arrived", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 20
		w.send(20)
		w.arrive(20, 10)
		w.got.add(w.seq.Add(-10))
		w.ack()
		if w.s.losses != 0 {
			t.Errorf("losses %d", w.s.losses)
		}
		w.want(10, 0)
	})
	t.Run("congestion avoidance grows by one a window", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd, w.s.ssthresh = 10, 10
		for range 3 {
			w.send(int(w.s.cwnd))
			w.arrive(w.s.cwnd)
		}
		w.want(13, 0)
	})
	t.Run("a timeout empties the pipe and starts from one", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 20
		w.send(20)
		w.arrive(1)
		rto := w.s.rto
		w.now = w.s.next()
		w.s.advance(w.now)
		w.want(1, 0)
		if w.s.ssthresh != 10 || w.s.rto != 2*rto {
			t.Errorf("ssthresh %d, rto %v after %v", w.s.ssthresh, w.s.rto, rto)
		}
	})
	t.Run("never below one", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 1
		for range 3 {
			w.s.congestion()
		}
		w.want(1, 0)
		if w.s.ssthresh != 2 {
			t.Errorf("ssthresh %d", w.s.ssthresh)
		}
	})
	t.Run("idle time halves it for each timeout", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 64
		w.now = w.now.Add(2*w.s.rto + w.s.rto/2)
		w.s.ready(w.now, 1)
		w.want(16, 0)
		w.now = w.now.Add(time.Hour)
		w.s.ready(w.now, 1)
		w.want(3, 0)
	})
	t.Run("no growth while the application limits", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd, w.s.ssthresh = 40, 80
		for range 10 {
			w.send(4)
			w.arrive(4)
		}
		w.want(40, 0)
	})
	t.Run("a mark is a congestion event", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 20
		w.send(20)
		a := arrival{typ: TypeAck, ack: w.seq, elapsed: -1, nvectors: 1}
		a.vectors[0] = []byte{stateMarked << 6, 18}
		w.now = w.now.Add(time.Millisecond)
		w.s.acked(w.now, &a)
		w.want(10, 0)
	})
	t.Run("Receive Buffer drops lower it by one each, Corrupt ones halve it", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 20
		w.send(20)
		drop := func(blocks ...byte) {
			a := arrival{typ: TypeAck, ack: w.seq, elapsed: -1, nvectors: 1, ndrops: 1}
			a.vectors[0] = []byte{19}
			a.drops[0] = blocks
			w.s.acked(w.now, &a)
		}
		drop(0, 0x80|byte(DropReceiveBuffer)<<4|2)
		w.want(17, 0)
		drop(0, 0x80|byte(DropReceiveBuffer)<<4|2) // told again
		w.want(17, 0)
		w.send(1)
		drop(0x80 | byte(DropCorrupt)<<4)
		w.want(8, 0)
	})
	t.Run("Slow Receiver stops growth for a round-trip", func(t *testing.T) {
		w := newWindow(t)
		w.send(3)
		a := arrival{typ: TypeAck, ack: w.seq, elapsed: -1, nvectors: 1, slow: true}
		a.vectors[0] = []byte{2}
		w.s.acked(w.now, &a)
		w.want(3, 0)
	})
	t.Run("the window is bounded by the Sequence Window", func(t *testing.T) {
		w := newWindow(t)
		w.s.cwnd = 1000
		w.s.limit(100)
		if n := w.send(1000); n != 100 {
			t.Errorf("sent %d", n)
		}
	})
}

// RFC 4341, section 6.1.2: lost Acks double the Ack Ratio, not beyond half the window.
func TestAckRatio(t *testing.T) {
	w := newWindow(t)
	w.s.cwnd = 20
	lose := func() {
		w.send(int(w.s.cwnd))
		w.s.acksLost = 5
		w.arrive(w.s.pipe)
		w.s.windowEnd = w.seq // the next one judges
	}
	lose()
	lose()
	if r := w.s.wantsRatio(); r < 4 || r > int(w.s.cwnd+1)/2 {
		t.Errorf("ratio %d with cwnd %d", r, w.s.cwnd)
	}
	for range 400 {
		w.send(int(w.s.cwnd))
		w.arrive(max(w.s.pipe, 1))
	}
	if r := w.s.wantsRatio(); r != 2 {
		t.Errorf("ratio %d after clean windows", r)
	}
}

// A freeze keeps the window; what was in the air is neither lost nor waited for.
func TestWindowFrozen(t *testing.T) {
	for name, c := range map[string]struct {
		thaw thaw
		cwnd int64
	}{
		"as before":       {thaw{}, 40},
		"slower path":     {thaw{bytesPerSecond: 142400, rtt: 100 * time.Millisecond}, 10},
		"faster path":     {thaw{bytesPerSecond: 1e9}, 40},
		"to recovery":     {thaw{recovery: true}, 3},
		"nothing is left": {thaw{bytesPerSecond: 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(t)
			w.send(3)
			w.arrive(3)
			w.s.cwnd = 40
			w.send(40)
			w.s.freeze(w.now)
			if w.s.next() != 0 {
				t.Error("a timer runs while frozen")
			}
			w.now = w.now.Add(10 * time.Minute)
			w.s.thaw(w.now, &c.thaw)
			w.want(c.cwnd, 0)
			if w.s.losses != 0 || !w.s.ready(w.now, 1).Due(w.now) {
				t.Errorf("losses %d", w.s.losses)
			}
		})
	}
}
