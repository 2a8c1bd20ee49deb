package tcp

import (
	"fmt"
	"time"

	"mihf.dev/mihf"
)

// A Recovery says how a sender finds and repairs losses.
type Recovery uint8

// Recoveries.
const (
	ByDuplicates Recovery = iota // NewReno, RFC 6582
	BySACK                       // RFC 6675
	ByTime                       // RACK-TLP, RFC 8985, with selective acknowledgements
)

// Config describes a sender. Zero values have the defaults that are named.
type Config struct {
	Segments      uint64        // to send; 0: without end
	InitialWindow float64       // segments; 0: 10 (RFC 6928)
	MaxWindow     int           // segments, whatever the control says; 0: no limit
	MinRTO        time.Duration // 0: 1 s (RFC 6298, 2.4)
	Recovery      Recovery
	// Control makes the congestion control from the initial window; nil: NewReno.
	Control func(initial float64) Control
}

// Stats are what a sender has counted.
type Stats struct {
	Sent            uint64 // segments, retransmissions included
	Retransmissions uint64
	Recoveries      uint64 // fast recoveries
	Timeouts        uint64
	Probes          uint64 // of a closed window
	TailProbes      uint64 // for losses at the end of what was sent
}

// A Sender is the sending end of a connection.
type Sender struct {
	config  Config
	control Control
	board   board
	rto     rtoTimer
	repair  repair

	next     uint64 // the segment that is sent next; below board.high after a timeout
	window   int    // that the receiver has advertised
	expires  mihf.Time
	probes   mihf.Time // the next probe of a closed window
	probed   uint      // probes since it closed
	probeDue bool
	last     mihf.Time // when something was sent
	limited  bool      // the congestion window kept back what there was to send
	expired  uint64    // behind the segment for which the timer expired last
	dsack    bool      // the acknowledgement tells of a segment that came twice
	paceAt   mihf.Time // the next segment of a paced sender; zero: now, or when asked for
	rate     rateMeter
	stats    Stats
}

// repair is a way to recover from losses.
type repair interface {
	// acked takes an acknowledgement after the board has. fresh counts the segments that the
	// receiver newly has; a duplicate acknowledges nothing and changes no window.
	acked(s *Sender, e Event, fresh int, duplicate bool)
	// inFlight is FlightSize of RFC 5681, in segments.
	inFlight(s *Sender) int
	// delivered takes a segment that the receiver newly has; echo is the timestamp that came back.
	delivered(now mihf.Time, seq uint64, f *flight, echo mihf.Time)
	// pick returns what is to be sent next.
	pick(s *Sender, now mihf.Time) (seq uint64, ok bool)
	// sent takes a segment that was sent.
	sent(s *Sender, now mihf.Time, f *flight)
	// timeout takes an expiry of the retransmission timer.
	timeout(s *Sender, now mihf.Time)
	// next is when advance has something to do; zero: never.
	next() mihf.Time
	advance(s *Sender, now mihf.Time)
	// recovering reports whether a fast recovery is going on.
	recovering() bool
}

// NewSender returns a sender that may send at once. It panics if the configuration names no
// recovery that there is.
func NewSender(c Config) *Sender {
	if c.InitialWindow == 0 {
		c.InitialWindow = 10
	}
	if c.MinRTO == 0 {
		c.MinRTO = defaultMinRTO
	}
	if c.Control == nil {
		c.Control = NewReno
	}
	s := &Sender{config: c, control: c.Control(c.InitialWindow), rto: rtoTimer{least: c.MinRTO}, window: defaultWindow}
	switch c.Recovery {
	case ByDuplicates:
		s.repair = &newReno{}
	case BySACK:
		s.repair = &scoreboard{}
	case ByTime:
		s.repair = &rack{}
	default:
		panic(fmt.Sprintf("tcp: no recovery has the number %d", c.Recovery))
	}
	return s
}

// Stats returns what was counted.
func (s *Sender) Stats() Stats { return s.stats }

// Window returns the congestion window in segments, without what fast recovery adds to it.
func (s *Sender) Window() float64 { return s.control.Window() }

// Threshold returns the slow-start threshold in segments.
func (s *Sender) Threshold() float64 { return s.control.Threshold() }

// SRTT returns the smoothed RTT; 0 before the first sample.
func (s *Sender) SRTT() time.Duration { return s.rto.srtt }

// Acknowledged returns how many segments are acknowledged cumulatively.
func (s *Sender) Acknowledged() uint64 { return s.board.una }

// Outstanding returns how many segments are sent and not acknowledged cumulatively.
func (s *Sender) Outstanding() int { return s.board.outstanding() }

// Recovering reports whether a fast recovery is going on.
func (s *Sender) Recovering() bool { return s.repair.recovering() }

// allowed is the congestion window with its bound, in whole segments.
func (s *Sender) allowed() int {
	w := int(s.control.Window())
	if s.config.MaxWindow > 0 {
		w = min(w, s.config.MaxWindow)
	}
	return w
}

// hasNew reports whether the segment behind all that was sent exists and fits the receiver's window.
func (s *Sender) hasNew() bool {
	seq := s.board.high
	return (s.config.Segments == 0 || seq < s.config.Segments) && seq < s.board.una+uint64(s.window)
}

// Poll returns the next segment that may leave now; false if there is none. It is asked until
// there is none, after each input.
func (s *Sender) Poll(now mihf.Time) (Segment, bool) {
	if s.probeDue {
		return s.probe(now), true
	}
	if s.board.outstanding() == 0 && !s.last.IsZero() && now.Sub(s.last) > s.rto.timeout() {
		s.control.Idle(now, s.config.InitialWindow) // RFC 5681, 4.1
		s.last = now
	}
	if s.paceAt > now {
		return Segment{}, false
	}
	seq, ok := s.repair.pick(s, now)
	if !ok {
		s.paceAt = 0 // an acknowledgement will tell
		s.limited = s.next < s.board.high || s.board.lost > 0 || s.hasNew()
		if !s.limited {
			s.rate.idle(s.board.pipe())
		}
		s.watchWindow(now)
		return Segment{}, false
	}
	s.probes, s.probed = 0, 0
	return s.send(now, seq), true
}

func (s *Sender) send(now mihf.Time, seq uint64) Segment {
	pipe := s.board.pipe()
	f := s.board.send(seq, now)
	s.rate.sent(now, pipe, f)
	if p, ok := s.control.(Paced); ok {
		s.pace(now, p.PacingRate())
	}
	s.last = now
	s.stats.Sent++
	if f.times > 1 {
		s.stats.Retransmissions++
	}
	if s.expires.IsZero() {
		s.expires = now.Add(s.rto.timeout()) // RFC 6298, 5.1
	}
	s.repair.sent(s, now, f)
	return Segment{Seq: seq, Sent: now, Retransmission: f.times > 1}
}

// paced reports whether the control spaces the segments itself.
func (s *Sender) paced() bool {
	_, ok := s.control.(Paced)
	return ok
}

// pace sets when the next segment may leave.
func (s *Sender) pace(now mihf.Time, rate float64) {
	s.paceAt = 0
	if rate > 0 {
		s.paceAt = now.Add(max(time.Duration(float64(time.Second)/rate), 1))
	}
}

// deliver takes a segment that the receiver newly has.
func (s *Sender) deliver(now mihf.Time, seq uint64, f *flight, echo mihf.Time) {
	s.rate.delivered(now, f)
	s.repair.delivered(now, seq, f, echo)
}

// watchWindow sets the persist timer where only the receiver's window is in the way.
func (s *Sender) watchWindow(now mihf.Time) {
	more := s.config.Segments == 0 || s.board.high < s.config.Segments
	if s.window > 0 || s.board.outstanding() > 0 || !more {
		s.probes = 0
		return
	}
	if s.probes.IsZero() {
		s.probes = now.Add(min(s.rto.timeout()<<s.probed, maxRTO))
	}
}

// probe sends the next segment into a closed window. It isn't put on the board: nobody waits
// for it, and the receiver has no room for it.
func (s *Sender) probe(now mihf.Time) Segment {
	s.probeDue = false
	s.probed = min(s.probed+1, 16)
	s.probes = now.Add(min(s.rto.timeout()<<s.probed, maxRTO))
	s.stats.Sent++
	s.stats.Probes++
	return Segment{Seq: s.board.high, Sent: now, Probe: true}
}

// OnAck takes an acknowledgement.
func (s *Sender) OnAck(now mihf.Time, a Ack) {
	if a.Next > s.board.high || a.Next < s.board.una {
		return // of something that was never sent, or overtaken by a newer one
	}
	e := Event{Now: now, InFlight: s.repair.inFlight(s), Acked: int(a.Next - s.board.una), Limited: s.limited}
	duplicate := e.Acked == 0 && s.board.outstanding() > 0 && a.Window == s.window
	s.window = a.Window
	if a.Window > 0 {
		s.probes, s.probed, s.probeDue = 0, 0, false
	}
	fresh := 0
	s.dsack = a.DSACK
	for seq := s.board.una; seq < a.Next; seq++ {
		if f := s.board.drop(); !f.sacked {
			fresh++
			s.deliver(now, seq, &f, a.Echo)
		}
	}
	s.next = max(s.next, s.board.una)
	fresh += s.takeBlocks(now, &a)
	if e.Acked > 0 {
		e.RTT = now.Sub(a.Echo)
		s.rto.sample(e.RTT)
		s.restart(now)
	}
	e.SRTT = s.rto.srtt
	lost := s.board.lost
	s.repair.acked(s, e, fresh, duplicate)
	if p, ok := s.control.(Paced); ok {
		d := s.rate.take(e)
		d.Fresh, d.Pipe, d.Recovery, d.NewLosses = fresh, s.board.pipe(), s.repair.recovering(), s.board.lost > lost
		p.Delivered(d)
	}
}

// takeBlocks marks what the receiver has beyond the cumulative acknowledgement, and returns how
// many segments are new in it.
func (s *Sender) takeBlocks(now mihf.Time, a *Ack) (fresh int) {
	if s.config.Recovery == ByDuplicates {
		return 0
	}
	for i, b := range a.Blocks[:a.Used] {
		if i == 0 && a.DSACK {
			continue
		}
		for seq := max(b.From, s.board.una); seq < min(b.To, s.board.high); seq++ {
			if f := s.board.sack(seq); f != nil {
				fresh++
				s.deliver(now, seq, f, a.Echo)
			}
		}
	}
	return fresh
}

// restart sets the retransmission timer anew, or stops it (RFC 6298, 5.2 and 5.3).
func (s *Sender) restart(now mihf.Time) {
	s.expires = 0
	if s.board.outstanding() > 0 {
		s.expires = now.Add(s.rto.timeout())
	}
}

// Next returns when the sender wants [Sender.Advance] and [Sender.Poll]; zero: not before another
// input.
func (s *Sender) Next() mihf.Time {
	return mihf.Sooner(mihf.Sooner(s.expires, s.probes), mihf.Sooner(s.repair.next(), s.paceAt))
}

// Advance does what is due: the retransmission timer, a probe. Poll then gives what to send.
func (s *Sender) Advance(now mihf.Time) {
	s.repair.advance(s, now)
	if s.probes.Due(now) {
		s.probes, s.probeDue = 0, true
	}
	if !s.expires.Due(now) {
		return
	}
	s.stats.Timeouts++
	s.control.Timeout(now, s.repair.inFlight(s), s.expired != s.board.una+1)
	s.expired = s.board.una + 1
	s.rto.expired()
	s.repair.timeout(s, now)
	s.expires = now.Add(s.rto.timeout())
}
