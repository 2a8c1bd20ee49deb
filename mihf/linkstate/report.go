package linkstate

import (
	"fmt"

	"mihf.dev/mihf"
)

// MaxThresholds bounds the items set on one link by all callers.
const MaxThresholds = 128

// params are the newest values of a link and what was reported of them.
type params struct {
	values   mihf.Values
	at       mihf.Time
	valueAt  [mihf.NumParameters]mihf.Time
	reported mihf.Values
	nextOK   [mihf.NumParameters]mihf.Time // when a parameter may be reported again
	pending  uint32                        // parameters that changed before that
	given    uint32                        // parameters that ever had a value
	items    []threshold
	next     mihf.Time
}

// threshold is one item that was configured.
type threshold struct {
	cfg   mihf.ThresholdConfig
	by    mihf.Identity // who set it last
	fired bool          // reported, and the value has not come back since
	due   mihf.Time     // of the next periodic report
}

// defaultHysteresis is used where a threshold gives none.
func defaultHysteresis(p mihf.Parameter) float64 {
	switch p.Unit() {
	case "dBm", "dB":
		return 2
	case "%":
		return 5
	}
	return 0
}

// Configure applies Link_Configure_Thresholds: all items or none. An item takes the place
// of one of the same parameter with the same threshold, or without one, that is periodic
// like it or not. A cancel removes what it would replace; with neither threshold nor
// period, all of the parameter. An item is its link's, whoever set it, but counts for the
// caller who did so last. The error says which item is wrong and why; a parameter that the
// link cannot give is wrong, one that it has not given yet is not.
func (m *Machine) Configure(now mihf.Time, by mihf.Identity, items []mihf.ThresholdConfig) error {
	next := append([]threshold(nil), m.params.items...)
	for i, c := range items {
		if err := m.check(&c); err != nil {
			return fmt.Errorf("threshold %d: %w", i, err)
		}
		next = without(next, c)
		if c.Action == mihf.ThresholdCancel {
			continue
		}
		if err := m.roomFor(next, by); err != nil {
			return fmt.Errorf("threshold %d: %w", i, err)
		}
		if c.Hysteresis == 0 {
			c.Hysteresis = defaultHysteresis(c.Parameter)
		}
		t := threshold{cfg: c, by: by}
		if c.Period > 0 {
			t.due = now.Add(c.Period)
		}
		next = append(next, t)
	}
	m.params.items = next
	m.schedule()
	return nil
}

// roomFor fails if the caller may set no more than items.
func (m *Machine) roomFor(items []threshold, by mihf.Identity) error {
	own := 0
	for i := range items {
		if items[i].by == by {
			own++
		}
	}
	switch {
	case own >= m.cfg.MaxThresholdsPerUser:
		return fmt.Errorf("%w: %v has set %d on the link; see [link] max_thresholds_per_user", mihf.ErrLimit, by, own)
	case len(items) >= MaxThresholds:
		return fmt.Errorf("%w: at most %d on a link; cancel some", mihf.ErrLimit, MaxThresholds)
	}
	return nil
}

// check says what is wrong with an item for this link. What the link's type does not have is
// refused, for no report of it would come, unless it has been given all the same: the type is
// that of one of the link's interfaces.
func (m *Machine) check(c *mihf.ThresholdConfig) error {
	if err := c.Check(); err != nil {
		return err
	}
	t := m.link.Type()
	if c.Action == mihf.ThresholdCancel || t.MayGive(c.Parameter) || m.params.given&(1<<c.Parameter) != 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is of type %s, which has no %v", mihf.ErrInvalid, m.link, t, c.Parameter)
}

// without removes the items that c names.
func without(items []threshold, c mihf.ThresholdConfig) []threshold {
	all := !c.Threshold.Known() && c.Period == 0
	kept := items[:0:0]
	for _, t := range items {
		same := t.cfg.Threshold == c.Threshold && (t.cfg.Period > 0) == (c.Period > 0)
		if t.cfg.Parameter == c.Parameter && (all || same) {
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// observeValues takes new values: crossings are reported at once, changes at most every
// ReportEvery.
func (m *Machine) observeValues(now, at mihf.Time, values *mihf.Values, ev *Events) {
	for p := range mihf.Parameter(mihf.NumParameters) {
		v, ok := values.Get(p)
		if !ok || at.Before(m.params.valueAt[p]) {
			continue
		}
		m.params.values.Set(p, v)
		m.params.given |= 1 << p
		m.params.valueAt[p] = at
		m.params.at = max(m.params.at, at)
		crossed := m.cross(now, p, v, ev)
		if last, known := m.params.reported.Get(p); crossed || (known && last == v) {
			m.params.pending &^= 1 << p // nothing differs from what was reported
			continue
		}
		if now.Before(m.params.nextOK[p]) {
			m.params.pending |= 1 << p
			continue
		}
		m.report(now, p, false, ev)
	}
	m.schedule()
}

// forget drops the values of a link that is down: they were those of its lost attachment.
// What crossed a threshold stays crossed until a value comes back.
func (ps *params) forget(now mihf.Time) {
	ps.values, ps.reported = mihf.Values{}, mihf.Values{}
	ps.pending, ps.at = 0, 0
	for p := range ps.valueAt {
		ps.valueAt[p] = now
	}
}

// cross reports the thresholds that v crosses and whether there was one.
func (m *Machine) cross(now mihf.Time, p mihf.Parameter, v float64, ev *Events) bool {
	crossed := false
	items := m.params.items
	for i := 0; i < len(items); i++ {
		t := &items[i]
		level, has := t.cfg.Threshold.Get()
		if !has || t.cfg.Parameter != p {
			continue
		}
		beyond, back := v > level.Value, v <= level.Value-t.cfg.Hysteresis
		if level.Direction == mihf.ThresholdBelow {
			beyond, back = v < level.Value, v >= level.Value+t.cfg.Hysteresis
		}
		if t.fired {
			t.fired = !back
			continue
		}
		if !beyond {
			continue
		}
		t.fired, crossed = true, true
		e := ev.add(m.params.valueAt[p], m.link, mihf.LinkParametersReport)
		e.Report = mihf.Report{Parameter: p, Value: v, Previous: m.lastReported(p), Threshold: t.cfg.Threshold}
		if t.cfg.Action == mihf.ThresholdOneShot {
			items = append(items[:i], items[i+1:]...)
			m.params.items = items
			i--
		}
	}
	if crossed {
		m.reportedNow(now, p, v)
	}
	return crossed
}

// report publishes the newest value; it must be known.
func (m *Machine) report(now mihf.Time, p mihf.Parameter, periodic bool, ev *Events) {
	v, _ := m.params.values.Get(p)
	e := ev.add(m.params.valueAt[p], m.link, mihf.LinkParametersReport)
	e.Report = mihf.Report{Parameter: p, Value: v, Previous: m.lastReported(p), Periodic: periodic}
	m.reportedNow(now, p, v)
}

func (m *Machine) lastReported(p mihf.Parameter) mihf.Opt[float64] {
	if v, ok := m.params.reported.Get(p); ok {
		return mihf.Some(v)
	}
	return mihf.Opt[float64]{}
}

func (m *Machine) reportedNow(now mihf.Time, p mihf.Parameter, v float64) {
	m.params.reported.Set(p, v)
	m.params.nextOK[p] = now.Add(m.cfg.ReportEvery)
	m.params.pending &^= 1 << p
}

// advanceReports sends the reports that waited and the periodic ones.
func (m *Machine) advanceReports(now mihf.Time, ev *Events) {
	for p := range mihf.Parameter(mihf.NumParameters) {
		if m.params.pending&(1<<p) != 0 && m.params.nextOK[p].Due(now) {
			m.report(now, p, false, ev)
		}
	}
	for i := range m.params.items {
		t := &m.params.items[i]
		if !t.due.Due(now) {
			continue
		}
		t.due = now.Add(t.cfg.Period - now.Sub(t.due)%t.cfg.Period) // what was missed is not made up for
		if m.params.values.Has(t.cfg.Parameter) {
			m.report(now, t.cfg.Parameter, true, ev)
		}
	}
	m.schedule()
}

func (m *Machine) schedule() {
	m.params.next = 0
	for p := range mihf.NumParameters {
		if m.params.pending&(1<<p) != 0 {
			m.params.next = mihf.Sooner(m.params.next, m.params.nextOK[p])
		}
	}
	for i := range m.params.items {
		m.params.next = mihf.Sooner(m.params.next, m.params.items[i].due)
	}
}

// Values returns the newest values and when the newest of them was true.
func (m *Machine) Values() (*mihf.Values, mihf.Time) { return &m.params.values, m.params.at }
