package tcp

import (
	"math"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// harness drives a sender by hand. Time goes on by step at each input.
type harness struct {
	t      *testing.T
	s      *Sender
	now    mihf.Time
	echo   mihf.Time
	window int
}

func newHarness(t *testing.T, c Config) *harness {
	t.Helper()
	return &harness{t: t, s: NewSender(c), now: mihf.Time(time.Second), window: defaultWindow}
}

// wantSend polls and wants exactly these segments.
func (h *harness) wantSend(want ...uint64) {
	h.t.Helper()
	var got []uint64
	for g, ok := h.s.Poll(h.now); ok; g, ok = h.s.Poll(h.now) {
		got = append(got, g.Seq)
		h.echo = g.Sent
	}
	if len(got) != len(want) {
		h.t.Fatalf("sent %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			h.t.Fatalf("sent %v, want %v", got, want)
		}
	}
}

func upTo(end uint64) (all []uint64) {
	for seq := range end {
		all = append(all, seq)
	}
	return all
}

func seconds(s int) time.Duration { return time.Duration(s) * time.Second }

func (h *harness) advance(d time.Duration) { h.now = h.now.Add(d) }

func (h *harness) ack(next uint64, blocks ...Block) {
	a := Ack{Next: next, Window: h.window, Echo: h.echo, Used: len(blocks)}
	copy(a.Blocks[:], blocks)
	h.s.OnAck(h.now, a)
}

func (h *harness) wantWindow(cwnd, ssthresh float64) {
	h.t.Helper()
	if math.Abs(h.s.Window()-cwnd) > 1e-6 || math.Abs(h.s.Threshold()-ssthresh) > 1e-6 {
		h.t.Fatalf("cwnd %v, ssthresh %v; want %v, %v", h.s.Window(), h.s.Threshold(), cwnd, ssthresh)
	}
}

// expire lets the retransmission timer expire, which must be after d.
func (h *harness) expire(d time.Duration) {
	h.t.Helper()
	if got := h.s.Next().Sub(h.now); got != d {
		h.t.Fatalf("the timer expires in %v, want %v", got, d)
	}
	h.advance(d)
	h.s.Advance(h.now)
}
