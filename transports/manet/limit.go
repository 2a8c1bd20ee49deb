package manet

import (
	"math"
	"time"
)

// Limit is the rate at which the source of a flow may send, in bit/s: formula (2) of the
// paper. thrMaxBps is what the flow carries alone, over its hops, with its segments and
// at its radios' rates; share is its part of the load of its bottleneck region. Where
// either is no number, negative or, for the share, above 1, the limit is 0: the caller
// knows nothing, and sets none.
func Limit(thrMaxBps, share float64) float64 {
	if !(thrMaxBps > 0 && share > 0 && share <= 1) || math.IsInf(thrMaxBps, 0) {
		return 0
	}
	return thrMaxBps * share
}

// LimitUDP is the limit of a flow that is not acknowledged: the time in the air that
// TCP's acknowledgements would take is its own. dataAir and ackAir are the times in the
// air, headers and contention included, of a segment and of the acknowledgements that
// TCP would send for it.
func LimitUDP(tcpBps float64, dataAir, ackAir time.Duration) float64 {
	if dataAir <= 0 || ackAir < 0 {
		return tcpBps
	}
	return tcpBps * float64(dataAir+ackAir) / float64(dataAir)
}

// Gap is the time between the starts of two segments at the limit: formula (3). A limit
// of 0 or less is none, and its gap 0.
func Gap(segmentOctets int, limitBps float64) time.Duration {
	if limitBps <= 0 || segmentOctets <= 0 {
		return 0
	}
	s := float64(segmentOctets) * 8 / limitBps
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(math.Round(s * float64(time.Second)))
}
