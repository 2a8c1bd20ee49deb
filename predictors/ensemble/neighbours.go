package ensemble

import (
	"math"

	"mihf.dev/mihf"
)

const (
	maxNeighbours = 10
	neighbourAge  = 3.0  // seconds; an older reading says nothing
	smooth        = 0.15 // seconds: of a difference to the serving point
	slower        = 2.0
)

// neighbour is another point of attachment, relative to the serving one.
type neighbour struct {
	poa     mihf.PoA
	at      mihf.Time
	power   float32 // dB above the serving one
	quality float32
	p, q    float32 // both, smoothed
	slow    float32 // power, smoothed more
	inter   bool    // on another frequency
}

// neighbours keeps the newest readings, those of the strongest where room is scarce.
type neighbours struct {
	list [maxNeighbours]neighbour
	n    int
	at   mihf.Time // newest reading of any
}

func (ns *neighbours) add(at mihf.Time, poa mihf.PoA, power, quality float32, inter bool) {
	ns.at = at
	place, worst := -1, 0
	for i := range ns.list[:ns.n] {
		x := &ns.list[i]
		if x.poa == poa {
			place = i
			break
		}
		if w := &ns.list[worst]; old(at, x.at) && !old(at, w.at) || (old(at, x.at) == old(at, w.at) && x.power < w.power) {
			worst = i
		}
	}
	switch {
	case place >= 0 && !old(at, ns.list[place].at):
		x := &ns.list[place]
		dt := float32(max(at.Sub(x.at).Seconds(), 0))
		x.p += (power - x.p) * dt / (smooth + dt)
		x.q += (quality - x.q) * dt / (smooth + dt)
		x.slow += (power - x.slow) * dt / (slower + dt)
		x.at, x.power, x.quality, x.inter = at, power, quality, inter
		return
	case place >= 0:
	case ns.n < maxNeighbours:
		place = ns.n
		ns.n++
	case ns.list[worst].power < power || old(at, ns.list[worst].at):
		place = worst
	default:
		return
	}
	ns.list[place] = neighbour{poa, at, power, quality, power, quality, power, inter}
}

func old(now, at mihf.Time) bool { return now.Sub(at).Seconds() > neighbourAge }

// neighbourFeatures is how many features neighbours give.
const neighbourFeatures = 10

var neighbourNames = [neighbourFeatures]string{
	"best", "best_over_2", "best_over_5", "best_smooth", "best_rise",
	"quality", "quality_smooth", "quality_over_3", "other", "other_quality",
}

func (ns *neighbours) put(now mihf.Time, x []float32) {
	const none = -30
	best, bestP, bestQ, q, other, otherQ := float32(none), float32(none), float32(none), float32(none), float32(none), float32(none)
	rise := float32(0)
	for i := range ns.list[:ns.n] {
		n := &ns.list[i]
		if old(now, n.at) {
			continue
		}
		if n.inter {
			other, otherQ = max(other, n.power), max(otherQ, n.quality)
			continue
		}
		best = max(best, n.power)
		q, bestQ = max(q, n.quality), max(bestQ, n.q)
		if n.p > bestP {
			bestP, rise = n.p, n.p-n.slow
		}
	}
	copy(x, []float32{best, max(0, best-2), max(0, best-5), bestP, rise, q, bestQ, max(0, bestQ-3), other, otherQ})
}

// strongest returns the point of attachment that is strongest now; "" if none is fresh.
func (ns *neighbours) strongest(now mihf.Time) mihf.PoA {
	best, power := mihf.PoA(""), float32(math.Inf(-1))
	for i := range ns.list[:ns.n] {
		if n := &ns.list[i]; !old(now, n.at) && !n.inter && n.power > power {
			best, power = n.poa, n.power
		}
	}
	return best
}
