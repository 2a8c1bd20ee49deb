package hint

import (
	"maps"
	"time"
)

// margin is the measured p99 of the time from a hint to its acknowledgement, by the
// transports of one owner: how slow somebody's are, or say that they are, is no matter of
// other users.
type margin struct {
	flows   int // registered now
	recent  [128]time.Duration
	n       int // how many were ever learned
	current time.Duration
}

// maxMargins bounds the owners that are known; those without a flow are forgotten first.
const maxMargins = 1024

// joinMargin returns the margin of a new flow's owner.
func (p *Policy) joinMargin(owner uint32) *margin {
	m := p.margins[owner]
	if m == nil {
		if len(p.margins) >= maxMargins {
			maps.DeleteFunc(p.margins, func(_ uint32, m *margin) bool { return m.flows == 0 })
		}
		m = &margin{current: p.cfg.MinMargin}
		p.margins[owner] = m
	}
	m.flows++
	return m
}

const marginSamples = 16 // fewer have no tail

func (m *margin) learn(d, low, high time.Duration) {
	if d < 0 {
		return
	}
	m.recent[m.n%len(m.recent)] = d
	m.n++
	if m.n >= marginSamples {
		m.current = min(max(m.tail(), low), high)
	}
}

// tail returns the p99 of the recent ones: the largest, but of 100 or more the second
// largest.
func (m *margin) tail() time.Duration {
	var first, second time.Duration
	for _, d := range m.recent[:min(m.n, len(m.recent))] {
		switch {
		case d > first:
			first, second = d, first
		case d > second:
			second = d
		}
	}
	if m.n < 100 {
		return first
	}
	return second
}
