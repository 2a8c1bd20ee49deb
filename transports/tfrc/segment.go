package tfrc

// segmentIntervals is over how many loss intervals the segment size is averaged (RFC
// 5348, section 4.1).
const segmentIntervals = 4

// segmentEnough packets without a loss event end a part of the mean, too, so that it
// follows an application that changes its size where nothing is lost.
const segmentEnough = 10000

// segmentMean is the mean size of the segments sent in the last loss intervals.
type segmentMean struct {
	mean    float64 // bytes, at least 1
	parts   [segmentIntervals]struct{ bytes, packets float64 }
	current int
}

func (m *segmentMean) add(bytes int) {
	p := &m.parts[m.current]
	p.bytes += float64(bytes)
	p.packets++
	if p.packets == 1 || int(p.packets)%16 == 0 {
		m.reckon()
	}
	if p.packets >= segmentEnough {
		m.next()
	}
}

// next begins a new interval.
func (m *segmentMean) next() {
	m.current = (m.current + 1) % segmentIntervals
	m.parts[m.current].bytes, m.parts[m.current].packets = 0, 0
}

func (m *segmentMean) reckon() {
	var bytes, packets float64
	for _, p := range m.parts {
		bytes += p.bytes
		packets += p.packets
	}
	m.mean = max(bytes/packets, 1)
}
