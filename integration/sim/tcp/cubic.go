package tcp

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

// The constants of RFC 9438.
const (
	cubicC    = 0.4                                   // 5, in segments/s³
	cubicBeta = 0.7                                   // 4.6
	cubicA    = 3 * (1 - cubicBeta) / (1 + cubicBeta) // 4.3, friendly to Reno
)

// cubic is the congestion control of RFC 9438. Names in comments are the RFC's.
type cubic struct {
	cwnd, ssthresh float64
	wMax           float64
	prior          float64   // cwnd_prior
	epoch          mihf.Time // of the present congestion avoidance; zero: not begun
	k              float64   // s
	wEst           float64
}

// NewCUBIC returns the congestion control of RFC 9438 with an initial window in segments.
func NewCUBIC(initial float64) Control { return &cubic{cwnd: initial, ssthresh: unlimited} }

func (c *cubic) Acked(e Event) {
	if !e.Limited {
		return
	}
	if c.cwnd < c.ssthresh {
		c.cwnd++ // 4.10: slow start as in RFC 5681
		return
	}
	if c.epoch.IsZero() {
		c.begin(e.Now)
	}
	t := e.Now.Sub(c.epoch)
	a := float64(e.Acked)
	alpha := cubicA
	if c.wEst >= c.prior {
		alpha = 1 // 4.3: as fast as Reno once the old window is reached
	}
	c.wEst += float64(alpha*a) / c.cwnd
	if now := c.curve(t); now < c.wEst {
		c.cwnd = max(c.cwnd, c.wEst) // the Reno-friendly region
		return
	}
	target := min(max(c.curve(t+e.SRTT), c.cwnd), 1.5*c.cwnd)
	c.cwnd += float64((target-c.cwnd)/c.cwnd) * a
}

// begin starts a congestion avoidance. Where no congestion event went before it, after a slow
// start or a timeout, the plateau is where the window is (4.8, 4.10).
func (c *cubic) begin(now mihf.Time) {
	c.epoch = now
	if c.wMax < c.cwnd {
		c.wMax = c.cwnd
	}
	c.k = math.Cbrt((c.wMax - c.cwnd) / cubicC)
	c.wEst = c.cwnd
	if c.prior == 0 {
		c.prior = c.cwnd
	}
}

// curve is W_cubic(t).
func (c *cubic) curve(t time.Duration) float64 {
	d := t.Seconds() - c.k
	return float64(cubicC*d*d*d) + c.wMax
}

// reduce sets the threshold after a loss (4.6) and the plateau, with fast convergence (4.7).
func (c *cubic) reduce(inFlight int) {
	c.prior = c.cwnd
	if c.cwnd < c.wMax {
		c.wMax = c.cwnd * (1 + cubicBeta) / 2
	} else {
		c.wMax = c.cwnd
	}
	c.ssthresh = max(float64(inFlight)*cubicBeta, least)
	c.epoch = 0
}

func (c *cubic) Congestion(_ mihf.Time, inFlight int) {
	c.reduce(inFlight)
	c.cwnd = c.ssthresh
}

func (c *cubic) Timeout(_ mihf.Time, inFlight int, first bool) {
	if first {
		c.reduce(inFlight)
		c.wMax = 0 // 4.8: K is 0 in the congestion avoidance that follows
	}
	c.cwnd, c.epoch = 1, 0
}

func (c *cubic) Recovered(_ mihf.Time, limit float64) {
	if limit > 0 {
		c.cwnd = min(c.ssthresh, limit)
	}
}

// Idle begins a new epoch as well: the curve must not run on while nothing is sent (5.8).
func (c *cubic) Idle(_ mihf.Time, initial float64) {
	c.cwnd, c.epoch = min(c.cwnd, initial), 0
}

func (c *cubic) Window() float64    { return c.cwnd }
func (c *cubic) Threshold() float64 { return c.ssthresh }
