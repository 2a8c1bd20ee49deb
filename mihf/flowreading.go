package mihf

import (
	"fmt"
	"math"
	"time"
)

// FlowReading is how a live flow fares, as its transport says: what the kernel tells of a TCP
// connection. What the transport did not tell, or has not measured yet, is unknown.
type FlowReading struct {
	Endpoints

	RTT        Opt[time.Duration] // smoothed, with the queues on the way
	RTTVar     Opt[time.Duration] // its mean deviation
	MinRTT     Opt[time.Duration] // the lowest of the last minutes: without queues, where there were none once
	ReceiveRTT Opt[time.Duration] // as the receiving side takes it, from what arrives

	CwndBytes   Opt[uint64]
	FlightBytes Opt[uint64] // sent and not acknowledged
	// DeliveryRateBPS is how fast data arrived at the peer lately, in bit/s.
	DeliveryRateBPS Opt[float64]
	// AppLimited says that the flow had too little to send for that rate to be what the path carries.
	AppLimited   bool
	PathMTUBytes Opt[uint64]

	// Counted since the flow began.
	AckedBytes    Opt[uint64] // that the peer has
	ReceivedBytes Opt[uint64]
	SentSegments  Opt[uint64] // with data, again-sent ones included
	// DeliveredSegments have arrived, those behind a lost one included.
	DeliveredSegments Opt[uint64]
	RetransSegments   Opt[uint64]
	Busy              Opt[time.Duration] // with data to send
	WindowLimited     Opt[time.Duration] // of it, held up by the peer's receive window
	BufferLimited     Opt[time.Duration] // of it, held up by the local send buffer
}

// Bounds of a [FlowReading].
const (
	MaxFlowRTT    = 5 * time.Minute
	MaxFlowRate   = 1e13 // bit/s
	maxFlowLasted = 100 * 365 * 24 * time.Hour
)

// Check says what in the reading cannot be: "" is no flow, a time below 0 or endless, a rate that is no number.
func (r *FlowReading) Check() error {
	for _, x := range [...]struct {
		name string
		d    Opt[time.Duration]
		max  time.Duration
	}{
		{"rtt", r.RTT, MaxFlowRTT},
		{"rttvar", r.RTTVar, MaxFlowRTT},
		{"min_rtt", r.MinRTT, MaxFlowRTT},
		{"receive_rtt", r.ReceiveRTT, MaxFlowRTT},
		{"busy", r.Busy, maxFlowLasted},
		{"window_limited", r.WindowLimited, maxFlowLasted},
		{"buffer_limited", r.BufferLimited, maxFlowLasted},
	} {
		if d, known := x.d.Get(); known && (d < 0 || d > x.max) {
			return fmt.Errorf("%s %v is outside 0 to %v", x.name, d, x.max)
		}
	}
	if v, known := r.DeliveryRateBPS.Get(); known && (math.IsNaN(v) || v < 0 || v > MaxFlowRate) {
		return fmt.Errorf("delivery_rate %v bit/s is outside 0 to %v", v, MaxFlowRate)
	}
	if !r.Local.IsValid() || !r.Remote.IsValid() {
		return fmt.Errorf("endpoints %v and %v; want an address and a port each", r.Local, r.Remote)
	}
	return nil
}
