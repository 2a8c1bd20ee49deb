package wiring

import (
	"context"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

// Counters is a part that counts.
type Counters func() []mihf.CounterValue

// Reported is a broker whose Status also has what only the wiring knows: the predictor's
// name and the counters of sensors and fronts.
type Reported struct {
	*broker.Broker
	predictor string
	parts     []Counters
	states    []func() mihf.SensorCondition // of fronts
}

// Report returns b with a fuller Status.
func Report(b *broker.Broker, predictor string) *Reported {
	return &Reported{Broker: b, predictor: predictor}
}

// Add adds a part's counters. It must not be called once a front runs.
func (r *Reported) Add(c Counters) { r.parts = append(r.parts, c) }

// AddCondition adds the condition of a front that depends on something outside. It must not be
// called once a front runs.
func (r *Reported) AddCondition(c func() mihf.SensorCondition) { r.states = append(r.states, c) }

// Status returns counts and conditions of all parts.
func (r *Reported) Status(ctx context.Context, who mihf.Caller) (mihf.Status, error) {
	s, err := r.Broker.Status(ctx, who)
	if err != nil {
		return s, err
	}
	s.Predictor = r.predictor
	for _, part := range r.parts {
		s.Counters = append(s.Counters, part()...)
	}
	for _, state := range r.states {
		s.Fronts = append(s.Fronts, state())
	}
	return s, nil
}
