package linkstate

import (
	"bytes"
	"time"

	"mihf.dev/mihf"
)

func (m *Machine) observeFacts(now mihf.Time, f *mihf.LinkFacts, ev *Events) {
	old := m.facts
	m.facts = f
	if old != nil {
		if old.Name != f.Name {
			ev.add(now, m.link, mihf.LinkRenamed).Rename = &mihf.Rename{Old: old.Name, New: f.Name}
		}
	}
	m.diffAddresses(now, old, f, ev)
	m.learnLCI(now)
	reason := mihf.DownCarrier
	if !f.AdminUp {
		reason = mihf.DownAdmin
	}
	m.reconsider(now, mihf.Down{Reason: reason, PoA: m.poa}, false, ev)
}

func (m *Machine) observeGone(now mihf.Time, why mihf.DownReason, ev *Events) {
	if m.facts == nil && !m.announced && !m.attached {
		return
	}
	m.facts = nil
	m.association = mihf.AssociationNone
	m.attached = false
	m.setPaths(now, mihf.DownRemoved, ev)
	if m.announced {
		m.lost = lost{at: now, down: mihf.Down{Reason: why, PoA: m.poa}}
		m.announceDown(now, ev)
	}
	m.lost = lost{}
	m.poa = ""
	ev.add(now, m.link, mihf.LinkRemoved).Removed = why
}

func (m *Machine) observeAssociation(now mihf.Time, a *mihf.Association, ev *Events) {
	m.association = a.State
	switch a.State {
	case mihf.AssociationDisconnected:
		evidence := a.Local && a.Cause != mihf.DownBeaconLoss
		m.reconsider(now, mihf.Down{Reason: a.Cause, Code: a.Code, PoA: m.poa}, evidence, ev)
	case mihf.AssociationAuthenticating, mihf.AssociationAssociated:
		m.seeRoam(a.SSID)
	case mihf.AssociationAuthorised:
		if a.SSID != nil {
			m.ssid = a.SSID
		}
		if m.attached {
			m.observePoA(now, a.PoA, ev)
			return
		}
		m.reattach(now, a.PoA, ev)
	}
}

// seeRoam takes an attachment that has begun as evidence of a roam if it is to the ESS
// that was lost.
func (m *Machine) seeRoam(ssid []byte) {
	if m.lost.deadline == 0 || m.lost.evidence || len(ssid) == 0 || !bytes.Equal(ssid, m.lost.ssid) {
		return
	}
	m.lost.evidence = true
	m.lost.deadline = m.lost.at.Add(m.cfg.RoamWithhold)
}

// observePoA notices a change of the point of attachment without a detachment.
func (m *Machine) observePoA(now mihf.Time, poa mihf.PoA, ev *Events) {
	if poa == "" || poa == m.poa || !m.attached {
		return
	}
	if m.poa != "" {
		m.completeHandover(now, m.poa, poa, ev)
	}
	m.poa = poa
	m.learnLCI(now)
}

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
		m.reattach(now, m.poa, ev)
	case !up && m.attached:
		m.detach(now, down, evidence, ev)
	case !up && m.lost.deadline != 0 && evidence && !m.lost.evidence:
		m.lost.evidence = true // the radio explains what the kernel reported a moment ago
		m.lost.deadline = m.lost.at.Add(m.cfg.RoamWithhold)
	case !up && m.lost.deadline != 0 && down.Reason == mihf.DownAdmin:
		m.announceDown(now, ev)
	default:
		m.setPaths(now, mihf.DownLink, ev)
	}
}

func (m *Machine) detach(now mihf.Time, down mihf.Down, evidence bool, ev *Events) {
	m.attached = false
	m.lost = lost{at: now, down: down, ssid: m.ssid, evidence: evidence}
	m.setPaths(now, mihf.DownLink, ev)
	switch {
	case evidence:
		m.lost.deadline = now.Add(m.cfg.RoamWithhold)
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
}

// reattach is layer 2 coming up: a roam if Link_Down was still pending, else Link_Up.
func (m *Machine) reattach(now mihf.Time, poa mihf.PoA, ev *Events) {
	m.attached = m.running()
	if !m.attached {
		return // authorised, but the kernel's carrier follows
	}
	old := m.poa
	if poa != "" {
		m.poa = poa
	}
	pending := m.lost.deadline != 0
	m.lost = lost{}
	m.learnLCI(now)
	switch {
	case pending && old != "" && m.poa != old:
		m.completeHandover(now, old, m.poa, ev)
	case pending:
		m.rollback(now, ev) // the same point of attachment again: nothing was lost but time
	case !m.announced:
		m.announceUp(now, ev)
	}
	m.setPaths(now, mihf.DownLink, ev)
}

func (m *Machine) announceUp(now mihf.Time, ev *Events) {
	if m.everUp {
		m.heldUntil = now.Add(m.cfg.HoldDown)
	}
	m.announced, m.everUp, m.since = true, true, now
	ev.add(now, m.link, mihf.LinkUp).Up = &mihf.Up{PoA: m.poa, SSID: m.ssid, Facts: m.facts, LCI: m.lci}
}

func (m *Machine) completeHandover(now mihf.Time, from, to mihf.PoA, ev *Events) {
	gap := mihf.Some(time.Duration(0))
	if m.gapSince != 0 {
		gap = mihf.Opt[time.Duration]{} // the path is not usable yet
	}
	h := &mihf.Handover{OldLink: m.link, NewLink: m.link, OldPoA: from, NewPoA: to, DataGap: gap}
	outcome := m.end(now, mihf.OutcomeHandoverComplete)
	e := ev.add(now, m.link, mihf.LinkHandoverComplete)
	e.Handover, e.Prediction = h, outcome
}
