// Package ensemble is the method "ensemble": discrete-time hazard models over everything
// that is known of a link, with the floor of level-slope and the memory of familiar.
//
// A model is a logistic regression a bin of time: how probable is the event in the bin,
// given that it did not come before? Which models speak follows from what is known: Wi-Fi
// or cell, with neighbours or without, with SINR, with answers to probes. The weights are
// figures that package train made from recordings; weights.json says from which.
//
// # Guarantees
//
//   - Those of package predictors.
//   - Neither a scan nor a suspend counts as silence. Pauses of Wi-Fi readings alone never
//     make more than familiar.Doubt.
//   - Models are shared and not changed; a set of models that does not fit is refused.
//
// # Limits
//
// The weights know the networks that they were made from. Losses of a cell that no
// handover precedes are foreseen by the floor of level-slope, and by probes.
package ensemble

import (
	"math"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
	"mihf.dev/predictors/familiar"
	"mihf.dev/predictors/level"
)

// Name is the method's name in configuration.
const Name = "ensemble"

// fastest is the interval between readings, in seconds, up to which the trend of
// level-slope counts on Wi-Fi.
const fastest = 0.6

// goodSignal, in dBm, is where a signal is so good that it alone says nothing of a loss;
// goodRange dB below it counts in full.
const goodSignal, goodRange = -58, 8

const orderValid = 2 * time.Second // an order of the network is expected to be carried out by then

const clockBack = 10 * time.Second // time that went back further is a new time

// Method returns the method, with the models that the program comes with.
func Method() predictors.Method { return With(shippedModels) }

// With returns the method with other models.
func With(c *Compiled) predictors.Method {
	return predictors.Method{
		Name:        Name,
		Description: "hazard models over signal, neighbours, probes and what is familiar",
		New:         func() predictors.Predictor { return New(c) },
	}
}

var shippedModels = func() *Compiled {
	s := Shipped()
	c, err := s.Compile()
	if err != nil {
		panic("ensemble: weights.json: " + err.Error()) // a test reads it
	}
	return c
}()

// Predictor is the state of one link. It is used by one goroutine.
type Predictor struct {
	models  *Compiled
	level   level.Predictor
	track   Tracker
	learner learner
}

// New returns a predictor that has seen nothing.
func New(c *Compiled) *Predictor { return &Predictor{models: c, track: NewTracker()} }

// Observe takes what a sensor saw.
func (p *Predictor) Observe(now mihf.Time, o *mihf.Observation) {
	if now.Before(p.track.now) {
		if p.track.now.Sub(now) <= clockBack {
			return
		}
		memory := p.track.familiar
		*memory = familiar.State{}
		*p = Predictor{models: p.models, track: Tracker{familiar: memory}}
	}
	p.level.Observe(now, o)
	p.track.Observe(now, o)
	if o.Kind == mihf.ObsRadio {
		p.learn(now)
	}
}

// Reset forgets how the link differs from what the models expect.
func (p *Predictor) Reset() { p.learner = learner{} }

// Forecast fills f with the forecast at now.
func (p *Predictor) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	known := p.level.Forecast(now, f)
	at := max(now, p.track.now)
	loss, handover := p.track.Models(at)
	if !known && loss != ModelProbe {
		return false
	}
	var x Vector
	var c mihf.Incidence
	if handover != ModelNone {
		p.cell(at, handover, &x, f)
	} else if float64(p.track.interval) > fastest {
		f.Loss = mihf.Incidence{} // the trend of level-slope is not made for so few readings
	}
	if m := &p.models[loss]; m.known {
		p.track.Vector(at, loss, &x)
		m.incidence(&x, p.learner.models[loss].factor(), &c)
		if loss == ModelWiFi {
			p.doubt(&c)
		}
		for i := range c {
			f.Loss[i] = 1 - (1-f.Loss[i])*(1-c[i])
		}
	}
	share(f)
	return true
}

// doubt takes back what the model of Wi-Fi says without evidence: of a good signal at a
// place that is not known for losses, and beyond familiar.Doubt where no loss was seen.
func (p *Predictor) doubt(c *mihf.Incidence) {
	t := &p.track
	evidence := (goodSignal - t.signals[sigRSSI].last) / goodRange
	if t.familiar.Known() {
		w := t.familiar.Within()
		evidence = max(evidence, float32(2*w[len(w)-1]))
	}
	evidence = min(max(evidence, 0), 1)
	most := float32(1)
	if !t.familiar.Sure() {
		most = familiar.Doubt
	}
	for i := range c {
		c[i] = min(c[i]*evidence, most)
	}
}

// share keeps the two causes within 1 together.
func share(f *mihf.Forecast) {
	low := float32(0)
	for i := range f.Handover {
		low = max(low, min(f.Handover[i], 1-f.Loss[len(f.Loss)-1]))
		f.Handover[i] = low
	}
}

// cell replaces what level-slope says of a cell by what the model of handovers says: that
// the attachment ends. It is a loss as far as level-slope takes it for one.
func (p *Predictor) cell(at mihf.Time, model Model, x *Vector, f *mihf.Forecast) {
	if f.Target == "" {
		f.Target = p.track.around.strongest(at)
	}
	if !p.track.ordered.IsZero() && at.Sub(p.track.ordered) <= orderValid {
		return // the network said what comes
	}
	var c mihf.Incidence
	if m := &p.models[model]; m.known {
		p.track.Vector(at, model, x)
		m.incidence(x, p.learner.models[model].factor(), &c)
	}
	power := f.Trend.Parameter == mihf.ParamRSRP // with nothing known of quality, the floor counts by itself
	var lost, moved float32
	for i := range c {
		ends, floor := c[i], f.Loss[i]
		if power {
			ends = 1 - (1-ends)*(1-floor)
		}
		lost = max(lost, ends*floor)
		moved = max(moved, min(ends-ends*floor, 1-lost))
		f.Loss[i], f.Handover[i] = lost, moved
	}
}

// Alarm returns the policy for a horizon.
func (p *Predictor) Alarm(horizon time.Duration) predictors.Policy {
	loss, handover := p.track.Models(p.track.now)
	if m := &p.models[loss]; m.known {
		return m.policy(horizon)
	}
	return p.models[handover].policy(horizon)
}

// slow is from which interval on, in seconds, readings are slow.
const slow = 3

// Models returns the models that speak of losses and of handovers, as of now.
func (t *Tracker) Models(now mihf.Time) (loss, handover Model) {
	fresh := func(k *track) bool { return !k.at.IsZero() && now.Sub(k.at).Seconds() <= math.Max(t.maxAge(), 5) }
	switch {
	case fresh(&t.signals[sigRSSI]) && t.signals[sigRSRP].at.IsZero():
		return ModelWiFi, ModelNone
	case !t.rtt.at.IsZero() && now.Sub(t.rtt.at).Seconds() <= probeMaxAge:
		loss = ModelProbe
	}
	switch {
	case !fresh(&t.signals[sigRSRP]):
	case !t.around.at.IsZero() && !old(now, t.around.at):
		handover = ModelNeighbours
	case fresh(&t.signals[sigSINR]):
		handover = ModelSINR
	case t.interval > slow:
		handover = ModelSlow
	default:
		handover = ModelCell
	}
	return loss, handover
}
