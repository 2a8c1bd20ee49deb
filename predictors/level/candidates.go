package level

import (
	"bytes"
	"math"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

const (
	maxCandidates   = 16
	candidateMaxAge = 5.0 // seconds; nothing is compared with an older reading
	orderValid      = 2.0 // seconds for which an ordered handover is expected

	pOrdered    = 0.98 // an ordered handover does not always come off
	orderedTime = 0.2  // mean seconds from the order to it
	pBetter     = 0.6  // a station may stay where it is although another is better
)

// rule is when a better candidate makes a handover likely: by how much, how surely, and
// how soon.
type rule struct {
	margin, sd float64 // dB by which it must be better
	time       float64 // mean seconds until the handover
}

var (
	wifiRule = rule{margin: 10, sd: 3, time: 4}  // the station looks around now and then
	cellRule = rule{margin: 5, sd: 1.5, time: 1} // event A3: offset, hysteresis, time to trigger
)

// candidate is another point of attachment that the link could move to.
type candidate struct {
	poa    mihf.PoA
	series int // index in floors
	value  float64
	at     mihf.Time
}

// candidates keeps the newest reading of the best known points of attachment.
type candidates struct {
	list [maxCandidates]candidate
	n    int

	ordered   mihf.PoA
	orderedAt mihf.Time
}

// add stores one reading of one candidate in place of its older one, of a free place,
// or of the weakest or outdated one.
func (cs *candidates) add(c candidate) {
	place, worst := -1, 0
	for i := range cs.list[:cs.n] {
		x := &cs.list[i]
		if x.poa == c.poa && x.series == c.series {
			place = i
			break
		}
		if cs.list[worst].value > x.value || stale(c.at, x.at) {
			worst = i
		}
	}
	switch {
	case place >= 0:
	case cs.n < maxCandidates:
		place = cs.n
		cs.n++
	case cs.list[worst].value < c.value || stale(c.at, cs.list[worst].at):
		place = worst
	default:
		return
	}
	cs.list[place] = c
}

func stale(now, at mihf.Time) bool { return now.Sub(at).Seconds() > candidateMaxAge }

// best returns the strongest fresh candidate of a series.
func (cs *candidates) best(now mihf.Time, series int, serving mihf.PoA) *candidate {
	var best *candidate
	for i := range cs.list[:cs.n] {
		c := &cs.list[i]
		if c.series != series || c.poa == serving || stale(now, c.at) {
			continue
		}
		if best == nil || c.value > best.value {
			best = c
		}
	}
	return best
}

// sameESS reports whether a candidate's network is the one the link is on. Cells have
// no SSID.
func sameESS(ssid, candidate []byte) bool { return bytes.Equal(ssid, candidate) }

// order fills in the handover that the network ordered, and reports whether there is one.
func (cs *candidates) order(now mihf.Time, serving mihf.PoA, f *mihf.Forecast) bool {
	since := now.Sub(cs.orderedAt).Seconds()
	if cs.orderedAt.IsZero() || since > orderValid || cs.ordered == serving {
		return false
	}
	f.Target = cs.ordered
	f.Handover.Set(func(h float64) float64 { return exponential(pOrdered, orderedTime, h) })
	predictors.Compete(f)
	return true
}

// handover fills in the handover for which there is evidence, against the serving
// level of a series.
func (cs *candidates) handover(now mihf.Time, serving mihf.PoA, series int, level float64, f *mihf.Forecast) {
	if cs.order(now, serving, f) {
		return
	}
	c := cs.best(now, series, serving)
	if c == nil {
		return
	}
	r := &cellRule
	if floors[series].wifi {
		r = &wifiRule
	}
	p := pBetter * above(((c.value-level)/floors[series].unit-r.margin)/r.sd)
	if p < mihf.MinProbability {
		return
	}
	f.Target = c.poa
	f.Handover.Set(func(h float64) float64 { return exponential(p, r.time, h) })
	predictors.Compete(f)
}

// exponential is an incidence that reaches p, with a mean time.
func exponential(p, mean, h float64) float64 { return p * -math.Expm1(-h/mean) }
