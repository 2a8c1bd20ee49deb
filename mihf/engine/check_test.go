package engine_test

import (
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/queue"
)

// failer is what a check needs of a test; rapid has a type of its own.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// check holds what must be true of any history of an engine, and is asked after every
// step.
type check struct {
	t        failer
	cfg      *engine.Config
	sequence uint64
	links    map[mihf.LinkID]*linkCheck
	flows    map[mihf.FlowID]*flowCheck
	epochs   map[mihf.FlowID]uint64 // also of flows that are gone
	outcomes map[mihf.PredictionID]mihf.Outcome
	seen     mihf.KindSet // kinds of event that came
	suspends bool         // time may jump: what is bound to a moment may come late
}

type linkCheck struct {
	up     bool
	usable [2]bool
	open   mihf.Prediction
	sent   uint64 // sequence of the announcement
}

type flowCheck struct {
	spec   mihf.FlowSpec
	frozen bool
	since  mihf.Time
	lease  mihf.Time
	pr     mihf.PredictionID
	link   mihf.LinkID
	lost   bool   // its path was lost, or it left the link, while it was frozen
	spans  []span // frozen by predictions
}

type span struct {
	from, to mihf.Time
	pr       mihf.PredictionID
}

func newCheck(t failer, cfg *engine.Config) *check {
	return &check{
		t: t, cfg: cfg, links: map[mihf.LinkID]*linkCheck{}, flows: map[mihf.FlowID]*flowCheck{},
		epochs: map[mihf.FlowID]uint64{}, outcomes: map[mihf.PredictionID]mihf.Outcome{},
	}
}

func (c *check) register(s *mihf.FlowSpec) { c.flows[s.ID] = &flowCheck{spec: *s} }
func (c *check) unregister(id mihf.FlowID) { delete(c.flows, id) }

func (c *check) items(now mihf.Time, items []queue.Item) {
	c.t.Helper()
	for i := range items {
		it := &items[i]
		if it.Sequence <= c.sequence {
			c.t.Fatalf("sequence %d after %d", it.Sequence, c.sequence)
		}
		c.sequence = it.Sequence
		if it.IsHint {
			c.hint(now, &it.Hint)
		} else {
			c.event(now, &it.Event)
		}
	}
}

func (c *check) link(id mihf.LinkID) *linkCheck {
	if c.links[id] == nil {
		c.links[id] = &linkCheck{}
	}
	return c.links[id]
}

func (c *check) event(now mihf.Time, e *mihf.Event) {
	c.t.Helper()
	if e.Sequence != c.sequence || e.Boot != c.cfg.Boot || e.At > now || e.At == 0 {
		c.t.Fatalf("%s at %v of sequence %d, now %v", eventLine(e), e.At, e.Sequence, now)
	}
	c.seen |= mihf.Kinds(e.Kind)
	l := c.link(e.Link)
	switch e.Kind {
	case mihf.LinkUp, mihf.LinkDown:
		if l.up == (e.Kind == mihf.LinkUp) {
			c.t.Fatalf("twice: %s", eventLine(e))
		}
		l.up = !l.up
		if e.Kind == mihf.LinkDown && e.Down.Withheld > c.cfg.Link.RoamWithhold && !c.suspends {
			c.t.Fatal(eventLine(e))
		}
	case mihf.PathUsable, mihf.PathLost:
		family := 0
		if e.Path.IPv6 {
			family = 1
		}
		if l.usable[family] == (e.Kind == mihf.PathUsable) {
			c.t.Fatalf("twice: %s", eventLine(e))
		}
		l.usable[family] = !l.usable[family]
		if l.usable == [2]bool{} {
			c.pathless(e.Link)
		}
	case mihf.LinkGoingDown:
		c.goingDown(now, l, e)
	case mihf.LinkRemoved:
		if l.up || l.usable != [2]bool{} || !l.open.ID.IsZero() {
			c.t.Fatalf("removed as %+v", l)
		}
	default:
	}
	if o := e.Prediction.Outcome; o != mihf.OutcomeOpen {
		if e.Prediction.ID != l.open.ID || l.open.ID.IsZero() {
			c.t.Fatalf("%s, but open is %v", eventLine(e), l.open.ID)
		}
		if _, had := c.outcomes[e.Prediction.ID]; had {
			c.t.Fatalf("second outcome: %s", eventLine(e))
		}
		c.outcomes[e.Prediction.ID] = o
		l.open = mihf.Prediction{}
	}
}

// pathless notes that what the flows of a link were frozen for came true for them.
func (c *check) pathless(id mihf.LinkID) {
	for _, f := range c.flows {
		if f.link == id {
			f.lost = true
		}
	}
}

func (c *check) goingDown(now mihf.Time, l *linkCheck, e *mihf.Event) {
	c.t.Helper()
	p := e.Prediction
	if p.Revision == 0 {
		if !l.open.ID.IsZero() || !l.up {
			c.t.Fatalf("%s while %v is open, up %v", eventLine(e), l.open.ID, l.up)
		}
		l.sent = e.Sequence
	} else if p.ID != l.open.ID || p.Revision != l.open.Revision+1 {
		c.t.Fatalf("%s after revision %d of %v", eventLine(e), l.open.Revision, l.open.ID)
	}
	if p.ExpiresAt <= now || p.Outcome != mihf.OutcomeOpen || p.OpenedAt > now {
		c.t.Fatalf("%+v at %v", p, now)
	}
	l.open = p
}

func (c *check) hint(now mihf.Time, x *mihf.Hint) {
	c.t.Helper()
	f := c.flows[x.Flow]
	if f == nil {
		// Of a registration whose answer is on its way; the test has not noted it yet.
		f = &flowCheck{}
		c.flows[x.Flow] = f
	}
	if x.Epoch <= c.epochs[x.Flow] || x.Sequence != c.sequence || x.At != now {
		c.t.Fatalf("%s of epoch %d after %d at %v, now %v", hintLine(x), x.Epoch, c.epochs[x.Flow], x.At, now)
	}
	c.epochs[x.Flow] = x.Epoch
	switch x.Kind {
	case mihf.HintFreeze:
		c.freeze(now, f, x)
	case mihf.HintUnfreeze:
		if !f.frozen {
			c.t.Fatalf("not frozen: %s", hintLine(x))
		}
		c.thawed(now, f)
	case mihf.HintAbandon:
		c.thawed(now, f)
	case mihf.HintSwitch:
		if c.links[x.Switch.Target] == nil || c.links[x.Switch.Target].usable == [2]bool{} {
			c.t.Fatalf("onto a link that is not usable: %s", hintLine(x))
		}
	default:
	}
}

func (c *check) freeze(now mihf.Time, f *flowCheck, x *mihf.Hint) {
	c.t.Helper()
	if (x.Freeze.Reason == mihf.FreezePredicted) == x.Prediction.IsZero() || x.Freeze.Lease <= 0 {
		c.t.Fatal(hintLine(x))
	}
	if f.frozen {
		if x.Prediction != f.pr {
			c.t.Fatalf("renewed as %s, frozen for %v", hintLine(x), f.pr)
		}
		f.lease = now.Add(x.Freeze.Lease)
		return
	}
	l := c.link(x.Link)
	switch {
	case x.Prediction.IsZero() && !f.spec.LateFreeze && f.spec.ID != "":
		c.t.Fatalf("did not ask for it: %s", hintLine(x))
	case !x.Prediction.IsZero() && (l.open.ID != x.Prediction || l.sent >= x.Sequence || l.open.Cause != mihf.CauseLoss):
		c.t.Fatalf("%s, but open is %v", hintLine(x), l.open.ID)
	case f.spec.Continuity == mihf.ContinuityNone:
		c.t.Fatalf("survives nothing: %s", hintLine(x))
	}
	f.frozen, f.since, f.pr, f.lease = true, now, x.Prediction, now.Add(x.Freeze.Lease)
	f.link, f.lost = x.Link, x.Prediction.IsZero() || l.usable == [2]bool{}
}

func (c *check) thawed(now mihf.Time, f *flowCheck) {
	f.count(now)
	f.frozen = false
}

// count ends the time that a prediction froze the flow for nothing.
func (f *flowCheck) count(now mihf.Time) {
	if f.frozen && !f.lost {
		f.spans = append(f.spans, span{f.since, min(now, f.lease), f.pr})
	}
	f.lost = true
}

// state compares the engine with what came out of it.
func (c *check) state(now mihf.Time, e *engine.Engine) {
	c.t.Helper()
	if next := e.Next(); next != 0 && next <= now {
		c.t.Fatalf("wants to be woken at %v, now %v", next, now)
	}
	if e.Sequence() != c.sequence {
		c.t.Fatalf("at sequence %d, said %d", e.Sequence(), c.sequence)
	}
	for id, f := range c.flows {
		var s mihf.FlowStatus
		if !e.FlowStatus(now, id, &s) {
			c.t.Fatalf("%s is not registered", id)
		}
		longest := c.cfg.Hint.MaxFreeze
		if f.spec.MaxFreeze > 0 {
			longest = min(longest, f.spec.MaxFreeze)
		}
		if s.Frozen != f.frozen || (f.frozen && (now > f.since.Add(longest) || f.lease > f.since.Add(longest))) {
			c.t.Fatalf("%s: %+v, its transport frozen %v since %v with a lease until %v, now %v", id, s, f.frozen, f.since, f.lease, now)
		}
		if f.frozen && now >= f.lease {
			c.t.Fatalf("%s: its lease lapsed at %v, now %v", id, f.lease, now)
		}
		if f.frozen && s.Link != f.link {
			f.count(now)
		}
		if sum, limit := c.needless(now, f), c.limit(); sum > limit {
			c.t.Fatalf("%s: %v of the last %v frozen for nothing, at most %v", id, sum, c.cfg.Hint.BudgetWindow, limit)
		}
	}
}

func (c *check) limit() time.Duration {
	limit := time.Duration(c.cfg.Hint.BudgetShare * float64(c.cfg.Hint.BudgetWindow))
	if c.suspends {
		limit += c.cfg.Hint.Lease // a transport that nobody could tell in time
	}
	return limit
}

// needless sums what predictions froze that did not come true. A path that was lost meanwhile
// came true for the flow, whatever became of the prediction.
func (c *check) needless(now mihf.Time, f *flowCheck) (sum time.Duration) {
	add := func(s span) {
		if from := max(s.from, now.Add(-c.cfg.Hint.BudgetWindow)); s.to > from && !c.outcomes[s.pr].CameTrue() {
			sum += s.to.Sub(from)
		}
	}
	for _, s := range f.spans {
		add(s)
	}
	if f.frozen && !f.lost {
		add(span{f.since, now, f.pr})
	}
	return sum
}

// snapshot compares the snapshot with what the events said, for tests that can afford it.
func (c *check) snapshot(now mihf.Time, e *engine.Engine) {
	c.t.Helper()
	s := e.Snapshot(now, func(uint32) bool { return true })
	if c.seen&^s.Kinds != 0 {
		c.t.Fatalf("kinds %b came, the snapshot says %b", c.seen, s.Kinds)
	}
	if s.Sequence != c.sequence || len(s.Flows) != len(c.flows) {
		c.t.Fatalf("snapshot at %d with %d flows, want %d with %d", s.Sequence, len(s.Flows), c.sequence, len(c.flows))
	}
	seen := map[mihf.LinkID]bool{}
	for i := range s.Links {
		x := &s.Links[i]
		l := c.link(x.Link)
		seen[x.Link] = true
		p, open := x.Prediction.Get()
		if x.Up != l.up || x.UsableIPv4 != l.usable[0] || x.UsableIPv6 != l.usable[1] || open != !l.open.ID.IsZero() || p.ID != l.open.ID {
			c.t.Fatalf("snapshot has %+v, events said %+v", x, l)
		}
		if (x.UsableIPv4 || x.UsableIPv6) && !x.Up {
			c.t.Fatalf("usable and not up: %+v", x)
		}
	}
	for id, l := range c.links {
		if l.up && !seen[id] {
			c.t.Fatalf("%s is up and not in the snapshot", id)
		}
	}
}
