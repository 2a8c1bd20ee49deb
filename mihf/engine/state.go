package engine

import (
	"fmt"
	"slices"
	"strings"

	"mihf.dev/mihf"
)

// Snapshot returns the whole state. See decides which flows' owners it shows.
func (e *Engine) Snapshot(now mihf.Time, see func(owner uint32) bool) *mihf.Snapshot {
	s := &mihf.Snapshot{
		Sequence: e.sequence, Boot: e.cfg.Boot, Node: e.cfg.Node, At: now,
		Sensors: append([]mihf.SensorCondition(nil), e.sensors...), Kinds: e.kinds,
	}
	for _, l := range e.order {
		s.Links = append(s.Links, e.status(now, l))
	}
	for _, f := range e.table.All() {
		var st mihf.FlowStatus
		if see(f.Owner) && e.policy.Status(now, f.ID, &st) {
			s.Flows = append(s.Flows, st)
		}
	}
	slices.SortFunc(s.Flows, func(a, b mihf.FlowStatus) int { return strings.Compare(string(a.Spec.ID), string(b.Spec.ID)) })
	for _, g := range e.egress {
		if g.Link != "" {
			s.Egress = append(s.Egress, g)
		}
	}
	return s
}

func (e *Engine) status(now mihf.Time, l *link) mihf.LinkStatus {
	var s mihf.LinkStatus
	l.machine.Status(now, &s)
	if l.forecasted {
		f := l.forecast
		s.Forecast = &f
	}
	return s
}

// LinkStatus returns the state of one link. The error wraps mihf.ErrNotFound.
func (e *Engine) LinkStatus(now mihf.Time, id mihf.LinkID) (mihf.LinkStatus, error) {
	l := e.links[id]
	if l == nil {
		return mihf.LinkStatus{}, fmt.Errorf("%w: link %q", mihf.ErrNotFound, string(id))
	}
	return e.status(now, l), nil
}

// ConfigureThresholds applies all items of a caller to a link or none. The error wraps
// mihf.ErrNotFound, mihf.ErrInvalid or mihf.ErrLimit.
func (e *Engine) ConfigureThresholds(now mihf.Time, id mihf.LinkID, by mihf.Identity, items []mihf.ThresholdConfig) error {
	l := e.links[id]
	if l == nil {
		return fmt.Errorf("%w: link %q", mihf.ErrNotFound, string(id))
	}
	return l.machine.Configure(now, by, items)
}

// Counts returns how many links and flows there are.
func (e *Engine) Counts() (links, flows int) { return len(e.links), e.policy.Len() }

// Refused returns what was not taken because a bound was reached.
func (e *Engine) Refused() Refused { return e.refused }

// Sensors returns the sensors' conditions. The slice is the machine's own.
func (e *Engine) Sensors() []mihf.SensorCondition { return e.sensors }

// FlowStatus fills what is known of a flow; false if it is not registered.
func (e *Engine) FlowStatus(now mihf.Time, id mihf.FlowID, s *mihf.FlowStatus) bool {
	return e.policy.Status(now, id, s)
}
