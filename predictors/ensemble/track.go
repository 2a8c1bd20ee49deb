package ensemble

import (
	"math"

	"mihf.dev/mihf"
)

// scales are the time constants, in seconds, of the averages of a quantity.
var scales = [4]float32{0.5, 2, 8, 30}

// track follows one quantity at several time scales, for readings at any times.
type track struct {
	at         mihf.Time // newest reading; zero: none
	last, prev float32
	mean       [len(scales)]float32
	jump2      float32 // mean squared difference of neighbouring readings
}

// add takes a reading; one that is not newer is left out.
func (k *track) add(at mihf.Time, v float32) {
	if k.at.IsZero() {
		*k = track{at: at, last: v, prev: v, mean: [len(scales)]float32{v, v, v, v}}
		return
	}
	dt := float32(at.Sub(k.at).Seconds())
	if dt <= 0 {
		return
	}
	for i := range k.mean {
		k.mean[i] += (v - k.mean[i]) * dt / (scales[i] + dt)
	}
	d := v - k.last
	k.jump2 += 0.1 * (d*d - k.jump2)
	k.prev, k.last, k.at = k.last, v, at
}

// trackFeatures is how many features a track gives.
const trackFeatures = 7

var trackNames = [trackFeatures]string{"", "_jump", "_now", "_fast", "_mid", "_slow", "_sd"}

// put writes the features of a track that is fresh; those of one that is not stay unknown.
func (k *track) put(now mihf.Time, maxAge float64, x []float32) {
	if k.at.IsZero() || now.Sub(k.at).Seconds() > maxAge {
		return
	}
	x[0] = k.last
	x[1] = k.last - k.prev
	x[2] = k.last - k.mean[0]
	x[3] = k.mean[0] - k.mean[1]
	x[4] = k.mean[1] - k.mean[2]
	x[5] = k.mean[2] - k.mean[3]
	x[6] = float32(math.Sqrt(float64(k.jump2)))
}

// decaying is a count that fades.
type decaying struct {
	n  float32
	at mihf.Time
}

func (d *decaying) add(now mihf.Time, tau float64) { d.n, d.at = d.get(now, tau)+1, now }

func (d *decaying) get(now mihf.Time, tau float64) float32 {
	if d.n == 0 {
		return 0
	}
	return d.n * float32(math.Exp(-now.Sub(d.at).Seconds()/tau))
}
