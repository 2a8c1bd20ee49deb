package hint

import (
	"time"

	"mihf.dev/mihf"
)

// maxDeparted bounds the accounts kept of flows that are gone; the oldest goes first.
const maxDeparted = 1024

// account is what a flow may still be frozen for nothing. It outlives a registration, so
// that a transport whose connection breaks often is protected like any other.
type account struct {
	needless  spending
	backoff   time.Duration
	pausedTil mihf.Time // no predicted freeze before
}

type departed struct {
	owner uint32
	account
}

// keep remembers the account of a flow that leaves, if there is anything in it. A freeze that
// goes on is charged to the end of its lease: nobody else ends it now, and it may have been
// for nothing.
func (p *Policy) keep(f *flow) {
	id := f.spec.ID
	if f.frozen && !f.waits && !f.booked && !f.prediction.IsZero() {
		f.needless.add(f.leaseEnd, f.leaseEnd.Sub(f.since))
	}
	if f.needless.n == 0 && f.pausedTil == 0 {
		return
	}
	if _, known := p.departed[id]; !known {
		if len(p.leaving) == maxDeparted {
			delete(p.departed, p.leaving[0])
			p.leaving = append(p.leaving[:0], p.leaving[1:]...)
		}
		p.leaving = append(p.leaving, id)
	}
	p.departed[id] = departed{owner: f.owner, account: f.account}
}

// recall gives a flow that comes back under its id its account.
func (p *Policy) recall(f *flow) {
	if d, known := p.departed[f.spec.ID]; known && d.owner == f.owner {
		f.account = d.account
	}
}
