package linkstate

import (
	"time"

	"mihf.dev/mihf"
)

// Config holds the times and levels of a machine. [Defaults] gives the ones in force
// without configuration.
type Config struct {
	Settle       time.Duration // wait for evidence of a roam after a disconnect
	RoamWithhold time.Duration // longest that Link_Down is withheld on such evidence
	HoldDown     time.Duration // for this long a link that came back is not recommended

	Horizon        time.Duration // of the announcement rule
	Threshold      float64       // P(cause within Horizon) that announces
	RollbackBelow  float64       // P below which a prediction may be taken back
	RollbackFor    time.Duration // how long it must stay below
	FlapGuard      time.Duration // after a prediction that did not come true
	GuardThreshold float64       // P that announces within FlapGuard
	MaxOpen        time.Duration // longest life of a prediction, revisions included
	RevisionEvery  time.Duration // shortest time between two revisions

	ReportEvery time.Duration // shortest time between two reports of a parameter

	MaxThresholdsPerUser int // that one caller has set on the link
}

// Defaults returns the configuration in force where nothing is configured.
func Defaults() Config {
	return Config{
		Settle:         30 * time.Millisecond,
		RoamWithhold:   3 * time.Second,
		HoldDown:       5 * time.Second,
		Horizon:        2 * time.Second,
		Threshold:      0.5,
		RollbackBelow:  0.2,
		RollbackFor:    500 * time.Millisecond,
		FlapGuard:      30 * time.Second,
		GuardThreshold: 0.9,
		MaxOpen:        30 * time.Second,
		RevisionEvery:  250 * time.Millisecond,
		ReportEvery:    100 * time.Millisecond,

		MaxThresholdsPerUser: 32,
	}
}

// Machine is the state of one link. It is used by one goroutine.
type Machine struct {
	cfg  Config
	link mihf.LinkID
	ids  *IDs

	known       bool // something was observed since the link appeared
	facts       *mihf.LinkFacts
	association mihf.AssociationState
	technology  string
	ssid        []byte
	poa         mihf.PoA
	poaAt       mihf.Time // since when poa is known
	nextPoA     mihf.PoA  // authorised there; the kernel's carrier follows
	order       order

	attached  bool // layer 2 carries traffic, as far as is known now
	announced bool // what the events said last: Link_Up or Link_Down
	everUp    bool
	returned  bool      // came back, and no path has been usable since
	since     mihf.Time // of announced
	heldUntil mihf.Time // hold-down
	lost      lost
	paths     [2]pathState // IPv4, IPv6
	gapSince  mihf.Time    // no path since; zero while one is usable
	lci       *mihf.LCI

	params     params
	prediction predictionState
}

// order is a handover that the network ordered.
type order struct {
	poa   mihf.PoA
	until mihf.Time // when it counts as not carried out
}

// lost is a detachment whose Link_Down has not been announced.
type lost struct {
	at       mihf.Time
	deadline mihf.Time // when Link_Down is announced; zero: nothing pending
	down     mihf.Down
	ssid     []byte
	evidence bool
	// unexplained: the carrier went, and the radio has not said why.
	unexplained bool
}

// IDs numbers the predictions of one broker run.
type IDs struct {
	Boot mihf.BootID
	last uint64
}

func (s *IDs) next() mihf.PredictionID {
	s.last++
	return mihf.PredictionID{Boot: s.Boot, N: s.last}
}

// New returns the machine of a link that nothing is known of. The machines of one broker
// share ids.
func New(cfg Config, link mihf.LinkID, ids *IDs) *Machine {
	return &Machine{cfg: cfg, link: link, ids: ids}
}

// Events collects what a machine says. The owner numbers and empties it.
type Events struct{ List []mihf.Event }

func (ev *Events) add(now mihf.Time, link mihf.LinkID, k mihf.Kind) *mihf.Event {
	ev.List = append(ev.List, mihf.Event{Link: link, At: now, Kind: k})
	return &ev.List[len(ev.List)-1]
}

// Observe takes one observation of the link.
func (m *Machine) Observe(now mihf.Time, o *mihf.Observation, ev *Events) {
	m.known = m.known || o.Kind != mihf.ObsLinkGone
	switch o.Kind {
	case mihf.ObsLink:
		if o.Facts != nil {
			m.observeFacts(now, o.Facts, ev)
		}
	case mihf.ObsLinkGone:
		m.observeGone(now, o.Gone, ev)
	case mihf.ObsAssociation:
		if o.Association != nil {
			m.observeAssociation(now, Taken(now, o), o.Association, ev)
		}
	case mihf.ObsRadio:
		at := Taken(now, o)
		if o.PoA != "" && o.PoA != m.poa && at.Before(m.poaAt) {
			return // of the point of attachment that was left meanwhile
		}
		m.observePoA(now, at, o.PoA, ev)
		m.observeValues(now, at, &o.Values, ev)
	case mihf.ObsDetected:
		if o.Detected != nil {
			ev.add(Taken(now, o), m.link, mihf.LinkDetected).Detected = o.Detected
		}
	case mihf.ObsHandover:
		m.observeOrder(now, o.PoA, ev)
	default: // nothing of this link's state
	}
}

// Taken returns when what was observed was true, never in the future.
func Taken(now mihf.Time, o *mihf.Observation) mihf.Time {
	return min(o.At.Add(-max(o.Age, 0)), now)
}

// Next returns when Advance is due; zero: never.
func (m *Machine) Next() mihf.Time {
	t := mihf.Sooner(m.lost.deadline, m.params.next)
	return mihf.Sooner(t, m.prediction.next())
}

// Advance does what is due.
func (m *Machine) Advance(now mihf.Time, ev *Events) {
	if m.lost.deadline.Due(now) {
		m.announceDown(now, ev)
	}
	m.expire(now, ev)
	m.advanceReports(now, ev)
}

// Status fills what the machine knows of the link.
func (m *Machine) Status(now mihf.Time, s *mihf.LinkStatus) {
	s.Link, s.Facts, s.Up, s.Since = m.link, m.facts, m.announced, m.since
	s.PoA, s.SSID, s.Association = m.poa, m.ssid, m.association
	s.Technology = m.technology
	s.UsableIPv4, s.UsableIPv6 = m.paths[0].usable, m.paths[1].usable
	s.Values, s.ValuesAt = m.params.values, m.params.at
	if m.prediction.isOpen {
		s.Prediction = mihf.Some(m.Expected(now))
	}
	s.LCI = m.lci
	s.HoldDown = m.HeldDown(now)
}

// Attached reports whether layer 2 carries traffic now, also while a Link_Down is
// withheld or not yet announced.
func (m *Machine) Attached() bool { return m.attached }

// Announced reports what the events said last: up or down.
func (m *Machine) Announced() bool { return m.announced }

// Usable reports whether a path of the family is usable.
func (m *Machine) Usable(ipv6 bool) bool { return m.paths[family(ipv6)].usable }

// AnyUsable reports whether a path of any family is usable.
func (m *Machine) AnyUsable() bool { return m.paths[0].usable || m.paths[1].usable }

// HeldDown reports whether the link came back so lately that it is not recommended.
func (m *Machine) HeldDown(now mihf.Time) bool { return now.Before(m.heldUntil) }

// HeldUntil returns when the hold-down ends, or ended.
func (m *Machine) HeldUntil() mihf.Time { return m.heldUntil }

// Withheld reports whether layer 2 is gone and Link_Down is not announced yet.
func (m *Machine) Withheld() bool { return m.lost.deadline != 0 }

// EverUp reports whether the link has been up, also before it was removed.
func (m *Machine) EverUp() bool { return m.everUp }

// RouteLost returns since when only the default route of the family is missing on a link
// that had it; zero where that is not so.
func (m *Machine) RouteLost(ipv6 bool) mihf.Time { return m.paths[family(ipv6)].routeLost }

// PathlessSince returns since when no path is usable; zero while one is.
func (m *Machine) PathlessSince() mihf.Time { return m.gapSince }

// Facts returns the newest facts; nil if there are none.
func (m *Machine) Facts() *mihf.LinkFacts { return m.facts }

// PoA returns the point of attachment; "" if it is not known.
func (m *Machine) PoA() mihf.PoA { return m.poa }

// SSID returns the network; nil if it is not known.
func (m *Machine) SSID() []byte { return m.ssid }

// LCI returns the link's characteristics; nil if nothing is known.
func (m *Machine) LCI() *mihf.LCI { return m.lci }

func family(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}
