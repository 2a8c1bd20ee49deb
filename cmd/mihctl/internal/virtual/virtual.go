// Package virtual runs the broker's decisions over a recording in virtual time: the
// engine and a predictor, without a daemon, a clock or a goroutine.
//
// # Guarantees
//
//   - Deterministic: the same recording and options give the same deliveries.
//   - Everything that is due between two observations is done at its own moment, in order.
//   - Truth is never given to the engine; the caller sees it in its place.
//
// # Limits
//
// Each link of the recording gets one flow that keeps its address; what a transport
// would answer (acknowledgements, newer RTTs) is not simulated.
package virtual

import (
	"fmt"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/sensors/replay"
)

// Tail is how long the machine runs on after the last observation, so that what is open
// ends.
const Tail = mihf.ForecastHorizon

// Boot is the run that sequences and predictions belong to.
const Boot = mihf.BootID(1)

// Options say what is run.
type Options struct {
	Engine engine.Config // Boot is set by Run
	// Flow is registered once for each link; RTT 0 in it: no flows.
	Flow mihf.FlowSpec
}

// Emit takes what came out at a moment: a delivery, or the truth that the recording tells.
// An error ends the run.
type Emit func(now mihf.Time, d *mihf.Delivery, truth *mihf.Observation) error

// Refused is what a recording holds and was not taken.
type Refused struct {
	Links        int    // distinct, counted up to [MaxRefusedLinks]
	Observations uint64 // of those links
	Sensors      uint64 // conditions of sensors beyond the engine's limit
	Values       uint64 // outside the range of their parameter
}

// MaxRefusedLinks bounds the refused links that are told apart.
const MaxRefusedLinks = 1 << 20

// Run plays what the player gives to its end, and returns what was not taken. The error is
// that of emit, or says at which line the recording cannot be read.
func Run(p *replay.Player, o Options, emit Emit) (Refused, error) {
	m := &machine{flow: o.Flow, emit: emit, seen: map[mihf.LinkID]bool{}, refused: map[mihf.LinkID]struct{}{}}
	err := m.run(p, o.Engine)
	r := m.engine.Refused()
	return Refused{Links: len(m.refused), Observations: r.Links, Sensors: r.Sensors, Values: p.Refused()}, err
}

func (m *machine) run(p *replay.Player, cfg engine.Config) error {
	cfg.Boot = Boot
	m.engine = engine.New(cfg)
	var obs mihf.Observation
	for {
		due, ok := p.Next(&obs)
		if !ok {
			break
		}
		if err := m.observe(due, &obs); err != nil {
			return err
		}
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("read the recording: %w", err)
	}
	return m.advance(m.now.Add(Tail))
}

type machine struct {
	engine   *engine.Engine
	flow     mihf.FlowSpec
	emit     Emit
	now      mihf.Time
	previous uint64
	seen     map[mihf.LinkID]bool
	refused  map[mihf.LinkID]struct{}
}

func (m *machine) observe(due mihf.Time, o *mihf.Observation) error {
	if err := m.advance(due); err != nil {
		return err
	}
	m.now = due
	if o.Kind == mihf.ObsTruth {
		return m.emit(due, nil, o)
	}
	before := m.engine.Refused().Links
	m.engine.Observe(due, o)
	if m.engine.Refused().Links != before && len(m.refused) < MaxRefusedLinks {
		m.refused[o.Link] = struct{}{}
	}
	if err := m.register(o.Link); err != nil {
		return err
	}
	return m.drain()
}

// register gives a link its flow when the engine has come to know the link.
func (m *machine) register(id mihf.LinkID) error {
	if id == "" || m.seen[id] || m.flow.RTT == 0 {
		return nil
	}
	if _, err := m.engine.LinkStatus(m.now, id); err != nil {
		return nil //nolint:nilerr // refused or already gone: there is nothing to register on
	}
	m.seen[id] = true
	spec := m.flow
	spec.ID, spec.Link = mihf.FlowID(fmt.Sprintf("%026d", len(m.seen))), id
	if _, err := m.engine.Register(m.now, &spec, 0); err != nil {
		return fmt.Errorf("register a flow on %s: %w", mihf.EscapeString(string(id)), err)
	}
	return nil
}

// advance does what is due up to a moment, each at its own.
func (m *machine) advance(until mihf.Time) error {
	for {
		next := m.engine.Next()
		if next == 0 || next > until {
			return nil
		}
		m.now = max(m.now, next)
		m.engine.Advance(m.now)
		if err := m.drain(); err != nil {
			return err
		}
	}
}

// drain passes on what came out.
func (m *machine) drain() error {
	for _, it := range m.engine.Out() {
		d := mihf.Delivery{Previous: m.previous, Kind: mihf.DeliverEvent, Event: it.Event}
		if it.IsHint {
			d = mihf.Delivery{Previous: m.previous, Kind: mihf.DeliverHint, Hint: it.Hint}
		}
		m.previous = it.Sequence
		if err := m.emit(m.now, &d, nil); err != nil {
			return err
		}
	}
	return nil
}
