package tcp

import (
	"time"

	"mihf.dev/mihf"
)

// An Event is what an acknowledgement told a congestion control.
type Event struct {
	Now      mihf.Time
	Acked    int           // segments that it acknowledged cumulatively
	InFlight int           // segments outstanding before it
	RTT      time.Duration // of a segment that it acknowledged; 0: no sample
	SRTT     time.Duration // smoothed; 0: no sample yet
	Limited  bool          // the congestion window held the sender back
}

// A Control decides how much a sender may have in the network. It is used by one sender.
type Control interface {
	// Acked takes an acknowledgement of new segments, outside fast recovery.
	Acked(e Event)
	// Congestion is the begin of a fast recovery with so many segments in flight.
	Congestion(now mihf.Time, inFlight int)
	// Timeout is an expiry of the retransmission timer; first is false for one that repeats
	// for the same segment.
	Timeout(now mihf.Time, inFlight int, first bool)
	// Recovered ends a fast recovery. Where limit is above 0 the window must not exceed it, or
	// a burst would leave (RFC 6582, step 3).
	Recovered(now mihf.Time, limit float64)
	// Idle tells that nothing was sent for longer than the retransmission timeout.
	Idle(now mihf.Time, initial float64)
	// Window returns the congestion window in segments.
	Window() float64
	// Threshold returns the slow-start threshold in segments.
	Threshold() float64
}

// unlimited is the slow-start threshold before the first congestion.
const unlimited = 1 << 30

// least is the smallest slow-start threshold (RFC 5681, equation 4).
const least = 2

// reno is the congestion control of RFC 5681.
type reno struct {
	cwnd, ssthresh float64
	acked          int // since the window was last raised in congestion avoidance
}

// NewReno returns the congestion control of RFC 5681 with an initial window in segments.
func NewReno(initial float64) Control { return &reno{cwnd: initial, ssthresh: unlimited} }

func (r *reno) Acked(e Event) {
	if !e.Limited {
		return
	}
	if r.cwnd < r.ssthresh {
		r.cwnd++ // by at most a segment for each acknowledgement (3.1)
		return
	}
	r.acked += e.Acked
	if w := int(r.cwnd); r.acked >= w { // a segment for each window (3.1, recommended)
		r.acked -= w
		r.cwnd++
	}
}

func (r *reno) Congestion(_ mihf.Time, inFlight int) {
	r.ssthresh = max(float64(inFlight)/2, least)
	r.cwnd, r.acked = r.ssthresh, 0
}

func (r *reno) Timeout(_ mihf.Time, inFlight int, first bool) {
	if first {
		r.ssthresh = max(float64(inFlight)/2, least)
	}
	r.cwnd, r.acked = 1, 0
}

func (r *reno) Recovered(_ mihf.Time, limit float64) {
	if limit > 0 {
		r.cwnd = min(r.ssthresh, limit)
	}
}

func (r *reno) Idle(_ mihf.Time, initial float64) { r.cwnd = min(r.cwnd, initial) }

func (r *reno) Window() float64    { return r.cwnd }
func (r *reno) Threshold() float64 { return r.ssthresh }
