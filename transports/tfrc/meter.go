package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

// A mark is a moment with the bytes received before it.
type mark struct {
	at    mihf.Time
	bytes uint64
}

// meter measures X_recv. Its marks are made at reports and, with window counters, each
// quarter of a round-trip: enough for the rate over the last round-trip.
type meter struct {
	marks    [16]mark // ring
	n        int      // marks ever made
	bytes    uint64
	reported mark      // the last report
	begun    mihf.Time // nothing before it counts
}

// restart forgets the past: packets come again after a pause that says nothing.
func (m *meter) restart(now mihf.Time) {
	m.n, m.begun = 0, now
	m.report(now)
}

func (m *meter) mark(now mihf.Time) {
	m.marks[m.n%len(m.marks)] = mark{now, m.bytes}
	m.n++
}

// report is a mark at which a report was made.
func (m *meter) report(now mihf.Time) {
	m.mark(now)
	m.reported = mark{now, m.bytes}
}

// since returns the newest mark that is at least age old, else the oldest there is.
func (m *meter) since(now mihf.Time, age time.Duration) mark {
	kept := min(m.n, len(m.marks))
	var k mark
	for i := 1; i <= kept; i++ {
		k = m.marks[(m.n-i)%len(m.marks)]
		if now.Sub(k.at) >= age {
			break
		}
	}
	return k
}

// rate is X_recv. Both variants measure over at least a round-trip, and over the time
// since the last report where that is longer (RFC 4342, section 8.3). RFC 5348, section
// 6.2, leaves out of it the round-trips in which nothing came, at whose ends the timer
// expired without a report.
func (m *meter) rate(now mihf.Time, rtt time.Duration, v Variant) Rate {
	from := m.reported
	rtt = min(rtt, now.Sub(m.begun))
	if now.Sub(from.at) < rtt {
		from = m.since(now, rtt)
	}
	over := max(now.Sub(from.at), rtt, 1)
	if v == RFC5348 && over >= 2*rtt && rtt > 0 {
		over = rtt + over%rtt
	}
	return Rate(float64(m.bytes-from.bytes) / over.Seconds())
}
