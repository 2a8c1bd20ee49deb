package linkstate

import (
	"bytes"
	"time"

	"mihf.dev/mihf"
)

func (m *Machine) observeFacts(now mihf.Time, f *mihf.LinkFacts, ev *Events) {
	old := m.facts
	m.facts = f
	if old != nil && old.Name != f.Name {
		ev.add(now, m.link, mihf.LinkRenamed).Rename = &mihf.Rename{Old: old.Name, New: f.Name}
	}
	m.diffAddresses(now, old, f, ev)
	m.learnLCI(now)
	reason := mihf.DownCarrier
	if !f.AdminUp {
		reason = mihf.DownAdmin
	}
	m.reconsider(now, mihf.Down{Reason: reason, PoA: m.poa}, false, ev)
}

// observeGone ends the link's life. What is remembered of it serves its return.
func (m *Machine) observeGone(now mihf.Time, why mihf.DownReason, ev *Events) {
	if !m.known {
		return
	}
	m.known = false
	m.facts, m.lci = nil, nil
	m.association, m.technology = mihf.AssociationNone, ""
	m.attached = false
	m.setPaths(now, mihf.DownRemoved, ev)
	if m.announced {
		if m.lost.deadline == 0 {
			m.lost.at = now
		}
		m.lost.down = mihf.Down{Reason: why, PoA: m.poa}
		m.announceDown(now, ev)
	}
	m.lost, m.order = lost{}, order{}
	m.poa, m.nextPoA, m.ssid = "", "", nil
	m.params.forget(now)
	ev.add(now, m.link, mihf.LinkRemoved).Removed = why
}

func (m *Machine) observeAssociation(now, at mihf.Time, a *mihf.Association, ev *Events) {
	m.technology = a.Technology
	switch a.State {
	case mihf.AssociationNone, mihf.AssociationDisconnected:
		m.association, m.nextPoA = a.State, ""
		evidence := a.State == mihf.AssociationDisconnected && a.Local && a.Cause != mihf.DownBeaconLoss
		m.reconsider(now, mihf.Down{Reason: a.Cause, Code: a.Code, PoA: m.poa}, evidence, ev)
	case mihf.AssociationAuthenticating:
		if m.attached {
			return // to another point of attachment; this one still carries traffic
		}
		m.association = a.State
		m.seeAttempt(now, a.SSID, ev)
	case mihf.AssociationAssociated:
		// The old attachment is left, the new one is not open yet.
		m.association, m.nextPoA = a.State, ""
		m.seeAttempt(now, a.SSID, ev)
		same := len(a.SSID) > 0 && bytes.Equal(a.SSID, m.ssid)
		m.reconsider(now, mihf.Down{Reason: mihf.DownAuthenticationFailure, PoA: m.poa}, same, ev)
	case mihf.AssociationAuthorised:
		m.authorise(now, at, a, ev)
	}
}

func (m *Machine) authorise(now, at mihf.Time, a *mihf.Association, ev *Events) {
	m.association = a.State
	if a.SSID != nil {
		if m.ssid != nil && !bytes.Equal(a.SSID, m.ssid) {
			m.leave(now, ev)
		}
		m.ssid = a.SSID
	}
	if m.attached {
		m.observePoA(now, at, a.PoA, ev)
		return
	}
	m.nextPoA = a.PoA
	m.reattach(now, ev)
}

// leave ends the attachment to a network because the radio is on another one now: no
// handover, whatever was withheld.
func (m *Machine) leave(now mihf.Time, ev *Events) {
	if m.attached {
		m.detach(now, mihf.Down{Reason: mihf.DownExplicitDisconnect, PoA: m.poa}, false, ev)
	}
	if m.Withheld() {
		m.announceDown(now, ev)
	}
	m.poa = ""
}

// seeAttempt takes an attachment that has begun as evidence of a roam if it is to the ESS
// that was lost, and as the end of that hope if it is to another.
func (m *Machine) seeAttempt(now mihf.Time, ssid []byte, ev *Events) {
	switch {
	case !m.Withheld() || len(ssid) == 0 || len(m.lost.ssid) == 0:
	case bytes.Equal(ssid, m.lost.ssid):
		m.seeEvidence()
	default:
		m.announceDown(now, ev)
	}
}

// seeEvidence withholds a pending Link_Down as long as a roam may take.
func (m *Machine) seeEvidence() {
	if !m.lost.evidence {
		m.lost.evidence = true
		m.lost.deadline = m.lost.at.Add(m.cfg.RoamWithhold)
	}
}

// observePoA notices a change of the point of attachment without a detachment.
func (m *Machine) observePoA(now, at mihf.Time, poa mihf.PoA, ev *Events) {
	if poa == "" || poa == m.poa || !m.attached {
		return
	}
	old := m.poa
	m.poa, m.poaAt = poa, at
	m.learnLCI(now)
	if old != "" {
		m.completeHandover(now, old, ev)
	}
}

// observeOrder says once that the network ordered a handover.
func (m *Machine) observeOrder(now mihf.Time, poa mihf.PoA, ev *Events) {
	if (poa != "" && poa == m.poa) || (m.ordered(now) && m.order.poa == poa) {
		return
	}
	m.order = order{poa: poa, until: now.Add(mihf.ForecastHorizon)}
	e := ev.add(now, m.link, mihf.LinkHandoverImminent)
	e.Handover = &mihf.Handover{OldLink: m.link, NewLink: m.link, OldPoA: m.poa, NewPoA: poa, NetworkOrdered: true}
}

// ordered reports whether a handover that the network ordered may still come.
func (m *Machine) ordered(now mihf.Time) bool { return now.Before(m.order.until) }

// running says whether layer 2 carries traffic by all that is known.
func (m *Machine) running() bool {
	if m.facts != nil && !m.facts.Running() {
		return false
	}
	if m.association != mihf.AssociationNone {
		return m.association == mihf.AssociationAuthorised
	}
	return m.facts != nil
}

// reconsider compares layer 2 with what was known before.
func (m *Machine) reconsider(now mihf.Time, down mihf.Down, evidence bool, ev *Events) {
	up := m.running()
	switch {
	case up && !m.attached:
		m.reattach(now, ev)
	case !up && m.attached:
		m.detach(now, down, evidence, ev)
	case !up && m.Withheld():
		m.reinterpret(now, down, evidence, ev)
	default:
		m.setPaths(now, mihf.DownLink, ev)
	}
}

// reinterpret is a second view of a detachment that is not announced yet: the radio
// explains what the kernel reported a moment ago, or the operator ends it.
func (m *Machine) reinterpret(now mihf.Time, down mihf.Down, evidence bool, ev *Events) {
	admin := down.Reason == mihf.DownAdmin
	if m.lost.unexplained && down.Reason != mihf.DownCarrier {
		m.lost.unexplained = false
		m.lost.deadline = min(m.lost.deadline, now.Add(m.cfg.Settle))
	}
	if admin || (m.lost.down.Reason == mihf.DownCarrier && down.Reason != mihf.DownCarrier) {
		m.lost.down.Reason, m.lost.down.Code = down.Reason, down.Code
	}
	switch {
	case admin:
		m.announceDown(now, ev)
	case evidence:
		m.seeEvidence()
	}
}

// explainWithin is how long after the carrier the radio's word on why it went is waited for:
// the kernel takes the carrier first, and says why when the driver has left the station
// (20 to 60 ms were seen).
const explainWithin = 250 * time.Millisecond

func (m *Machine) detach(now mihf.Time, down mihf.Down, evidence bool, ev *Events) {
	m.attached = false
	m.prediction.cameTrue = m.prediction.isOpen
	m.lost = lost{at: now, down: down, ssid: m.ssid, evidence: evidence}
	m.setPaths(now, mihf.DownLink, ev)
	switch {
	case evidence:
		m.lost.deadline = now.Add(m.cfg.RoamWithhold)
	case m.association == mihf.AssociationAuthorised && down.Reason == mihf.DownCarrier:
		m.lost.unexplained = true
		m.lost.deadline = now.Add(max(m.cfg.Settle, explainWithin))
	case m.association != mihf.AssociationNone && down.Reason != mihf.DownAdmin:
		m.lost.deadline = now.Add(m.cfg.Settle)
	default:
		m.announceDown(now, ev)
	}
}

func (m *Machine) announceDown(now mihf.Time, ev *Events) {
	m.lost.down.Withheld = now.Sub(m.lost.at)
	m.announced, m.since = false, now
	m.lost.deadline = 0
	e := ev.add(now, m.link, mihf.LinkDown)
	e.Down = m.lost.down
	e.Prediction = m.end(now, mihf.OutcomeLinkDown)
	m.params.forget(now)
	if m.association != mihf.AssociationAuthorised {
		m.poa, m.ssid = "", nil
	}
}

// reattach is layer 2 coming up: a roam if Link_Down was still pending, else Link_Up.
func (m *Machine) reattach(now mihf.Time, ev *Events) {
	m.attached = m.running()
	if !m.attached {
		return // authorised, but the kernel's carrier follows
	}
	old, pending := m.poa, m.Withheld()
	if m.nextPoA != "" {
		m.poa, m.poaAt, m.nextPoA = m.nextPoA, now, ""
	}
	m.lost = lost{}
	m.learnLCI(now)
	switch {
	case pending && old != "" && m.poa != old:
		m.completeHandover(now, old, ev)
	case pending:
		m.rollback(now, ev) // the same point of attachment again: nothing was lost but time
	default:
		m.announceUp(now, ev)
	}
	m.setPaths(now, mihf.DownLink, ev)
}

func (m *Machine) announceUp(now mihf.Time, ev *Events) {
	if m.everUp {
		m.heldUntil, m.returned = now.Add(m.cfg.HoldDown), true
	}
	m.announced, m.everUp, m.since = true, true, now
	ev.add(now, m.link, mihf.LinkUp).Up = &mihf.Up{PoA: m.poa, SSID: m.ssid, Facts: m.facts, LCI: m.lci}
}

// completeHandover says that the link is at m.poa now.
func (m *Machine) completeHandover(now mihf.Time, from mihf.PoA, ev *Events) {
	ordered := m.ordered(now) && (m.order.poa == m.poa || m.order.poa == "")
	m.order = order{}
	outcome := m.end(now, mihf.OutcomeHandoverComplete)
	e := ev.add(now, m.link, mihf.LinkHandoverComplete)
	e.Prediction = outcome
	e.Handover = &mihf.Handover{
		OldLink: m.link, NewLink: m.link, OldPoA: from, NewPoA: m.poa, NetworkOrdered: ordered, DataGap: m.dataGap(now),
	}
}

// dataGap returns how long no path was usable; unknown while none is.
func (m *Machine) dataGap(now mihf.Time) mihf.Opt[time.Duration] {
	if m.gapSince == 0 {
		return mihf.Some(time.Duration(0))
	}
	for _, ipv6 := range []bool{false, true} {
		if p, _ := m.path(ipv6); p.usable {
			return mihf.Some(now.Sub(m.gapSince))
		}
	}
	return mihf.Opt[time.Duration]{}
}
