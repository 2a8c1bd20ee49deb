package sim

import (
	"time"

	"mihf.dev/integration/sim/tcp"
	"mihf.dev/mihf"
)

// TCPConfig describes a TCP flow.
type TCPConfig struct {
	Flow         int // its number in the trace
	SegmentBytes int // on the wire, headers included; 0: 1500
	Sender       tcp.Config
	Receiver     tcp.ReceiverConfig
}

// A TCPFlow is a TCP connection on the bed.
type TCPFlow struct {
	Sender   *tcp.Sender
	Receiver *tcp.Receiver
	// OnDeliver, if set, is called when segments have come in order.
	OnDeliver func(now mihf.Time, segments uint64)

	sim     *Sim
	config  TCPConfig
	data    *Pool
	acks    *Pool
	wake    *Timer
	answer  *Timer
	started bool
}

// NewTCPFlow adds a connection whose segments go along forward and whose acknowledgements along
// back. Its receiver reports blocks if its sender takes them.
func NewTCPFlow(s *Sim, c TCPConfig, forward, back []Hop) *TCPFlow {
	if c.SegmentBytes == 0 {
		c.SegmentBytes = 1500
	}
	c.Receiver.SACK = c.Receiver.SACK || c.Sender.Recovery != tcp.ByDuplicates
	f := &TCPFlow{Sender: tcp.NewSender(c.Sender), Receiver: tcp.NewReceiver(c.Receiver), sim: s, config: c}
	f.data = NewPool(s, c.Flow, Data, forward, func() any { return new(tcp.Segment) }, f.segment)
	f.acks = NewPool(s, c.Flow, Feedback, back, func() any { return new(tcp.Ack) }, f.ack)
	f.wake = s.Timer(func(now mihf.Time) {
		f.Sender.Advance(now)
		f.send(now)
	})
	f.answer = s.Timer(func(now mihf.Time) {
		a, ok := f.Receiver.Advance(now)
		f.reply(a, ok)
	})
	return f
}

// Start begins to send when elapsed has passed since the beginning of the run.
func (f *TCPFlow) Start(elapsed time.Duration) {
	f.sim.At(elapsed, func() {
		f.started = true
		f.send(f.sim.now)
	})
}

// SetReceiveWindow changes what the receiver advertises, and says so to the sender.
func (f *TCPFlow) SetReceiveWindow(segments int) { f.reply(f.Receiver.SetWindow(segments), true) }

func (f *TCPFlow) send(now mihf.Time) {
	if !f.started {
		return
	}
	for g, ok := f.Sender.Poll(now); ok; g, ok = f.Sender.Poll(now) {
		p := f.data.Get(g.Seq, f.config.SegmentBytes)
		*p.Body.(*tcp.Segment) = g
		p.Forward()
	}
	f.wake.Set(f.Sender.Next())
}

func (f *TCPFlow) segment(p *Packet) {
	before := f.Receiver.Delivered
	a, ok := f.Receiver.OnSegment(f.sim.now, *p.Body.(*tcp.Segment))
	p.Free()
	if n := f.Receiver.Delivered - before; n > 0 && f.OnDeliver != nil {
		f.OnDeliver(f.sim.now, n)
	}
	f.reply(a, ok)
}

func (f *TCPFlow) reply(a tcp.Ack, ok bool) {
	if ok {
		p := f.acks.Get(a.Next, a.SizeBytes())
		*p.Body.(*tcp.Ack) = a
		p.Forward()
	}
	f.answer.Set(f.Receiver.Next())
}

func (f *TCPFlow) ack(p *Packet) {
	f.Sender.OnAck(f.sim.now, *p.Body.(*tcp.Ack))
	p.Free()
	f.send(f.sim.now)
}
