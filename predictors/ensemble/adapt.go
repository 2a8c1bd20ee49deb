package ensemble

import (
	"math"

	"mihf.dev/mihf"
)

const (
	adaptPrior  = 3.0    // events: how long the shipped rate is trusted
	adaptMemory = 1800.0 // seconds
	adaptLeast  = 0.05
	adaptMost   = 2.0
	adaptEvery  = 1.0  // seconds
	adaptGap    = 10.0 // seconds between two looks, beyond which nothing is compared
)

// Adaptation is how a link differs from what its models expect: events seen against events
// expected, fading over half an hour. It scales the hazards, within 0.05 and 2. The zero
// Adaptation changes nothing.
type Adaptation struct {
	Expected, Seen float32
}

// factor is what hazards are multiplied by: the mean of a gamma distribution whose prior
// is worth three events.
func (a *Adaptation) factor() float32 {
	return min(max((a.Seen+adaptPrior)/(a.Expected+adaptPrior), adaptLeast), adaptMost)
}

func (a *Adaptation) add(expected, seen, seconds float32) {
	keep := float32(math.Exp(-float64(seconds) / adaptMemory))
	a.Expected = a.Expected*keep + expected
	a.Seen = a.Seen*keep + seen
}

// learner keeps the adaptation of each model.
type learner struct {
	models [NumModels]Adaptation
	at     mihf.Time
	seen   [2]uint32 // counts of the tracker's events that were taken, by cause
}

// learn compares what the models expect with what came, once a second.
func (p *Predictor) learn(now mihf.Time) {
	l := &p.learner
	dt := now.Sub(l.at).Seconds()
	if !l.at.IsZero() && dt < adaptEvery {
		return
	}
	l.at = now
	loss, handover := p.track.Models(now)
	events := [2]uint32{p.track.losses(loss), p.track.handovers}
	for c, m := range [2]Model{loss, handover} {
		came := float32(events[c] - l.seen[c])
		if events[c] < l.seen[c] {
			came = 0
		}
		l.seen[c] = events[c]
		if m == ModelNone || !p.models[m].known || dt > adaptGap || (m.Cause() == mihf.CauseHandover && p.track.poa == "") {
			continue // or who does not know the cell sees no handover
		}
		var x Vector
		p.track.Vector(now, m, &x)
		l.models[m].add(p.models[m].rate(&x)*float32(dt), came, float32(dt))
	}
}

// losses counts what a model of losses is about.
func (t *Tracker) losses(m Model) uint32 {
	if m == ModelProbe {
		return t.stalled
	}
	return t.familiar.Losses()
}

// rate is the hazard now, a second, as the model has it.
func (m *compiled) rate(x *Vector) float32 {
	var c mihf.Incidence
	m.incidence(x, 1, &c)
	return c[oneSecond]
}

// oneSecond is the place of 1 s in mihf.Horizons.
var oneSecond = func() int {
	for i, h := range mihf.Horizons {
		if h >= 1 {
			return i
		}
	}
	return 0
}()
