package nl80211

import (
	"time"

	"mihf.dev/mihf"
)

// config is what the pure parts need of [Options].
type config struct {
	near      float64       // dBm; below it the signal is read often
	pollFar   time.Duration // between two samples far from it
	pollNear  time.Duration // close to it
	reconcile time.Duration
	setCQM    bool
	count     *counters
}

const (
	nearHysteresis = 3.0             // dB above near that the signal must have for nearFor
	nearFor        = 2 * time.Second // before it is read seldom again
	alarmFor       = 5 * time.Second // how long a word of the kernel makes it read often
	settleFor      = 2 * time.Second // how long a new attachment does
)

// pace says how often the signal is read. It is pure.
type pace struct {
	cfg   *config
	until mihf.Time // read often at least until then
	last  [2]float64
	at    mihf.Time // of the sample before
	known bool
}

// begin says that there is another attachment.
func (p *pace) begin(now mihf.Time) {
	p.known = false
	p.often(now.Add(settleFor))
}

// alarm says that the kernel warned.
func (p *pace) alarm(now mihf.Time) { p.often(now.Add(alarmFor)) }

func (p *pace) often(until mihf.Time) { p.until = max(p.until, until) }

// seriesOf are the parameters that tell the distance to the threshold: of each only with
// itself.
var seriesOf = [2]mihf.Parameter{mihf.ParamRSSI, mihf.ParamBeaconSignal}

// take looks at a sample: weak, or falling so fast that it would be weak before the next
// but one.
func (p *pace) take(now mihf.Time, values *mihf.Values) {
	step := now.Sub(p.at)
	weak, some := false, false
	for i, parameter := range seriesOf {
		v, ok := values.Get(parameter)
		if !ok {
			continue
		}
		some = true
		level := p.cfg.near
		if p.until.Sub(now) > 0 {
			level += nearHysteresis
		}
		weak = weak || v < level
		if p.known && step > 0 && v < p.last[i] {
			fall := (p.last[i] - v) * float64(2*p.cfg.pollFar) / float64(max(step, p.cfg.pollFar/2))
			weak = weak || v-fall < p.cfg.near
		}
		p.last[i] = v
	}
	if weak {
		p.often(now.Add(nearFor))
	}
	if some {
		p.at, p.known = now, true
	}
}

// interval returns the time to the next sample.
func (p *pace) interval(now mihf.Time) time.Duration {
	if p.until.Sub(now) > 0 {
		return p.cfg.pollNear
	}
	return p.cfg.pollFar
}
