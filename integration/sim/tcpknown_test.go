package sim

import (
	"math"
	"testing"
	"time"

	"mihf.dev/integration/sim/tcp"
	"mihf.dev/mihf"
)

// every drops each nth packet that comes.
type every struct{ n, seen int }

func (e *every) Send(p *Packet) {
	if e.seen++; e.seen%e.n == 0 {
		p.Free()
		return
	}
	p.Forward()
}

// averageWindow runs a sender over a path of a round trip with one loss in every n segments, and
// returns what it delivers in a round trip.
func averageWindow(c tcp.Config, n int, rtt, length time.Duration) float64 {
	s := New(1)
	link := func(name string) *Link {
		return NewLink(s, LinkConfig{Name: name, RateBPS: 10e9, Delay: rtt / 2, QueuePackets: 10000})
	}
	f := NewTCPFlow(s, TCPConfig{Sender: c, Receiver: tcp.ReceiverConfig{AckDelay: -1}}, []Hop{&every{n: n}, link("down")}, []Hop{link("up")})
	got := uint64(0)
	f.OnDeliver = func(_ mihf.Time, k uint64) {
		if s.Elapsed() > length/4 {
			got += k
		}
	}
	f.Start(0)
	s.Run(length)
	return float64(got) / (length - length/4).Seconds() * rtt.Seconds()
}

// RFC 9438, 5.1: the average windows of Reno, sqrt(3/2)/sqrt(p), and of CUBIC,
// 1.054·RTT^¾/p^¾, for one loss in 1/p segments. The formulas have neither the round trip of the
// recovery nor fast convergence, by which CUBIC's plateau is lower after every other loss.
func TestKnownAverageWindows(t *testing.T) {
	for _, x := range []struct {
		name   string
		config tcp.Config
		n      int
		want   float64
	}{
		{"Reno, NewReno", tcp.Config{}, 1000, math.Sqrt(1.5 * 1000)},
		{"Reno, SACK", tcp.Config{Recovery: tcp.BySACK}, 1000, math.Sqrt(1.5 * 1000)},
		{"Reno, RACK", tcp.Config{Recovery: tcp.ByTime}, 1000, math.Sqrt(1.5 * 1000)},
		{"CUBIC, SACK", tcp.Config{Recovery: tcp.BySACK, Control: tcp.NewCUBIC}, 10000, 1.054 * math.Pow(0.1, 0.75) * math.Pow(10000, 0.75)},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := averageWindow(x.config, x.n, 100*time.Millisecond, time.Duration(x.n)*6*time.Millisecond+40*time.Second); got/x.want < 0.85 || got/x.want > 1.05 {
				t.Errorf("average window %.1f, want %.1f", got, x.want)
			}
		})
	}
}

// flowOver runs a flow alone on a link for half a minute.
func flowOver(c tcp.Config, l LinkConfig) (*TCPFlow, *Link) {
	s := New(1)
	l.Name, l.RateBPS, l.Delay = "down", 10e6, 20*time.Millisecond
	down := NewLink(s, l)
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 10e6, Delay: 20 * time.Millisecond, QueuePackets: 100})
	f := NewTCPFlow(s, TCPConfig{Sender: c}, []Hop{down}, []Hop{up})
	f.Start(0)
	s.Run(30 * time.Second)
	return f, down
}

func mbps(f *TCPFlow) float64 { return float64(f.Receiver.Delivered) * 1500 * 8 / 30 / 1e6 }

// BBR keeps the link busy with hardly a queue, and takes 1 % of random loss for no sign of
// congestion; Reno does, and gets what sqrt(3/2p) allows.
func TestBBR(t *testing.T) {
	c := tcp.Config{Recovery: tcp.ByTime, Control: tcp.NewBBR}
	f, down := flowOver(c, LinkConfig{QueuePackets: 400})
	if got := mbps(f); got < 9.8 {
		t.Errorf("%.2f Mbit/s", got)
	}
	if d := f.Sender.SRTT(); d > 60*time.Millisecond {
		t.Errorf("round trip %v of 41 ms", d)
	}
	if n := down.Stats().Dropped[Overflow]; n > 0 {
		t.Errorf("%d overflowed", n)
	}
	lossy := LinkConfig{QueuePackets: 50, LossRatio: 0.01}
	f, _ = flowOver(c, lossy)
	reno, _ := flowOver(tcp.Config{Recovery: tcp.ByTime}, lossy)
	if mbps(f) < 9.3 || mbps(reno) > 4.5 {
		t.Errorf("with 1 %% of loss: BBR %.2f, Reno %.2f Mbit/s", mbps(f), mbps(reno))
	}
}

// Where it has not seen the least round trip for 10 s, BBR takes its segments out of the network to
// look.
func TestBBRProbesTheRTT(t *testing.T) {
	s := New(1)
	down := NewLink(s, LinkConfig{Name: "down", RateBPS: 10e6, Delay: 20 * time.Millisecond, QueuePackets: 100})
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 10e6, Delay: 20 * time.Millisecond, QueuePackets: 100})
	f := NewTCPFlow(s, TCPConfig{Sender: tcp.Config{Recovery: tcp.BySACK, Control: tcp.NewBBR}}, []Hop{down}, []Hop{up})
	f.Start(0)
	// One that fills the queue: alone BBR sees the least round trip again and again.
	other := NewTCPFlow(s, TCPConfig{Flow: 1, Sender: tcp.Config{Recovery: tcp.BySACK}}, []Hop{down}, []Hop{up})
	other.Start(time.Second)
	low := 0
	was := false
	for range 6000 {
		s.Run(s.Elapsed() + 5*time.Millisecond)
		is := s.Elapsed() > time.Second && f.Sender.Window() <= 4
		if is && !was {
			low++
		}
		was = is
	}
	if low < 2 || low > 4 {
		t.Errorf("%d times in 30 s", low)
	}
}

// With reordering that three duplicates can't tell from loss, RACK sends nothing again for it once
// it has seen it; the senders that count duplicates go on and on.
func TestReordering(t *testing.T) {
	l := LinkConfig{QueuePackets: 100, ReorderRatio: 0.01, ReorderDelay: 8 * time.Millisecond}
	byTime, _ := flowOver(tcp.Config{Recovery: tcp.ByTime}, l)
	bySACK, _ := flowOver(tcp.Config{Recovery: tcp.BySACK}, l)
	if a, b := byTime.Receiver.Duplicates, bySACK.Receiver.Duplicates; a > 20 || b < 3*a {
		t.Errorf("came twice: by time %d, by SACK %d", a, b)
	}
	if mbps(byTime) < 1.5*mbps(bySACK) {
		t.Errorf("by time %.2f, by SACK %.2f Mbit/s", mbps(byTime), mbps(bySACK))
	}
}

// A receiver's window bounds the flow: 10 segments a round trip of 40 ms and the transmissions.
func TestReceiveWindowBounds(t *testing.T) {
	s := New(1)
	down := NewLink(s, LinkConfig{Name: "down", RateBPS: 10e6, Delay: 20 * time.Millisecond, QueuePackets: 100})
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 10e6, Delay: 20 * time.Millisecond, QueuePackets: 100})
	f := NewTCPFlow(s, TCPConfig{Receiver: tcp.ReceiverConfig{Window: 10, AckDelay: -1}}, []Hop{down}, []Hop{up})
	f.Start(0)
	s.Run(10 * time.Second)
	want := 10 / (0.04 + 0.0012 + 0.0000416) * 10
	if got := float64(f.Receiver.Delivered); math.Abs(got/want-1) > 0.02 {
		t.Errorf("%.0f segments, want %.0f", got, want)
	}
	f.SetReceiveWindow(0)
	s.Run(11 * time.Second)
	stopped := f.Receiver.Delivered
	s.Run(20 * time.Second)
	if f.Receiver.Delivered != stopped {
		t.Error("went on with a closed window")
	}
	f.SetReceiveWindow(10)
	s.Run(21 * time.Second)
	if f.Receiver.Delivered == stopped {
		t.Error("didn't go on when the window opened")
	}
}
