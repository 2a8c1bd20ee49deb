// Package nce tells the losses that congestion makes from those that a radio makes, and
// both from packets that only overtook each other: TCP NCE of Sreekumari and Chung ("A
// unified solution for non-congestion events", EURASIP JWCN 2011:23), for any transport
// that counts duplicate acknowledgements.
//
// Detection: at the third duplicate the queue of the bottleneck is estimated from the
// round-trip time; above nine tenths of the buffer the event is congestion, and the
// transport's own response follows. Differentiation: else the hole is given the time in
// which what was on its way when it was seen arrives; only when what was sent after that
// is acknowledged too, it is a loss. Reaction: new data is sent meanwhile, and the window
// is not reduced.
//
// # Guarantees
//
//   - Without a rate and a buffer from link characteristics the test is relative, to the
//     longest round-trip time seen before congestion; until one was seen, every event is
//     taken as congestion. What is not known never makes a sender more aggressive.
//   - At most [MaxIgnored] of the packets of late are taken as lost without congestion,
//     and never in two windows running: beyond that an event is congestion (RFC 9743 asks
//     for a bound). A machine made [Unbounded] does as the paper says, for comparison.
//   - A hole is retransmitted at the latest one duplicate after all that was outstanding
//     when it was seen.
//   - Nothing allocates.
//
// # Limits
//
// The buffer is taken as drop-tail. Under active queue management the queue never comes
// near the buffer, and the relative test is what is left. A Machine serves one connection
// and is used by one goroutine.
package nce

import "time"

const (
	// Threshold is the part of the buffer above which an event is congestion (figures 7
	// and 8 of the paper).
	Threshold = 0.9
	// MaxIgnored is the part of the packets sent that may be lost without a response.
	MaxIgnored = 0.05

	window     = 256 // packets over which MaxIgnored is counted
	minSpread  = time.Millisecond
	duplicates = 3 // of an acknowledgement, that make an event
)

// Path is what link characteristics say of the bottleneck; 0 is not known. Only measured
// values and those of an operator may be given: a queue that is taken for shorter than it
// is makes the sender ignore congestion.
type Path struct {
	RateBPS      float64 // bit/s
	BufferOctets int
}

// Verdict is what a third duplicate means.
type Verdict uint8

// Verdicts.
const (
	Congestion    Verdict = iota // respond as the transport does
	NotCongestion                // send one new packet, and wait
)

// Outcome is what a delayed retransmission came to.
type Outcome uint8

// Outcomes.
const (
	None       Outcome = iota // nothing was delayed
	Reordering                // the hole was filled without a retransmission
	Loss                      // it was lost, and not by congestion
)

// Stats counts events.
type Stats struct {
	Congestion, Losses, Reorderings uint64
	Bounded                         uint64 // events taken as congestion for MaxIgnored
}

// Machine judges the events of one connection. The zero value knows no path.
type Machine struct {
	unbounded    bool
	path         Path
	least        time.Duration // round-trip time
	most         time.Duration // before congestion
	now          time.Duration // the newest sample
	wait         int           // duplicates until the hole is a loss, while delaying
	delaying     bool
	repaired     bool    // the hole was retransmitted
	ignored      float64 // packets of the window lost without a response, ageing
	unresponsive bool    // the last event was ignored, and its window isn't over
	stats        Stats
}

// Unbounded returns a machine that ignores as many losses as the paper's: it belongs on a
// bed, not on a network that others use.
func Unbounded() *Machine { return &Machine{unbounded: true} }

// SetPath takes the characteristics of a new path, or of the same one corrected. What was
// learned of round-trip times is another path's, where other is true.
func (m *Machine) SetPath(p Path, other bool) {
	m.path = p
	if other {
		m.least, m.most, m.now = 0, 0, 0
	}
}

// RTT takes a sample, of any acknowledgement: (8) of the paper, by timestamps.
func (m *Machine) RTT(sample time.Duration) {
	if sample <= 0 {
		return
	}
	m.now = sample
	if m.least == 0 || sample < m.least {
		m.least = sample
	}
	m.most = max(m.most, sample)
}

// Sent ages what was ignored, by packets sent.
func (m *Machine) Sent(packets int) { m.ignored -= m.ignored * min(1, float64(packets)/window) }

// QueueOctets estimates what waits at the bottleneck: (9) of the paper; 0 without a rate.
func (m *Machine) QueueOctets() float64 {
	return m.path.RateBPS / 8 * (m.now - m.least).Seconds()
}

// Congested reports whether a loss now would be one of congestion.
func (m *Machine) Congested() bool {
	switch {
	case m.least == 0:
		return true
	case m.path.RateBPS > 0 && m.path.BufferOctets > 0:
		return m.QueueOctets() > Threshold*float64(m.path.BufferOctets)
	}
	spread := m.most - m.least
	return spread < minSpread || float64(m.now-m.least) > Threshold*float64(spread)
}

// Third is the third duplicate acknowledgement of a hole, with so many packets
// outstanding. Where it is not congestion, the transport sends one new packet now, and
// asks [Machine.Duplicate] at each further duplicate.
func (m *Machine) Third(outstanding int) Verdict {
	bounded := m.unresponsive || m.full()
	if bounded || m.Congested() {
		if bounded && !m.Congested() {
			m.stats.Bounded++
		}
		m.stats.Congestion++
		m.delaying, m.unresponsive = false, false
		return Congestion
	}
	m.delaying, m.repaired = true, false
	m.wait = max(1, outstanding-duplicates) // (11) to (13)
	return NotCongestion
}

// Duplicate is a further duplicate. It returns true where the hole is a loss now, to be
// retransmitted without reducing the window; once for a hole.
func (m *Machine) Duplicate() (retransmit bool) {
	if !m.delaying || m.repaired {
		return false
	}
	if m.wait--; m.wait > 0 {
		return false
	}
	m.repaired = true
	return true
}

// Delaying reports whether a hole waits for its verdict, or for its repair.
func (m *Machine) Delaying() bool { return m.delaying }

// Filled is the acknowledgement of the hole. The transport's window is what it was at the
// third duplicate: what duplicates added to it was to keep the acknowledgements coming.
func (m *Machine) Filled() Outcome {
	if !m.delaying {
		return None
	}
	m.delaying = false
	if !m.repaired {
		m.stats.Reorderings++
		return Reordering
	}
	m.stats.Losses++
	m.ignored++
	m.unresponsive = !m.unbounded
	return Loss
}

// full reports whether as much is ignored as may be.
func (m *Machine) full() bool { return !m.unbounded && m.ignored+1 > MaxIgnored*window }

// Hole is a further hole in the same window, that the acknowledgement of the first one
// shows (a partial acknowledgement). It returns true where it is to be retransmitted at
// once, without reducing the window.
func (m *Machine) Hole() (retransmit bool) {
	if m.full() || m.Congested() {
		return false
	}
	m.ignored++
	return true
}

// WindowDone is called when all that was outstanding at an event is acknowledged: the
// next one may be ignored again.
func (m *Machine) WindowDone() { m.unresponsive = false }

// Timeout is an expiry of the retransmission timer: whatever waited is over.
func (m *Machine) Timeout() { m.delaying, m.unresponsive = false, false }

// Stats returns what was counted.
func (m *Machine) Stats() Stats { return m.stats }
