package hint

import (
	"time"

	"mihf.dev/mihf"
)

// measured is a flow's RTT as it is measured while the flow lives, steadied: a deadline that
// is too early costs some sending, one that is too late the loss. So a longer RTT counts at
// once, and a shorter one when it has lasted; small changes move nothing.
type measured struct {
	rtt   time.Duration // in force; 0: none
	below mihf.Time     // since when the readings are clearly shorter; zero: they are not
	most  time.Duration // of those readings
}

const (
	longer       = 1.1 // times the RTT in force
	shorter      = 0.8
	shorterAfter = 3 * time.Second
	maxMeasured  = 10 * time.Second
)

func (m *measured) take(now mihf.Time, rtt time.Duration) {
	rtt = min(rtt, maxMeasured)
	switch in := float64(m.rtt); {
	case rtt <= 0:
	case float64(rtt) > longer*in:
		*m = measured{rtt: rtt}
	case float64(rtt) >= shorter*in:
		m.below = 0
	case m.below.IsZero():
		m.below, m.most = now, rtt
	default:
		if m.most = max(m.most, rtt); now.Sub(m.below) >= shorterAfter {
			*m = measured{rtt: m.most}
		}
	}
}

// Measure takes a reading of a flow's RTT. It is in force where the transport states none,
// until the flow moves to another link.
func (p *Policy) Measure(now mihf.Time, id mihf.FlowID, rtt time.Duration) {
	if f := p.flows[id]; f != nil {
		f.measured.take(now, rtt)
	}
}
