package sim

import (
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/tfrc"
)

// A Source gives an application's packets one after another. It is asked when one may leave.
type Source interface {
	// Next returns what the application calls the packet; false if there is none now.
	Next(now mihf.Time) (tag uint64, ok bool)
	// Waiting reports whether there is one.
	Waiting() bool
}

// TFRCConfig describes a flow with TCP-Friendly Rate Control.
type TFRCConfig struct {
	Flow          int // its number in the trace
	SegmentBytes  int // application data of a packet
	HeaderBytes   int // of a data packet, beside that
	FeedbackBytes int // of a report, on the wire
	Sender        tfrc.SenderConfig
	Receiver      tfrc.ReceiverConfig
	Source        Source // nil: there is always something to send
}

// A TFRCFlow is a TFRC connection on the bed.
type TFRCFlow struct {
	Sender   *tfrc.Sender
	Receiver *tfrc.Receiver

	// OnDeliver, if set, sees each packet that arrives, with the application's tag.
	OnDeliver func(now mihf.Time, p *Packet, tag uint64)
	// OnRate, if set, is called after each input to the sender.
	OnRate func(now mihf.Time)

	sim      *Sim
	config   TFRCConfig
	data     *Pool
	reports  *Pool
	wake     *Timer // a packet may leave
	timeout  *Timer // the sender's own deadline
	report   *Timer // the receiver's
	started  bool
	sent     uint64
	feedback mihf.Time
	sample   time.Duration
	arrived  tfrc.Packet
}

// tfrcData is the body of a data packet.
type tfrcData struct {
	header tfrc.Header
	tag    uint64
}

// NewTFRCFlow adds a connection whose data goes along forward and whose reports along back.
func NewTFRCFlow(s *Sim, c TFRCConfig, forward, back []Hop) *TFRCFlow {
	c.Sender.SegmentBytes, c.Receiver.SegmentBytes = c.SegmentBytes, c.SegmentBytes
	f := &TFRCFlow{Sender: tfrc.NewSender(c.Sender), Receiver: tfrc.NewReceiver(c.Receiver), sim: s, config: c}
	f.data = NewPool(s, c.Flow, Data, forward, func() any { return new(tfrcData) }, f.receive)
	f.reports = NewPool(s, c.Flow, Feedback, back, func() any { return new(tfrc.Report) }, f.takeReport)
	f.wake = s.Timer(f.pump)
	f.timeout = s.Timer(func(now mihf.Time) {
		f.Sender.Advance(now)
		f.changed(now)
	})
	f.report = s.Timer(func(now mihf.Time) { f.answer(now, f.Receiver.Advance(now)) })
	return f
}

// Start begins to send when elapsed has passed since the beginning of the run.
func (f *TFRCFlow) Start(elapsed time.Duration) {
	f.sim.At(elapsed, func() {
		f.started = true
		f.changed(f.sim.now)
	})
}

// Freeze stops the sender for at most lease.
func (f *TFRCFlow) Freeze(lease time.Duration) {
	f.Sender.Freeze(f.sim.now, lease)
	f.changed(f.sim.now)
}

// Unfreeze lets it go on.
func (f *TFRCFlow) Unfreeze(t tfrc.Thaw) {
	f.Sender.Unfreeze(f.sim.now, t)
	f.changed(f.sim.now)
}

// Wake tells that the source has something again.
func (f *TFRCFlow) Wake() { f.pump(f.sim.now) }

// Sent counts the packets sent.
func (f *TFRCFlow) Sent() uint64 { return f.sent }

// LastFeedback returns when the sender got a report last; zero: never.
func (f *TFRCFlow) LastFeedback() mihf.Time { return f.feedback }

// RTT returns the round-trip time that the last report told, queues included; 0: none yet.
func (f *TFRCFlow) RTT() time.Duration { return f.sample }

// changed goes on after an input to the sender.
func (f *TFRCFlow) changed(now mihf.Time) {
	if !f.started {
		return
	}
	if f.OnRate != nil {
		f.OnRate(now)
	}
	f.pump(now)
}

// pump sends what may leave now and sets the timers.
func (f *TFRCFlow) pump(now mihf.Time) {
	if !f.started {
		return
	}
	at := f.Sender.NextSend(now)
	for !at.IsZero() && at <= now && f.send(now) {
		at = f.Sender.NextSend(now)
	}
	if f.config.Source != nil && !f.config.Source.Waiting() {
		at = 0 // Wake goes on
	}
	f.wake.Set(at)
	f.timeout.Set(f.Sender.Next())
}

func (f *TFRCFlow) send(now mihf.Time) bool {
	tag := f.sent + 1
	if f.config.Source != nil {
		t, ok := f.config.Source.Next(now)
		if !ok {
			return false
		}
		tag = t
	}
	f.sent++
	p := f.data.Get(f.sent, f.config.SegmentBytes+f.config.HeaderBytes)
	d := p.Body.(*tfrcData)
	d.tag = tag
	f.Sender.Send(now, f.sent, f.config.SegmentBytes, &d.header)
	p.Forward()
	return true
}

func (f *TFRCFlow) receive(p *Packet) {
	now, d := f.sim.now, p.Body.(*tfrcData)
	f.arrived = tfrc.Packet{Header: d.header, Seq: p.Seq, Bytes: f.config.SegmentBytes}
	due := f.Receiver.Receive(now, &f.arrived)
	if f.OnDeliver != nil {
		f.OnDeliver(now, p, d.tag)
	}
	p.Free()
	f.answer(now, due)
}

func (f *TFRCFlow) answer(now mihf.Time, due bool) {
	if due {
		p := f.reports.Get(f.Receiver.Reports, f.config.FeedbackBytes)
		f.Receiver.Report(now, p.Body.(*tfrc.Report))
		p.Forward()
	}
	f.report.Set(f.Receiver.Next())
}

func (f *TFRCFlow) takeReport(p *Packet) {
	now, r := f.sim.now, p.Body.(*tfrc.Report)
	f.feedback = now
	if !r.SentAt.IsZero() {
		f.sample = now.Sub(r.SentAt) - r.Delay
	}
	f.Sender.Feedback(now, r)
	p.Free()
	f.changed(now)
}
