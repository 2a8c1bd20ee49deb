package tfrc

import (
	"time"

	"mihf.dev/mihf"
)

// limits tells whether the sender was data-limited over the whole interval that a report
// covers (RFC 5348, section 8.2.1). first and second are moments at which it was not.
type limits struct {
	first, second mihf.Time
	acked         mihf.Time // when the packet that the last report names was sent: t_new
	next          mihf.Time // when that report came: t_next
}

// full says that everything that was allowed has been sent.
func (l *limits) full(now mihf.Time) {
	switch {
	case l.first <= l.acked:
		l.first = now
	case l.second <= l.next:
		l.second = now
	}
}

// report takes a report on a packet sent at acked and tells whether the whole interval
// of a round-trip before it was data-limited.
func (l *limits) report(now, acked mihf.Time, rtt time.Duration) bool {
	l.acked, l.next = acked, now
	from := acked.Add(-rtt)
	in := func(t mihf.Time) bool { return from < t && t <= acked }
	full := in(l.first) || in(l.second)
	if l.first <= acked && l.second > acked {
		l.first = l.second
	}
	return !full
}
