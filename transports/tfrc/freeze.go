package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

// State is the Freeze state of a [Sender].
type State uint8

// States of a sender.
const (
	Normal    State = iota
	Frozen          // sends nothing and keeps what it knew
	Restoring       // sends at the rate before the freeze until reports describe the new path
	Probing         // doubles the rate each round-trip until something is lost
)

func (s State) String() string {
	return [...]string{"normal", "frozen", "restoring", "probing"}[s]
}

const (
	// DefaultLease is how long a freeze holds that was given without a lease.
	DefaultLease = time.Minute
	// restoringRTTs bounds Restoring, in round-trips.
	restoringRTTs = 4
	// stallRTTs bounds Probing: so many round-trips without growth end it.
	stallRTTs = 4
	// firstExcess is the first step of Probing above what the path is said to carry.
	firstExcess = 1.0 / 16
)

// Path is what is known of the path that a frozen flow comes back onto: the zero Path is
// nothing.
type Path struct {
	Capacity Rate          // of application data, as [Rate] counts it; 0: not known
	RTT      time.Duration // without queue; 0: not known
}

// PathFrom returns the path that a link's characteristics describe, for packets of
// segmentBytes of data and headerBytes of headers below it. up says that the flow's data
// leaves by the link; else it arrives by it.
func PathFrom(lci *mihf.LCI, up bool, segmentBytes, headerBytes float64) Path {
	if lci == nil {
		return Path{}
	}
	capacity := lci.CapacityDownBPS
	if up {
		capacity = lci.CapacityUpBPS
	}
	var p Path
	if capacity.Known() && capacity.Value > 0 {
		p.Capacity = Rate(capacity.Value / 8 * segmentBytes / (segmentBytes + headerBytes))
	}
	if lci.RTTSeconds.Known() && lci.RTTSeconds.Value > 0 {
		p.RTT = max(time.Duration(min(lci.RTTSeconds.Value, maxRTT.Seconds())*1e9), minRTT)
	}
	return p
}

// Thaw says how a frozen sender goes on.
type Thaw struct {
	// Recovery asks for a start from the initial rate, up to what p and the round-trip time
	// from before the freeze allow: nobody knows what is left of the path.
	Recovery bool
	Path     Path
}

// snapshot is what a freeze keeps.
type snapshot struct {
	x, received Rate
	lossRate    float64
	rtt         time.Duration
}

// thawing is what a sender knows of its restart after a freeze.
type thawing struct {
	state State
	saved snapshot
	until mihf.Time // end of the lease while frozen, of the longest time while restoring
	path  Path

	// Until a report lies wholly after the restart, X_recv says nothing: it covers the time
	// without packets as well.
	waiting   bool   // for that report
	restart   uint64 // the first packet after the restart; 0: none was sent yet
	restartAt mihf.Time
	partial   bool          // a report came that covers the restart
	fresh     bool          // the next round-trip time begins a new estimate
	grown     mihf.Time     // when Probing last raised the rate, or tried to
	stalls    int           // times that it could not
	excess    Rate          // of the rate over what the path is said to carry, as a part of that
	steps     int           // taken above it
	base      time.Duration // shortest round-trip time since the restart; 0: none yet
	sawDrop   bool          // p fell while Probing
}

// FreezeCounts counts what became of freezes.
type FreezeCounts struct {
	Freezes    uint64 // begun
	Lapsed     uint64 // ended by their lease
	Restored   uint64 // thawed to the rate before
	Recoveries uint64 // thawed to the initial rate
	Probes     uint64 // times that Probing was reached
	Ignored    uint64 // reports that came while frozen, or from before the restart
}

// State is the sender's Freeze state.
func (s *Sender) State() State { return s.thawing.state }

// FreezeCounts returns what became of freezes so far.
func (s *Sender) FreezeCounts() FreezeCounts { return s.counts }

// SetExtension says whether the receiver has the Freeze extension, as was negotiated. It
// has by default; without it a freeze only stops the sending, and what follows is the
// restart after an idle time (RFC 5348, section 4.4).
func (s *Sender) SetExtension(has bool) { s.plain = !has }

// Freeze stops the sender and keeps its rate, loss event rate and round-trip time as they
// are, for at most lease; not positive: for [DefaultLease]. A sender that is frozen gets
// the new lease. One that is Restoring or Probing keeps what it had kept before: what it
// has seen since is not yet worth more.
func (s *Sender) Freeze(now mihf.Time, lease time.Duration) {
	f := &s.thawing
	if lease <= 0 {
		lease = DefaultLease
	}
	if f.state == Normal {
		f.saved = snapshot{s.x, min(s.xRecv.max(), s.x), s.lossRate, s.rtt}
	}
	if f.state != Frozen {
		s.counts.Freezes++
	}
	f.state, f.until = Frozen, now.Add(lease)
}

// Unfreeze lets a frozen sender go on; in any other state it does nothing.
func (s *Sender) Unfreeze(now mihf.Time, t Thaw) {
	f := &s.thawing
	if f.state != Frozen {
		return
	}
	*f = thawing{saved: f.saved, path: t.Path, waiting: true, fresh: true}
	s.nominal, s.gate = now, now
	if s.plain || s.timer == 0 {
		f.waiting, f.fresh = false, false
		return
	}
	s.lossRate = f.saved.lossRate
	s.rtt = max(f.saved.rtt, min(t.Path.RTT, maxRTT))
	s.rttRoot = 0 // of a path that may be gone
	x := f.saved.x
	if t.Path.Capacity > 0 {
		x = min(x, t.Path.Capacity)
	}
	if t.Recovery {
		s.counts.Recoveries++
		if s.rtt > 0 {
			x = min(x, s.initialRate())
		}
		s.xRecv.replace(now, x/2)
	} else {
		s.counts.Restored++
		f.state = Restoring
		f.until = now.Add(restoringRTTs * max(s.rtt, interval(s.segment(), x)))
		s.xRecv.replace(now, min(f.saved.received, x))
	}
	s.doubled = now
	s.setRate(max(x, s.minRate()))
	s.setTimer(now)
}

// options is what data packets carry.
func (f *thawing) options() Options {
	switch f.state {
	case Restoring:
		return OptRestoring
	case Probing:
		return OptProbing
	default:
		return 0
	}
}

// sent takes a packet.
func (f *thawing) sent(now mihf.Time, seq uint64) {
	if f.waiting && f.restart == 0 {
		f.restart, f.restartAt = seq, now
	}
}

// ignores says whether a report is none of the present path's.
func (s *Sender) ignores(r *Report) bool {
	f := &s.thawing
	if (f.state == Frozen && !s.plain) || (f.waiting && (f.restart == 0 || r.Seq < f.restart)) {
		s.counts.Ignored++
		return true
	}
	return false
}

// whole says whether the report lies wholly after the restart: the receiver says so, or
// it is not the first since, and names a packet that was sent a round-trip later.
func (f *thawing) whole(r *Report, sent mihf.Time, rtt time.Duration) bool {
	if !f.waiting {
		return true
	}
	if r.Options.Has(OptUnfrozen) || (f.partial && sent.Sub(f.restartAt) >= rtt) {
		f.waiting = false
		return true
	}
	f.partial = true
	return false
}

// dueFreeze does what the lease and the longest time of Restoring ask for.
func (s *Sender) dueFreeze(now mihf.Time) {
	f := &s.thawing
	if !f.until.Due(now) {
		return
	}
	if f.state == Frozen {
		s.counts.Lapsed++
		s.Unfreeze(now, Thaw{Recovery: true})
		return
	}
	f.until = 0
	f.state = Normal
}
