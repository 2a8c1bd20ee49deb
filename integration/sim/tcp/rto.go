package tcp

import "time"

// The bounds of the retransmission timer (RFC 6298, 2.4 and 2.5).
const (
	defaultMinRTO = time.Second
	initialRTO    = time.Second
	maxRTO        = 60 * time.Second
)

// rtoTimer computes the retransmission timeout as RFC 6298 does.
type rtoTimer struct {
	least   time.Duration
	srtt    time.Duration // 0: no sample yet
	rttvar  time.Duration
	backoff uint // doublings since the last sample
}

// sample takes an RTT. Timestamps tell it of retransmissions too (section 3).
func (r *rtoTimer) sample(rtt time.Duration) {
	r.backoff = 0
	if r.srtt == 0 {
		r.srtt, r.rttvar = rtt, rtt/2
		return
	}
	r.rttvar += ((r.srtt - rtt).Abs() - r.rttvar) / 4
	r.srtt += (rtt - r.srtt) / 8
}

// expired doubles the timeout (5.5).
func (r *rtoTimer) expired() { r.backoff = min(r.backoff+1, 16) }

func (r *rtoTimer) timeout() time.Duration {
	d := initialRTO
	if r.srtt > 0 {
		d = r.srtt + 4*r.rttvar
	}
	d = min(max(d, r.least), maxRTO)
	return min(d<<r.backoff, maxRTO)
}
