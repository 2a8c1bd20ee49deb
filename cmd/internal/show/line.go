package show

import (
	"fmt"
	"strings"

	"mihf.dev/mihf"
)

// Hint says what a hint asks of its flow: old → new, and why.
func Hint(h *mihf.Hint) string {
	var s string
	switch h.Kind {
	case mihf.HintFreeze:
		s = freeze(&h.Freeze)
	case mihf.HintUnfreeze:
		s = change("frozen", "running", h.Unfreeze.Cause.String())
		if h.Unfreeze.Recovery {
			s = change("frozen", "recovery", h.Unfreeze.Cause.String())
		}
	case mihf.HintPrepare:
		s = "prepare for " + Name(h.Prepare.Target) + " in " + Span(h.Prepare.Deadline)
	case mihf.HintSwitch:
		s = change(Name(h.Link), Name(h.Switch.Target), "switch")
	case mihf.HintAbandon:
		s = change("running", "abandoned", h.Abandon.String())
	case mihf.HintCharacteristics:
		s = LCI(h.Characteristics)
	default:
		s = "a kind of hint that this program does not know"
	}
	s = fmt.Sprintf("flow %s: %s (epoch %d)", Name(h.Flow), s, h.Epoch)
	if !h.Prediction.IsZero() {
		s += " [" + h.Prediction.String() + "]"
	}
	return s
}

func freeze(f *mihf.Freeze) string {
	why := f.Reason.String()
	if f.P50 > 0 {
		why = "loss in " + Span(f.P50) + " (p10 " + Span(f.P10) + ", p90 " + Span(f.P90) + ")"
	}
	s := change("running", "frozen", why+", lease "+Span(f.Lease))
	if f.ExpectedOutage > 0 {
		s += ", outage of " + Span(f.ExpectedOutage)
	}
	return s
}

// LCI shows the characteristics that are known, each with its source.
func LCI(l *mihf.LCI) string {
	if l == nil {
		return "characteristics " + Unknown
	}
	s := ""
	add := func(name string, c mihf.Characteristic, value func(float64) string) {
		if c.Known() {
			s += ", " + name + " " + value(c.Value) + " (" + c.Source.String() + ")"
		}
	}
	seconds := func(v float64) string { return Value(mihf.ParamRTT, v) }
	bytes := func(v float64) string { return Number(v) + " bytes" }
	add("down", l.CapacityDownBPS, Rate)
	add("up", l.CapacityUpBPS, Rate)
	add("RTT", l.RTTSeconds, seconds)
	add("jitter", l.JitterSeconds, seconds)
	add("loss", l.LossRatio, Number)
	add("MTU", l.MTUBytes, bytes)
	add("buffer", l.BufferBytes, bytes)
	if s == "" {
		return "characteristics " + Unknown
	}
	return "characteristics " + s[2:]
}

// Gap says what is missing.
func Gap(g *mihf.Gap) string {
	if g.From >= g.To { // nothing is missing, but what was asked for is not there
		return "begins anew, " + Text(g.Reason)
	}
	return fmt.Sprintf("deliveries %d to %d are missing, %s", g.From+1, g.To, Text(g.Reason))
}

// Snapshot says in one line what a snapshot holds.
func Snapshot(s *mihf.Snapshot) string {
	up := 0
	for i := range s.Links {
		if s.Links[i].Up {
			up++
		}
	}
	return fmt.Sprintf("state of run %s on %s: %s, %d up, %s", s.Boot, Name(s.Node), count(len(s.Links), "link"), up, count(len(s.Flows), "flow"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Changes turns deliveries into lines of one form:
//
//	TIME  SEQUENCE  LINK  KIND  old → new, reason
//
// It remembers the sensors' conditions and which flows are frozen, to show the state
// before, and the widest link, to keep the columns. It is used by one goroutine.
type Changes struct {
	// Time shows a moment; each of its results has the same width.
	Time    func(mihf.Time) string
	sensors map[string]mihf.Condition
	frozen  map[mihf.FlowID]bool
	link    int // cells of the widest link so far
}

// Line returns the line of one delivery.
func (c *Changes) Line(d *mihf.Delivery) string {
	text := c.Text(d)
	switch d.Kind {
	case mihf.DeliverEvent:
		return c.line(d.Event.At, d.Event.Sequence, d.Event.Link, d.Event.Kind.String(), text)
	case mihf.DeliverHint:
		return c.line(d.Hint.At, d.Hint.Sequence, d.Hint.Link, "hint "+d.Hint.Kind.String(), text)
	case mihf.DeliverGap:
		return c.line(0, d.Gap.To, "", "gap", text)
	case mihf.DeliverSnapshot:
		return c.line(d.Snapshot.At, d.Snapshot.Sequence, "", "snapshot", text)
	}
	return ""
}

// Indent returns the cell at which the link begins in each line.
func (c *Changes) Indent() int { return Width(c.Time(1)) + len(" 123456  ") }

// Text returns what the line of a delivery ends with: old → new, reason. A delivery is
// given to Line or Text once.
func (c *Changes) Text(d *mihf.Delivery) string {
	switch d.Kind {
	case mihf.DeliverEvent:
		text := Event(&d.Event)
		if d.Event.Kind == mihf.SensorConditionChanged {
			text = c.condition(or(d.Event.Condition))
		}
		if d.Conflated > 0 {
			text += fmt.Sprintf(" (replaces %d)", d.Conflated)
		}
		return text
	case mihf.DeliverHint:
		return c.hint(&d.Hint)
	case mihf.DeliverGap:
		return Gap(&d.Gap)
	case mihf.DeliverSnapshot:
		for _, s := range d.Snapshot.Sensors {
			c.remember(&s)
		}
		for i := range d.Snapshot.Links {
			c.widen(d.Snapshot.Links[i].Link)
		}
		for i := range d.Snapshot.Flows {
			c.freeze(d.Snapshot.Flows[i].Spec.ID, d.Snapshot.Flows[i].Frozen)
		}
		return Snapshot(d.Snapshot)
	}
	return ""
}

// kindWidth is that of the longest kind.
const kindWidth = len("link_parameters_report")

func (c *Changes) line(at mihf.Time, sequence uint64, link mihf.LinkID, kind, text string) string {
	when := c.Time(at)
	if at.IsZero() {
		when = Pad(Unknown, Width(c.Time(1)))
	}
	c.widen(link)
	return fmt.Sprintf("%s %6d  %s  %-*s  %s", when, sequence, Pad(Name(link), c.link), kindWidth, kind, text)
}

// widen makes room for a link, so that what follows it stands in columns.
func (c *Changes) widen(link mihf.LinkID) {
	c.link = max(c.link, Width(Name(link)), len("wifi-00000000"))
}

func (c *Changes) condition(n *mihf.SensorCondition) string {
	old := Unknown
	if s, ok := c.sensors[n.Sensor]; ok {
		old = s.String()
	}
	c.remember(n)
	return Name(n.Sensor) + " " + change(old, n.Condition.String(), Text(n.Text))
}

// Renewed is how the text of a Freeze shows that its flow was frozen already.
const Renewed = "frozen → frozen"

// hint tells a lease that is renewed from a flow that is frozen.
func (c *Changes) hint(h *mihf.Hint) string {
	renewed := h.Kind == mihf.HintFreeze && c.frozen[h.Flow]
	switch h.Kind {
	case mihf.HintFreeze, mihf.HintUnfreeze, mihf.HintAbandon:
		c.freeze(h.Flow, h.Kind == mihf.HintFreeze)
	default:
	}
	text := Hint(h)
	if renewed {
		text = strings.Replace(text, "running → frozen", Renewed, 1)
	}
	return text
}

// Bounds of what is remembered.
const (
	maxSensors = 256
	maxFlows   = 4096
)

func (c *Changes) freeze(id mihf.FlowID, frozen bool) {
	switch {
	case !frozen:
		delete(c.frozen, id)
	case len(c.frozen) < maxFlows:
		if c.frozen == nil {
			c.frozen = map[mihf.FlowID]bool{}
		}
		c.frozen[id] = true
	}
}

func (c *Changes) remember(s *mihf.SensorCondition) {
	if c.sensors == nil {
		c.sensors = map[string]mihf.Condition{}
	}
	if _, known := c.sensors[s.Sensor]; known || len(c.sensors) < maxSensors {
		c.sensors[s.Sensor] = s.Condition
	}
}
