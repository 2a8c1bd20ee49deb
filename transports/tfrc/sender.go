package tfrc

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

const (
	// firstTimeout is the nofeedback timer before any round-trip time is known (RFC 5348,
	// section 4.2).
	firstTimeout = 2 * time.Second
	// minRTT keeps a round-trip time that a coarse clock measured as nothing out of the
	// equation.
	minRTT = 10 * time.Microsecond
	// maxRTT does so with one that cannot be true.
	maxRTT = MaxBackoff
)

// SenderConfig says how a [Sender] works. The zero value is a sender of [RFC5348] that
// measures its segment size and reduces oscillations.
type SenderConfig struct {
	Variant Variant
	// SegmentBytes is s, the application data of a packet. 0: the mean over the last four
	// loss intervals (RFC 5348, section 4.1).
	SegmentBytes int
	// MaxSegmentBytes is the MSS, for the initial rate. 0: SegmentBytes, else 1460.
	MaxSegmentBytes int
	// RTT is the round-trip time from the handshake; 0: not known.
	RTT time.Duration
	// NoOscillationReduction switches section 4.5 off.
	NoOscillationReduction bool
	// RTTWeight is q of section 4.3, the weight of the old estimate, 0 < q < 1. 0: 0.9, and
	// 0.5 without oscillation reduction, for which section 4.5 asks for a low one.
	RTTWeight float64
	// MaxBurst bounds the unused time to send that is kept, and with it bursts. 0, and what
	// is longer: a round-trip, the most that section 4.6 allows.
	MaxBurst time.Duration
	// Granularity is that of the caller's timers: a packet may go half of it, and half of
	// the time between packets, too early (section 8.3). 0: never too early.
	Granularity time.Duration
	// FasterRestart lets the rate grow fourfold a round-trip, up to the greatest X_recv
	// since the last loss, after an idle or data-limited time. Experimental; see the
	// package comment.
	FasterRestart bool
}

// Sender is the data sender of RFC 5348, section 4. It is used by one goroutine.
type Sender struct {
	cfg SenderConfig

	// The rate. x is X, the allowed rate; paced is X_inst, by which packets are spaced.
	x, paced Rate
	xRecv    recvSet
	lossRate float64 // p
	event    uint64  // first packet of the newest loss event; 0: none
	doubled  mihf.Time
	best     Rate // the greatest X_recv since a loss, for faster restart

	rtt     time.Duration // R; 0: no sample yet
	sampled time.Duration // R_sample, the newest; 0: none
	rttRoot float64       // R_sqmean, in root seconds
	lastAck uint64        // greatest Seq of a report

	timer mihf.Time // nofeedback; zero: nothing was sent yet
	idle  bool      // nothing sent since the timer was set

	sent    sentLog
	limits  limits
	size    segmentMean
	nominal mihf.Time // of the next packet, with a round-trip of credit
	gate    mihf.Time // the same with MaxBurst of credit: when the packet may go
	counter int64     // unwrapped window counter
	turned  mihf.Time // when the counter last moved

	thawing thawing
	seed    seed
	plain   bool // the receiver lacks the Freeze extension
	counts  FreezeCounts
}

// NewSender returns a sender that has sent nothing.
func NewSender(cfg SenderConfig) *Sender {
	if cfg.RTTWeight <= 0 || cfg.RTTWeight >= 1 {
		cfg.RTTWeight = 0.9
		if cfg.NoOscillationReduction {
			cfg.RTTWeight = 0.5
		}
	}
	if cfg.MaxSegmentBytes == 0 {
		cfg.MaxSegmentBytes = cfg.SegmentBytes
	}
	if cfg.MaxSegmentBytes == 0 {
		cfg.MaxSegmentBytes = 1460
	}
	s := &Sender{cfg: cfg}
	s.size.mean = float64(cfg.SegmentBytes)
	if cfg.SegmentBytes == 0 {
		s.size.mean = float64(cfg.MaxSegmentBytes)
	}
	s.xRecv.replace(0, infinite)
	s.setRate(Rate(s.segment())) // a segment a second (section 4.2)
	if cfg.RTT > 0 {
		s.rtt = min(max(cfg.RTT, minRTT), maxRTT)
		s.setRate(s.initialRate())
	}
	return s
}

// Rate is X, the allowed rate.
func (s *Sender) Rate() Rate { return s.x }

// PacedRate is the rate by which packets are spaced: X_inst of RFC 5348, section 4.5.
func (s *Sender) PacedRate() Rate { return s.paced }

// RTT is R, the smoothed round-trip time; 0: none yet.
func (s *Sender) RTT() time.Duration { return s.rtt }

// LossRate is p, as it was last reported.
func (s *Sender) LossRate() float64 { return s.lossRate }

// SegmentBytes is s, the size by which the sender reckons.
func (s *Sender) SegmentBytes() float64 { return s.segment() }

func (s *Sender) segment() float64 { return s.size.mean }

// initialRate is W_init/R (RFC 5348, section 4.2).
func (s *Sender) initialRate() Rate {
	mss := float64(s.cfg.MaxSegmentBytes)
	window := min(4*mss, max(2*mss, 4380))
	return Rate(window / s.rtt.Seconds())
}

// minRate is s/t_mbi.
func (s *Sender) minRate() Rate { return Rate(s.segment() / MaxBackoff.Seconds()) }

// setRate sets X and with it X_inst.
func (s *Sender) setRate(x Rate) {
	s.x, s.paced = x, x
	if !s.cfg.NoOscillationReduction && s.rttRoot > 0 {
		s.paced = max(Rate(float64(x)*s.rttRoot/root(s.sampled)), s.minRate())
	}
}

// spacing is t_ipi.
func (s *Sender) spacing() time.Duration { return interval(s.segment(), s.paced) }

// NextSend is the moment from which the next packet may be sent; zero: not before a call
// of another method.
func (s *Sender) NextSend(now mihf.Time) mihf.Time {
	if s.thawing.state == Frozen {
		return 0
	}
	if s.timer == 0 {
		return now
	}
	at := s.gate
	if g := s.cfg.Granularity; g > 0 {
		early := min(g, s.spacing())
		if s.rtt > 0 {
			early = min(early, s.rtt)
		}
		at = at.Add(-early / 2)
	}
	return at
}

// Send takes the packet seq with bytes of application data, which is sent now, and fills
// in what it carries. It does not refuse a packet that goes before [Sender.NextSend]: that
// one counts, too.
func (s *Sender) Send(now mihf.Time, seq uint64, bytes int, out *Header) {
	if s.timer == 0 {
		s.first(now)
	}
	s.idle = false
	if s.cfg.SegmentBytes == 0 {
		s.size.add(bytes)
	}
	if s.cfg.Variant == CCID3 {
		s.turn(now)
	}
	s.sent.add(sentPacket{seq, now, s.counter})
	s.pace(now)
	out.SentAt, out.RTT = now, s.rtt
	out.WindowCounter = uint8(s.counter & (counterValues - 1))
	s.thawing.sent(now, seq)
	out.Options = s.thawing.options()
}

// SentOther takes a packet without application data that is sent now: it needs no leave,
// but a report may name it.
func (s *Sender) SentOther(now mihf.Time, seq uint64) {
	s.sent.add(sentPacket{seq, now, s.counter})
}

// first starts the clocks at the first packet.
func (s *Sender) first(now mihf.Time) {
	s.turned, s.nominal, s.gate = now, now, now
	s.xRecv.replace(now, infinite)
	s.doubled = now // with a round-trip time from the handshake; else the first report sets it
	s.timer = now.Add(firstTimeout)
	if s.rtt > 0 {
		s.timer = now.Add(s.timeout())
	}
}

// pace moves the nominal times of sending on (RFC 5348, section 4.6). What is left unused
// of a round-trip, or of MaxBurst, is lost.
func (s *Sender) pace(now mihf.Time) {
	step := s.spacing()
	s.nominal = max(s.nominal, now.Add(-s.rtt)).Add(step)
	burst := s.rtt
	if s.cfg.MaxBurst > 0 {
		burst = min(burst, s.cfg.MaxBurst)
	}
	s.gate = max(s.gate, now.Add(-burst)).Add(step)
	if s.nominal > now {
		s.limits.full(now)
	}
}

// repace keeps the time from the last packet to the next at the new rate.
func (s *Sender) repace(now mihf.Time, old time.Duration) {
	s.nominal = repaced(s.nominal, now, old, s.spacing())
	s.gate = repaced(s.gate, now, old, s.spacing())
}

// repaced is a nominal time after the spacing changed. Who sent more than was allowed is
// several packets ahead, and stays that.
func repaced(at, now mihf.Time, old, spacing time.Duration) mihf.Time {
	if ahead := at.Sub(now); ahead > old {
		return now.Add(mul(ahead, float64(spacing)/float64(old)))
	}
	return at.Add(spacing - old)
}

// turn moves the window counter on (RFC 4342, section 8.1): one a quarter round-trip, at
// most five at once. The first packets, without a round-trip time, have the same.
func (s *Sender) turn(now mihf.Time) {
	if s.rtt == 0 {
		return
	}
	if quarters := now.Sub(s.turned) / max(s.rtt/roundTrip, 1); quarters > 0 {
		s.counter += min(int64(quarters), roundTrip+1)
		s.turned = now
	}
}

// Next is when [Sender.Advance] has something to do: the nofeedback timer, or the end of
// a lease. Zero: never.
func (s *Sender) Next() mihf.Time {
	if s.thawing.state == Frozen && !s.plain {
		return s.thawing.until
	}
	return mihf.Sooner(s.timer, s.thawing.until)
}

// Advance does what is due.
func (s *Sender) Advance(now mihf.Time) {
	s.dueFreeze(now)
	if s.timer.Due(now) && (s.thawing.state != Frozen || s.plain) {
		s.expire(now)
	}
}

func mul(d time.Duration, f float64) time.Duration { return time.Duration(float64(d) * f) }

func root(d time.Duration) float64 { return math.Sqrt(d.Seconds()) }
