package ensemble

import (
	"math"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors/familiar"
)

// Signals that are tracked.
const (
	sigRSSI = iota
	sigRSRP
	sigRSRQ
	sigSINR
	sigRate // log2(Mbit/s + 0.5)
	numSignals
)

var signalNames = [numSignals]string{"rssi", "rsrp", "rsrq", "sinr", "rate"}

var signalParameters = [numSignals]mihf.Parameter{
	mihf.ParamRSSI, mihf.ParamRSRP, mihf.ParamRSRQ, mihf.ParamSINR, mihf.ParamTxPHYRate,
}

const (
	stallFrom    = 1.0  // seconds without an answer that count as a stall
	stallMost    = 60.0 // beyond it nobody probed
	stallMemory  = 60.0 // seconds
	changeMemory = 20.0
	pauseMemory  = 20.0
	peakMemory   = 5.0
	probeMaxAge  = 10.0
	scanMax      = 12 * time.Second
)

// Tracker turns observations of one link into features; see [NewTracker]. It is used by one
// goroutine.
type Tracker struct {
	signals  [numSignals]track
	rtt      track // log2 of milliseconds
	rttEvery float32
	peak     decaying // rtt's highest
	stalls   decaying
	around   neighbours
	familiar *familiar.State
	watch    familiar.Watch

	poa      mihf.PoA
	since    mihf.Time // the newest change of poa; zero: none was seen
	changes  decaying
	pauses   decaying
	serving  mihf.Time // newest reading of the serving point
	interval float32   // between them, seconds
	scan     mihf.Time // start of one that goes on
	ordered  mihf.Time // the network's newest order of a handover; zero: none, or done
	now      mihf.Time

	handovers, stalled uint32 // events seen
}

// NewTracker returns a tracker that has seen nothing.
func NewTracker() Tracker { return Tracker{familiar: &familiar.State{}} }

// Observe takes what a sensor saw.
func (t *Tracker) Observe(now mihf.Time, o *mihf.Observation) {
	t.now = now
	t.watch.Observe(now, o, t.familiar)
	switch o.Kind {
	case mihf.ObsRadio:
		t.radio(now, o)
	case mihf.ObsDetected:
		t.detected(now, o)
	case mihf.ObsScan:
		t.scan = 0
		if o.Scanning {
			t.scan = now
		}
	case mihf.ObsAssociation:
		t.association(now, o.Association)
	case mihf.ObsHandover:
		t.ordered = now
	case mihf.ObsResume, mihf.ObsLinkGone:
		t.detach()
	default: // nothing that is used here
	}
}

// detach forgets the signal; what was learned stays.
func (t *Tracker) detach() {
	t.signals = [numSignals]track{}
	t.rtt, t.rttEvery = track{}, 0
	t.around = neighbours{}
	t.serving, t.interval, t.scan = 0, 0, 0
}

func (t *Tracker) association(now mihf.Time, a *mihf.Association) {
	if a == nil {
		return
	}
	switch a.State {
	case mihf.AssociationNone, mihf.AssociationDisconnected:
		t.detach()
	case mihf.AssociationAssociated, mihf.AssociationAuthorised:
		t.attach(now, a.PoA)
	default: // authenticating: still on the old one
	}
}

func (t *Tracker) attach(now mihf.Time, poa mihf.PoA) {
	if poa == "" || poa == t.poa {
		return
	}
	if t.poa != "" {
		t.changes.add(now, changeMemory)
		t.handovers++
		t.since = now
		t.signals = [numSignals]track{}
		t.around = neighbours{}
		t.ordered = 0
	}
	t.poa = poa
}

func (t *Tracker) scanning(now mihf.Time) bool { return !t.scan.IsZero() && now.Sub(t.scan) <= scanMax }

func (t *Tracker) radio(now mihf.Time, o *mihf.Observation) {
	t.attach(now, o.PoA)
	if t.scanning(now) {
		return
	}
	at := min(o.At, now).Add(-max(o.Age, 0))
	if rtt, ok := o.Values.Get(mihf.ParamRTT); ok {
		t.answered(at, rtt)
	}
	serving := false
	for i := range t.signals {
		v, ok := o.Values.Get(signalParameters[i])
		if !ok || now.Sub(at).Seconds() > t.maxAge() {
			continue
		}
		if i == sigRate {
			v = math.Log2(v/1e6 + 0.5)
		}
		t.signals[i].add(at, float32(v))
		serving = true
	}
	if !serving || at <= t.serving {
		return
	}
	if !t.serving.IsZero() {
		gap := float32(at.Sub(t.serving).Seconds())
		if t.interval == 0 {
			t.interval = min(gap, 15)
		} else {
			if gap > 1.8*t.interval && gap < 60 {
				t.pauses.add(at, pauseMemory)
			}
			t.interval += 0.1 * (min(gap, 4*t.interval) - t.interval)
		}
	}
	t.serving = at
}

// answered takes the answer to a probe.
func (t *Tracker) answered(at mihf.Time, rtt float64) {
	if at <= t.rtt.at {
		return
	}
	if !t.rtt.at.IsZero() {
		gap := at.Sub(t.rtt.at).Seconds()
		if gap > stallFrom && gap < stallMost {
			t.stalls.add(at, stallMemory)
			t.stalled++
		}
		if t.rttEvery == 0 {
			t.rttEvery = float32(gap)
		}
		t.rttEvery += 0.05 * (min(float32(gap), 4*t.rttEvery) - t.rttEvery)
	}
	v := float32(math.Log2(rtt * 1e3))
	t.rtt.add(at, v)
	if v > t.peak.get(at, peakMemory) {
		t.peak = decaying{v, at}
	}
}

func (t *Tracker) detected(now mihf.Time, o *mihf.Observation) {
	d := o.Detected
	s := &t.signals[sigRSRP]
	if d == nil || d.PoA == "" || d.PoA == t.poa || s.at.IsZero() || now.Sub(s.at).Seconds() > t.maxAge() || o.Age.Seconds() > neighbourAge {
		return
	}
	power, ok := d.Values.Get(mihf.ParamRSRP)
	if !ok {
		return
	}
	quality := float32(-30)
	if q, ok := d.Values.Get(mihf.ParamRSRQ); ok && !t.signals[sigRSRQ].at.IsZero() {
		quality = float32(q) - t.signals[sigRSRQ].last
	}
	co, known := d.Values.Get(mihf.ParamCoChannel)
	at := min(o.At, now).Add(-max(o.Age, 0))
	t.around.add(at, d.PoA, float32(power)-s.last, quality, known && co < 0.5)
}

// maxAge is how old a reading of the serving point may be, in seconds.
func (t *Tracker) maxAge() float64 { return 3*float64(t.interval) + 1 }
