package familiar

import (
	"time"

	"mihf.dev/mihf"
)

// Watch turns observations into entries of a [State]: one a second, and losses. The zero
// Watch has seen nothing.
type Watch struct {
	rssi    float64 // sum of the readings since the last entry
	n       int
	seen    mihf.Time // newest reading
	every   float64   // between readings, seconds
	excused bool      // a scan or a suspend explains the pause
	scan    mihf.Time // start of one that goes on
	down    bool      // the loss was seen
	cut     bool      // the next entry does not follow the last
}

// spacing is the least time between entries: a second, but for jitter.
const spacing = 950 * time.Millisecond

// scanMax is how long a scan lasts whose end was not seen.
const scanMax = 12 * time.Second

// Observe takes an observation.
func (w *Watch) Observe(now mihf.Time, o *mihf.Observation, s *State) {
	switch o.Kind {
	case mihf.ObsRadio:
		w.radio(now, o, s)
	case mihf.ObsScan:
		w.excused, w.scan = true, 0
		if o.Scanning {
			w.scan = now
		}
	case mihf.ObsAssociation:
		if a := o.Association; a != nil && a.State == mihf.AssociationDisconnected && !a.Local && !w.seen.IsZero() && !w.down {
			s.Lost(w.seen, true)
			w.down = true
		}
	case mihf.ObsResume, mihf.ObsLinkGone:
		w.excused = true
		w.begin(s)
	default: // says nothing of a loss
	}
}

// begin starts a new row of entries.
func (w *Watch) begin(s *State) {
	w.cut, w.n, w.rssi = true, 0, 0
	s.Break()
}

func (w *Watch) pace(gap float64) {
	if w.every == 0 {
		w.every = min(gap, pause)
	}
	w.every += 0.1 * (min(gap, 4*w.every) - w.every)
}

func (w *Watch) radio(now mihf.Time, o *mihf.Observation, s *State) {
	rssi, ok := o.Values.Get(mihf.ParamRSSI)
	at := min(o.At, now).Add(-max(o.Age, 0))
	if !ok || at <= w.seen || (!w.scan.IsZero() && now.Sub(w.scan) <= scanMax) {
		return // not for us, repeated, old, or of another channel
	}
	gap := at.Sub(w.seen).Seconds()
	long := !w.seen.IsZero() && gap >= max(pause, pauseLong*w.every)
	if !w.seen.IsZero() {
		w.pace(gap)
	}
	if long {
		if gap <= pauseMax && !w.excused && !w.down {
			s.Lost(w.seen, false)
		}
		if gap > pauseMax {
			s.Break()
		}
		w.cut, w.n, w.rssi = true, 0, 0
	}
	w.seen, w.excused, w.down = at, false, false
	w.rssi += rssi
	w.n++
	if !s.At().IsZero() && at.Sub(s.At()) < spacing {
		return
	}
	rate, _ := o.Values.Get(mihf.ParamTxPHYRate)
	s.Add(at, w.rssi/float64(w.n), rate/1e6, w.cut)
	w.cut, w.n, w.rssi = false, 0, 0
}
