package tfrc

import (
	"math"
	"time"
)

// Rate is a rate of application data in bytes a second.
type Rate float64

// MaxBackoff is t_mbi: at least one segment in this time is always allowed (RFC 5348,
// section 4.3).
const MaxBackoff = 64 * time.Second

// minLossRate bounds p from below, so that the equation and its inverse stay finite.
const minLossRate = 1e-9

// responseFactor is f(p) of RFC 5348, section 8.1: the rate is s / (R * f(p)), with
// t_RTO = 4 R and b = 1.
func responseFactor(p float64) float64 {
	return math.Sqrt(2*p/3) + 12*math.Sqrt(3*p/8)*p*(1+32*p*p)
}

// Throughput is the throughput equation of RFC 5348, section 3.1: the rate that TCP would
// have with segments of segmentBytes, the round-trip time rtt and the loss event rate p,
// 0 < p <= 1. A p outside is moved to the nearest that is inside.
func Throughput(segmentBytes float64, rtt time.Duration, p float64) Rate {
	p = min(max(p, minLossRate), 1)
	return Rate(segmentBytes / (rtt.Seconds() * responseFactor(p)))
}

// LossRate is the inverse of [Throughput]: the loss event rate at which the equation gives
// x, to 12 digits. Rates that no p gives get the nearest p.
func LossRate(segmentBytes float64, rtt time.Duration, x Rate) float64 {
	want := segmentBytes / (rtt.Seconds() * float64(x))
	lo, hi := math.Log(minLossRate), 0.0
	if want >= responseFactor(1) {
		return 1
	}
	if want <= responseFactor(minLossRate) {
		return minLossRate
	}
	for hi-lo > 1e-12 {
		mid := (lo + hi) / 2
		if responseFactor(math.Exp(mid)) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp((lo + hi) / 2)
}

// lossInterval is the loss interval, in packets, that stands for the rate x.
func lossInterval(segmentBytes float64, rtt time.Duration, x Rate) float64 {
	return 1 / LossRate(segmentBytes, rtt, x)
}

// interval is the time that bytes take at rate x; at most [MaxBackoff] times two, which
// is the longest timer of this package.
func interval(bytes float64, x Rate) time.Duration {
	ns := bytes / float64(x) * 1e9
	if ns >= float64(2*MaxBackoff) || math.IsNaN(ns) {
		return 2 * MaxBackoff
	}
	return time.Duration(ns)
}
