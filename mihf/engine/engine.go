package engine

import (
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
	"mihf.dev/mihf/info"
	"mihf.dev/mihf/linkstate"
	"mihf.dev/mihf/queue"
	"mihf.dev/mihf/route"
)

// Bounds of the machine.
const (
	MaxLinks   = 1024
	MaxSensors = 64
	MaxTuples  = 4096 // that sensors are told of
)

// Predictor is a forecasting method's state for one link.
type Predictor interface {
	// Observe takes an observation of the link, or of the whole machine (ObsResume).
	Observe(now mihf.Time, o *mihf.Observation)
	// Forecast fills f with what is expected now; false: nothing can be said.
	Forecast(now mihf.Time, f *mihf.Forecast) bool
}

// Config holds what the machine is made of.
type Config struct {
	Boot mihf.BootID
	Node mihf.NodeID
	Link linkstate.Config
	Hint hint.Config
	// EvaluateEvery is the time between two evaluations of a forecast that gives a cause
	// at least mihf.MinProbability; a calm link is evaluated at its samples only.
	EvaluateEvery time.Duration
	// RouteHold is how long the default route of an attached link may be away before a flow
	// is moved for it.
	RouteHold time.Duration
	// AddressHold is how long a usable link may lack the address of a flow that needs it
	// before the flow is given up: DHCP and duplicate address detection take their time.
	AddressHold time.Duration
	// NewPredictor returns a link's predictor; nil: no forecasts.
	NewPredictor func(mihf.LinkID) Predictor
}

// Defaults returns the configuration in force where nothing is configured, without a
// predictor.
func Defaults() Config {
	return Config{
		Link: linkstate.Defaults(), Hint: hint.Defaults(),
		EvaluateEvery: 50 * time.Millisecond, RouteHold: 5 * time.Second, AddressHold: 3 * time.Second,
	}
}

// Engine is the state of one broker run.
type Engine struct {
	cfg      Config
	sequence uint64
	ids      linkstate.IDs
	links    map[mihf.LinkID]*link
	order    []*link
	removed  []*link // that were removed and may come back, oldest first
	table    *route.Table
	policy   *hint.Policy
	egress   [2]mihf.Egress
	outside  [2]mihf.LinkID // the newest egress that was a link
	vertical [2]mihf.LinkID // the newest handover between links, from and to
	sensors  []mihf.SensorCondition
	explain  explanations
	info     *info.Store
	refused  Refused
	kinds    mihf.KindSet // of event that what was observed can lead to

	events     linkstate.Events
	hints      hint.Out
	out        []queue.Item
	peersStale bool
	again      bool      // all flows are to be reviewed
	reviewAt   mihf.Time // when a hold ends and flows may move
	resuming   bool      // predictions end because of a suspend
}

// Refused counts observations that were not taken because a bound was reached, or because
// their link's id is none.
type Refused struct{ Links, Sensors uint64 }

// New returns a machine that nothing has happened to.
func New(cfg Config) *Engine {
	e := &Engine{
		cfg: cfg, ids: linkstate.IDs{Boot: cfg.Boot}, links: map[mihf.LinkID]*link{},
		table: route.NewTable(), policy: hint.New(cfg.Hint, cfg.Boot), kinds: always, info: info.New(info.DefaultLimit),
	}
	e.egress[1].IPv6 = true
	return e
}

// Out returns what came out since it was called last. It is valid until the next input.
func (e *Engine) Out() []queue.Item {
	out := e.out
	e.out = e.out[:0]
	return out
}

// Sequence returns the number of the newest event or hint.
func (e *Engine) Sequence() uint64 { return e.sequence }

// Observe takes one observation, after what was due before it.
func (e *Engine) Observe(now mihf.Time, o *mihf.Observation) {
	if o.Kind == mihf.ObsResume {
		e.observeResume(now, o) // before what was due in the suspend
	}
	e.catchUp(now)
	e.kinds |= e.leadsTo(o.Kind)
	switch o.Kind {
	case mihf.ObsEgress:
		e.observeEgress(now, o.Egress)
	case mihf.ObsPeer:
		e.observePeer(now, o.Peer)
	case mihf.ObsFlow:
		e.observeFlow(now, o)
	case mihf.ObsCondition:
		e.observeCondition(now, o.Condition)
	case mihf.ObsResync:
		e.machineEvent(now, mihf.Resync).Resync = &mihf.ResyncInfo{Sensor: o.Sensor, Lost: o.Lost}
		e.flush(now)
	case mihf.ObsResume, mihf.ObsTruth:
	default:
		if l := e.link(now, o); l != nil {
			e.observeLink(now, l, o)
		}
	}
}

// Next returns when Advance is due; zero: never.
func (e *Engine) Next() mihf.Time {
	t := mihf.Sooner(e.policy.Next(), e.reviewAt)
	for _, l := range e.order {
		t = mihf.Sooner(t, l.next())
	}
	return t
}

// catchUp does what was due before an input that came late.
func (e *Engine) catchUp(now mihf.Time) {
	if e.Next().Due(now) {
		e.Advance(now)
	}
}

// Advance does what is due.
func (e *Engine) Advance(now mihf.Time) {
	for _, l := range e.order {
		if l.machine.Next().Due(now) {
			l.machine.Advance(now, &e.events)
			e.flush(now)
		}
		if l.evaluateAt.Due(now) {
			e.evaluate(now, l)
		}
		if l.lciAt.Due(now) {
			e.advanceLCI(now, l)
		}
	}
	if e.again || e.reviewAt.Due(now) {
		e.reviewAll(now)
	}
	e.policy.Advance(now, &e.hints)
	e.flush(now)
}

// Shutdown thaws every frozen flow to recovery: nobody will tell it more.
func (e *Engine) Shutdown(now mihf.Time) {
	e.policy.ThawAll(now, mihf.Unfreeze{Cause: mihf.UnfreezeOperator, Recovery: true}, &e.hints)
	e.flush(now)
}

// machineEvent begins an event that is not about one link.
func (e *Engine) machineEvent(now mihf.Time, k mihf.Kind) *mihf.Event {
	e.events.List = append(e.events.List, mihf.Event{At: now, Kind: k})
	return &e.events.List[len(e.events.List)-1]
}

// flush numbers what the parts said and lets the flows react to it, until nothing more
// comes.
func (e *Engine) flush(now mihf.Time) {
	for len(e.events.List) > 0 || len(e.hints.List) > 0 {
		e.flushHints()
		// Reactions append to the hints only, so the list stands still meanwhile.
		for i := range e.events.List {
			ev := &e.events.List[i]
			e.weighAddress(ev)
			e.sequence++
			ev.Sequence, ev.Boot = e.sequence, e.cfg.Boot
			e.out = append(e.out, queue.Item{Sequence: e.sequence, Event: *ev})
			e.react(now, ev)
			e.flushHints()
		}
		e.events.List = e.events.List[:0]
	}
}

func (e *Engine) flushHints() {
	for i := range e.hints.List {
		e.sequence++
		h := &e.hints.List[i]
		h.Sequence = e.sequence
		e.out = append(e.out, queue.Item{Sequence: e.sequence, IsHint: true, Hint: *h})
	}
	e.hints.List = e.hints.List[:0]
}

func (e *Engine) observeCondition(now mihf.Time, c *mihf.SensorCondition) {
	if c == nil {
		return
	}
	i := slices.IndexFunc(e.sensors, func(s mihf.SensorCondition) bool { return s.Sensor == c.Sensor })
	switch {
	case i >= 0 && e.sensors[i] == *c:
		return
	case i >= 0:
		e.sensors[i] = *c
	case len(e.sensors) >= MaxSensors:
		e.refused.Sensors++
		return
	default:
		e.sensors = append(e.sensors, *c)
	}
	e.machineEvent(now, mihf.SensorConditionChanged).Condition = c
	e.flush(now)
}

func (e *Engine) observeEgress(now mihf.Time, g *mihf.Egress) {
	if g == nil {
		return
	}
	i := 0
	if g.IPv6 {
		i = 1
	}
	old := e.egress[i]
	if old == *g {
		return
	}
	e.egress[i] = *g
	e.table.SetEgress(g)
	e.machineEvent(now, mihf.DefaultRouteChanged).Egress = &mihf.EgressChange{Old: old, New: *g}
	if g.Link != "" {
		e.verticalHandover(now, e.outside[i], g.Link)
		e.outside[i] = g.Link
	}
	e.flush(now)
	e.reviewAll(now)
}

// verticalHandover states that the outside is reached over another link now because the
// one before failed or was about to; once for both address families.
func (e *Engine) verticalHandover(now mihf.Time, from, to mihf.LinkID) {
	if from == "" || from == to || e.vertical == [2]mihf.LinkID{from, to} {
		return
	}
	e.vertical = [2]mihf.LinkID{}
	var gap mihf.Opt[time.Duration]
	if old := e.links[from]; old != nil {
		since := old.machine.PathlessSince()
		switch {
		case old.machine.Attached() && old.machine.Open() == nil:
			return // a change of preference, no handover
		case since == 0:
			gap = mihf.Some(time.Duration(0))
		default:
			gap = mihf.Some(now.Sub(since))
		}
	}
	e.vertical = [2]mihf.LinkID{from, to}
	ev := e.machineEvent(now, mihf.LinkHandoverComplete)
	ev.Link = to
	ev.Handover = &mihf.Handover{OldLink: from, NewLink: to, DataGap: gap}
}

func (e *Engine) observePeer(now mihf.Time, p *mihf.PeerRoute) {
	if p == nil {
		return
	}
	e.table.SetPeer(p)
	for _, f := range e.table.To(p.Peer) {
		e.review(now, f)
	}
	e.flush(now)
}

// observeResume ends what was forecast before a suspend. Withheld events and leases are
// bound to their times, which the suspend has moved on.
func (e *Engine) observeResume(now mihf.Time, o *mihf.Observation) {
	e.machineEvent(now, mihf.ResumedFromSuspend).Gap = o.Gap
	e.flush(now)
	e.resuming = true
	for _, l := range e.order {
		if l.predictor != nil {
			l.predictor.Observe(now, o)
		}
		l.forecasted, l.evaluateAt = false, 0
		l.machine.Resume(now, &e.events)
		e.flush(now)
	}
	e.resuming = false
}
