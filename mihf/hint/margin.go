package hint

import "time"

// margin is the measured p99 of the time from a hint to its acknowledgement.
type margin struct {
	recent  [128]time.Duration
	n       int // how many were ever learned
	current time.Duration
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
