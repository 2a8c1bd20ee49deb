package modem

import (
	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
)

// wantsCell reports whether the cell is to be asked for now.
func (m *modem) wantsCell(now mihf.Time) bool {
	return m.mayAskCell() && m.cellAt.Due(now)
}

// mayAskCell reports whether the cell can be asked for at all. Where ModemManager tells it to
// all, it is in the list.
func (m *modem) mayAskCell() bool {
	return m.link != "" && m.cfg.cells && m.noCells == "" && m.cellBy.kind == callNone && m.info.cells && m.info.cell == "" &&
		m.info.state >= stateRegistered && !m.unregistered()
}

// answeredCell takes the answer of GetLocation. The error says what of it could not be read.
func (m *modem) answeredCell(now mihf.Time, a *answer) error {
	m.cellBy = call{}
	var told map[uint32]dbus.Variant
	err := a.err
	if err == nil {
		err = dbus.Store(a.body, &told)
	}
	if err != nil {
		switch verdictOf(err) {
		case verdictRefused, verdictDenied, verdictGone: // once is enough; whether the object is gone, the list says
			m.cfg.count.refused.Add(1)
			m.noCells = err.Error()
		default:
			m.cellAt = mihf.Sooner(m.cellAt, now.Add(cellEvery))
		}
		return nil
	}
	every := cellEvery // it says nothing when the cell changes
	if m.info.rate > 0 {
		every = min(every, m.pollEvery())
	}
	m.cellAt = mihf.Sooner(m.cellAt, now.Add(every))
	var r reader
	if cell := decodeLocation(&r, told, &m.info); cell != "" && !m.unregistered() {
		m.cell = cell
	}
	return r.err()
}

// nextCall returns when something is to be asked about this modem; zero: never.
func (m *modem) nextCall() mihf.Time {
	var next mihf.Time
	for _, b := range m.bearers {
		if !b.reading {
			next = mihf.Sooner(next, b.readAt)
		}
	}
	if m.mayAskCell() {
		next = mihf.Sooner(next, m.cellAt)
	}
	return mihf.Sooner(next, m.setup.next(m))
}

// next returns when something is to be asked; zero: never.
func (s *setup) next(m *modem) mihf.Time {
	later := s.nextAt
	if kind, _ := s.want(max(later, 1), m); kind == callNone {
		return 0
	}
	return max(later, 1)
}
