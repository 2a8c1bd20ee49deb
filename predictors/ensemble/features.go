package ensemble

import (
	"math"

	"mihf.dev/mihf"
	"mihf.dev/predictors/familiar"
)

// Places of the groups of features.
const (
	atCell       = numSignals * trackFeatures
	atNeighbours = atCell + len(cellNames)
	atProbe      = atNeighbours + neighbourFeatures
	atFamiliar   = atProbe + trackFeatures + len(probeNames)
	numFeatures  = atFamiliar + len(familiarNames)
)

var (
	cellNames     = [...]string{"in_cell", "young", "age", "changes", "pauses", "rssi_low", "rate_low", "drop"}
	probeNames    = [...]string{"silence", "silence_over", "stalls", "rtt_peak"}
	familiarNames = [...]string{
		"kernel_1", "kernel_2", "kernel_3", "kernel_5", "kernel_weight",
		"filter_1", "filter_2", "filter_3", "filter_5", "filter_unknown",
	}
)

// Vector holds the features of a moment; not a number: not known.
type Vector [numFeatures]float32

// FeatureNames are the names of the features, in the order of a [Vector].
var FeatureNames = func() (all [numFeatures]string) {
	for i, s := range signalNames {
		for k, n := range trackNames {
			all[i*trackFeatures+k] = s + n
		}
	}
	copy(all[atCell:], cellNames[:])
	copy(all[atNeighbours:], neighbourNames[:])
	for k, n := range trackNames {
		all[atProbe+k] = "rtt" + n
	}
	copy(all[atProbe+trackFeatures:], probeNames[:])
	copy(all[atFamiliar:], familiarNames[:])
	return all
}()

var unknownVector = func() (x Vector) {
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}()

// Vector fills x with the features that a model looks at, as of now; the others stay
// unknown.
func (t *Tracker) Vector(now mihf.Time, m Model, x *Vector) {
	*x = unknownVector
	for i := range t.signals {
		if (i == sigRSSI || i == sigRate) == (m == ModelWiFi) {
			t.signals[i].put(now, 15, x[i*trackFeatures:])
		}
	}
	t.cell(now, x[atCell:])
	switch m {
	case ModelWiFi:
		t.known(x[atFamiliar:])
	case ModelNeighbours:
		t.around.put(now, x[atNeighbours:])
	case ModelProbe:
		t.probe(now, x[atProbe:])
	default:
	}
}

func (t *Tracker) cell(now mihf.Time, x []float32) {
	if !t.since.IsZero() {
		s := now.Sub(t.since).Seconds()
		x[0] = float32(math.Log2(s + 0.1))
		x[1] = float32(math.Min(4, s))
	}
	x[2] = float32(t.silent(now))
	x[3] = t.changes.get(now, changeMemory)
	x[4] = t.pauses.get(now, pauseMemory)
	rssi, rate := &t.signals[sigRSSI], &t.signals[sigRate]
	if !rssi.at.IsZero() {
		x[5] = max(0, -74-rssi.last)
	}
	if !rate.at.IsZero() {
		x[6] = max(0, 4.8-rate.last)
		x[7] = max(0, -70-rssi.last) * max(0, rate.mean[2]-rate.last)
	}
}

// silent returns the seconds since the newest reading of the serving point, but for those
// of a scan.
func (t *Tracker) silent(now mihf.Time) float64 {
	if t.scanning(now) && t.scan > t.serving {
		now = t.scan
	}
	return max(now.Sub(t.serving).Seconds(), 0)
}

func (t *Tracker) probe(now mihf.Time, x []float32) {
	t.rtt.put(now, probeMaxAge, x)
	if t.rtt.at.IsZero() || now.Sub(t.rtt.at).Seconds() > probeMaxAge {
		return
	}
	if t.scanning(now) && t.scan > t.rtt.at {
		now = t.scan // it explains the silence
	}
	x = x[trackFeatures:]
	s := float32(max(now.Sub(t.rtt.at).Seconds(), 0))
	x[0] = s
	x[1] = max(0, s-max(0.3, 1.5*t.rttEvery))
	x[2] = t.stalls.get(now, stallMemory)
	x[3] = t.peak.get(now, peakMemory)
}

func (t *Tracker) known(x []float32) {
	if !t.familiar.Known() {
		return
	}
	k, weight := t.familiar.Kernel()
	f, unknown := t.familiar.Filter()
	for i := range familiar.Horizons {
		x[i] = float32(k[i])
		x[len(familiar.Horizons)+1+i] = float32(f[i])
	}
	x[len(familiar.Horizons)] = float32(weight)
	x[2*len(familiar.Horizons)+1] = float32(unknown)
}
