package tcp

import "mihf.dev/mihf"

// noTimers is a recovery without timers of its own, which asks for nothing but acknowledgements.
type noTimers struct{}

func (noTimers) delivered(mihf.Time, uint64, *flight, mihf.Time) {}
func (noTimers) sent(*Sender, mihf.Time, *flight)                {}
func (noTimers) next() mihf.Time                                 { return 0 }
func (noTimers) advance(*Sender, mihf.Time)                      {}

// A Paced control also says how fast segments may follow each other, from the rate at which they
// are delivered.
type Paced interface {
	Control
	// Delivered takes every acknowledgement, after Acked and the begin or end of a recovery.
	Delivered(d Delivery)
	// PacingRate is in segments/s; 0: as fast as the window allows.
	PacingRate() float64
}

// A Delivery is what an acknowledgement told of the rate of delivery: draft-cheng-iccrg-delivery-
// rate-estimation.
type Delivery struct {
	Event
	Fresh     int     // segments that the receiver newly has
	Total     uint64  // segments that it has, since the begin
	Prior     uint64  // Total when the newest of them was sent
	Rate      float64 // segments/s; 0: no sample
	AppLimit  bool    // the sender had nothing to send: the path may carry more
	Pipe      int     // segments in the network after it
	Recovery  bool    // a fast recovery goes on
	NewLosses bool    // some were found lost by it
}

// rateMeter keeps what the rate of delivery is reckoned from.
type rateMeter struct {
	total     uint64
	at        mihf.Time // when the newest was delivered
	first     mihf.Time // when the first of the present sample was sent
	limited   uint64    // up to this total, samples are limited by the application; 0: not
	sample    flight    // the newest segment that the acknowledgement delivered
	hasSample bool
}

// sent notes in a segment what was delivered when it left.
func (m *rateMeter) sent(now mihf.Time, pipeBefore int, f *flight) {
	if pipeBefore == 0 {
		m.first, m.at = now, now
	}
	f.firstSent, f.deliveredAt, f.delivered, f.limited = m.first, m.at, m.total, m.limited > 0
}

// delivered takes a segment.
func (m *rateMeter) delivered(now mihf.Time, f *flight) {
	m.total++
	m.at = now
	if !m.hasSample || f.delivered > m.sample.delivered {
		m.sample, m.hasSample = *f, true
		m.first = f.sentAt
	}
}

// take returns the sample of an acknowledgement.
func (m *rateMeter) take(e Event) Delivery {
	d := Delivery{Event: e, Total: m.total}
	if m.limited > 0 && m.total > m.limited {
		m.limited = 0
	}
	if !m.hasSample {
		return d
	}
	m.hasSample = false
	d.Prior, d.AppLimit = m.sample.delivered, m.sample.limited
	interval := max(m.sample.sentAt.Sub(m.sample.firstSent), m.at.Sub(m.sample.deliveredAt))
	if interval > 0 {
		d.Rate = float64(m.total-m.sample.delivered) / interval.Seconds()
	}
	return d
}

// idle notes that nothing more was there to send.
func (m *rateMeter) idle(pipe int) { m.limited = max(m.total+uint64(pipe), 1) }
