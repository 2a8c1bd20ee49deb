package attach

import (
	"time"

	"mihf.dev/mihf"
)

// Lease decides what a flow does with its hints, and when a freeze ends for want of them.
// It is a pure machine, used by one goroutine: now in, actions out.
type Lease struct {
	boot   mihf.BootID
	epoch  uint64
	frozen bool
	until  mihf.Time // when the freeze lapses
}

// lapsed is what a transport is told when a freeze ends without a word of the broker.
var lapsed = mihf.Unfreeze{Cause: mihf.UnfreezeExpired, Recovery: true}

// Registered takes the broker's answer to a registration. Another run of the broker counts
// its epochs anew, so none that came before stands in the way. It reports whether the flow
// must be thawed, because the freeze was of another run.
func (l *Lease) Registered(r *mihf.Registration) (thaw bool) {
	thaw = l.frozen && l.boot != r.Boot
	l.boot, l.epoch = r.Boot, 0
	l.frozen = l.frozen && !thaw
	return thaw
}

// Hint takes a hint that arrived at now, after [Lease.Advance] was called for now. It
// reports whether the transport is to be told, and what to acknowledge.
func (l *Lease) Hint(now mihf.Time, h *mihf.Hint) (apply bool, ack mihf.AckResult) {
	switch {
	case h.Boot != l.boot || h.Epoch < l.epoch:
		return false, mihf.AckLate
	case h.Epoch == l.epoch:
		return false, mihf.AckApplied // a copy
	}
	l.epoch = h.Epoch
	switch h.Kind {
	case mihf.HintFreeze:
		if age(now, h) >= h.Freeze.Lease {
			return false, mihf.AckLate
		}
		apply = !l.frozen // else it renews
		l.frozen, l.until = true, now.Add(h.Freeze.Lease)
		return apply, mihf.AckApplied
	case mihf.HintUnfreeze:
		apply, l.frozen = l.frozen, false
		return apply, mihf.AckApplied
	default:
		return true, mihf.AckApplied
	}
}

// age returns how old a hint is.
func age(now mihf.Time, h *mihf.Hint) time.Duration {
	if h.At.IsZero() {
		return 0
	}
	return max(now.Sub(h.At), 0)
}

// Frozen reports whether the flow is frozen.
func (l *Lease) Frozen() bool { return l.frozen }

// Next returns when Advance is due; zero: never.
func (l *Lease) Next() mihf.Time {
	if !l.frozen {
		return 0
	}
	return l.until
}

// Advance reports whether the flow must be thawed to recovery, because its lease lapsed.
func (l *Lease) Advance(now mihf.Time) (thaw bool) {
	if !l.Next().Due(now) {
		return false
	}
	l.frozen = false
	return true
}

// End reports whether the flow must be thawed to recovery, because nobody will keep the
// lease any more.
func (l *Lease) End() (thaw bool) {
	thaw, l.frozen = l.frozen, false
	return thaw
}
