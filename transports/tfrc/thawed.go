package tfrc

import "mihf.dev/mihf"

// ReceiverState is the Freeze state of a [Receiver].
type ReceiverState uint8

// States of a receiver. While the sender is frozen the receiver has nothing to do.
const (
	ReceiverNormal ReceiverState = iota
	Restoration                  // packets come again, for less than a round-trip
	Recovery1                    // the round-trip is over without a loss: reports say unfrozen
	Recovery2                    // a loss came: the sender has to find out
	Probed                       // the sender probes: the next loss begins a new history
)

func (s ReceiverState) String() string {
	return [...]string{"normal", "restoration", "recovery1", "recovery2", "probed"}[s]
}

// resumption is what the receiver knows of the sender's restart after a freeze.
type resumption struct {
	state    ReceiverState
	start    uint64    // the first packet after the restart
	end      mihf.Time // when a round-trip has passed since
	reported bool      // a report was made since
	tail     bool      // the loss that ends Probing came, but the sender does not know yet
}

// State is the receiver's Freeze state.
func (r *Receiver) State() ReceiverState { return r.resumed.state }

// follow takes the options of a data packet with a new greatest sequence number, which
// came after a pause of gap.
func (r *Receiver) follow(now mihf.Time, p *Packet) {
	f := &r.resumed
	f.tail = f.tail && p.Options.Has(OptProbing)
	restoring, probing := p.Options.Has(OptRestoring), p.Options.Has(OptProbing)
	switch f.state {
	case ReceiverNormal:
	case Probed:
		if !probing {
			f.state = ReceiverNormal
		}
	case Recovery1:
		if probing {
			f.state = Probed
		} else if !restoring {
			f.state = ReceiverNormal
		}
	case Restoration, Recovery2:
		if !restoring {
			f.state = ReceiverNormal
		}
	}
	// After a pause Restoring means another restart.
	again := f.state != ReceiverNormal && now.Sub(r.dataAt) > 2*r.lossRTT()
	if restoring && (f.state == ReceiverNormal || again) {
		*f = resumption{state: Restoration, start: p.Seq, end: now.Add(r.lossRTT())}
		r.meter.restart(now)
		r.clock.fresh = true
	}
}

// passed says that data came, and whether a report is due by its pace: the second since
// the restart, or the first after a round-trip, lies wholly after it.
func (f *resumption) passed(now mihf.Time, due bool) {
	if f.state == Restoration && (now > f.end || (due && f.reported)) {
		f.state = Recovery1
	}
}

// lost takes a new loss event. It tells whether the history has to begin anew.
func (f *resumption) lost(start uint64) bool {
	switch f.state {
	case Restoration, Recovery1:
		if start >= f.start { // not what was lost before the freeze
			f.state = Recovery2
		}
	case Probed:
		f.state, f.tail = ReceiverNormal, true
		return true
	default:
	}
	return false
}
