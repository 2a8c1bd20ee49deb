package nl80211

import (
	"time"

	"mihf.dev/mihf"
)

const (
	// mutePolls is after how many samples without a signal the driver is said to give none.
	mutePolls = 5
	// stuckFor is how long a signal must not move, with stuckPackets received, to be suspect.
	stuckFor     = time.Minute
	stuckPackets = 100
)

// sampler turns readings of one peer into values: what is out of range is left out, and
// counters become shares since the sample before. It is pure.
type sampler struct {
	cfg *config

	before  stationInfo // of the same attachment
	known   bool
	lost    uint32    // reports of lost beacons since the sample before
	mute    int       // samples without a signal, one after the other
	heardAt mihf.Time // of the newest scan result that was taken for a sample

	moved     mihf.Time // when the signal was another than now
	movedRx   uint32
	suspicion bool
}

// begin says that there is another attachment.
func (p *sampler) begin() {
	*p = sampler{cfg: p.cfg}
}

func (p *sampler) beaconLost() { p.lost++ }

// fresh reports whether a scan result heard then is newer than the one before.
func (p *sampler) fresh(heardAt mihf.Time) bool {
	if heardAt <= p.heardAt {
		return false
	}
	p.heardAt = heardAt
	return true
}

// set stores a value, or counts that it cannot be one. A signal of 0 dBm is how drivers
// say that they know none.
func (p *sampler) set(values *mihf.Values, parameter mihf.Parameter, v float64) {
	if v == 0 && parameter.Unit() == "dBm" {
		return
	}
	if !values.Set(parameter, v) {
		p.cfg.count.rejected.Add(1)
	}
}

// take returns the values of a reading. serving is what the scan results say of the
// access point, for multi-link associations.
func (p *sampler) take(now mihf.Time, s *stationInfo, serving bssInfo) mihf.Values {
	if p.known && s.mac != p.before.mac {
		p.begin()
	}
	var values mihf.Values
	p.signals(&values, s)
	if !values.Has(mihf.ParamRSSI) && serving.mld != "" && serving.mld == s.mac {
		if v, ok := serving.signal.Get(); ok && p.fresh(serving.at(now)) {
			p.set(&values, mihf.ParamBeaconSignal, float64(v)/100)
		}
	}
	for _, x := range []struct {
		parameter mihf.Parameter
		v         mihf.Opt[float64]
	}{{mihf.ParamTxPHYRate, s.txRate}, {mihf.ParamRxPHYRate, s.rxRate}, {mihf.ParamExpectedThroughput, s.throughput}} {
		if v, ok := x.v.Get(); ok && v > 0 {
			p.set(&values, x.parameter, v)
		}
	}
	if v, ok := s.inactive.Get(); ok {
		p.set(&values, mihf.ParamInactive, v.Seconds())
	}
	p.shares(&values, s)
	p.watch(now, &values, s)
	p.before, p.known, p.lost = *s, true, 0
	return values
}

// signals takes the signals of the peer. Of a multi-link association the best leg counts,
// for the link is lost only with its last leg.
func (p *sampler) signals(values *mihf.Values, s *stationInfo) {
	for _, x := range []struct {
		parameter mihf.Parameter
		of        func(*stationInfo) mihf.Opt[int8]
	}{
		{mihf.ParamRSSI, func(s *stationInfo) mihf.Opt[int8] { return s.signal }},
		{mihf.ParamRSSIAverage, func(s *stationInfo) mihf.Opt[int8] { return s.average }},
		{mihf.ParamBeaconSignal, func(s *stationInfo) mihf.Opt[int8] { return s.beacons }},
	} {
		if len(s.legs) == 0 {
			if v, ok := x.of(s).Get(); ok {
				p.set(values, x.parameter, float64(v))
			}
			continue
		}
		for i := range s.legs {
			v, ok := x.of(&s.legs[i]).Get()
			best, has := values.Get(x.parameter)
			if ok && (!has || float64(v) > best) {
				p.set(values, x.parameter, float64(v))
			}
		}
	}
}

// shares turns counters into what happened since the sample before.
func (p *sampler) shares(values *mihf.Values, s *stationInfo) {
	b := &p.before
	if s.beaconLoss.Known() && b.beaconLoss.Known() {
		if n, ok := since(b.beaconLoss, s.beaconLoss); ok {
			values.Set(mihf.ParamBeaconLoss, float64(n))
		}
	} else if p.lost > 0 {
		values.Set(mihf.ParamBeaconLoss, float64(p.lost))
	}
	sent, ok := since(b.txPackets, s.txPackets)
	if !p.known || !ok {
		return
	}
	if n, ok := since(b.txRetries, s.txRetries); ok && n+sent > 0 {
		values.Set(mihf.ParamTxRetryRatio, float64(n)/float64(n+sent))
	}
	if n, ok := since(b.txFailed, s.txFailed); ok && max(n, sent) > 0 {
		values.Set(mihf.ParamTxFailRatio, float64(n)/float64(max(n, sent)))
	}
}

// since returns by how much a counter rose; not where it is unknown, or began anew.
func since(before, now mihf.Opt[uint32]) (uint32, bool) {
	a, okA := before.Get()
	b, okB := now.Get()
	const most = 1 << 30 // more is a counter that began anew
	n := b - a           // a counter that wrapped goes on
	return n, okA && okB && n < most
}

// watch notices a driver that gives no signal, or always the same one.
func (p *sampler) watch(now mihf.Time, values *mihf.Values, s *stationInfo) {
	rssi, ok := values.Get(mihf.ParamRSSI)
	if !ok {
		p.mute++
		return
	}
	p.mute = 0
	rx := s.rxPackets.Or(0)
	if last, known := p.before.signal.Get(); !p.known || !known || float64(last) != rssi || p.before.average != s.average {
		p.moved, p.movedRx, p.suspicion = now, rx, false
	}
	if now.Sub(p.moved) >= stuckFor && rx-p.movedRx >= stuckPackets && s.rxPackets.Known() {
		p.suspicion = true
	}
}

// complaint says what the driver lacks; "": nothing.
func (p *sampler) complaint() string {
	switch {
	case p.mute >= mutePolls:
		return "no signal from the driver"
	case p.suspicion:
		return "the signal has not moved for a minute although frames arrive: the driver may not refresh it"
	}
	return ""
}

// busyMeter turns the survey's counters into the share of time that the channel is taken.
type busyMeter struct {
	before surveyInfo
	known  bool
	share  float64
	at     mihf.Time // of share; zero: none
}

func (m *busyMeter) take(now mihf.Time, s surveyInfo) {
	a0, ok0 := m.before.active.Get()
	a1, ok1 := s.active.Get()
	b0, ok2 := m.before.busy.Get()
	b1, ok3 := s.busy.Get()
	if m.known && ok0 && ok1 && ok2 && ok3 && a1 > a0 && b1 >= b0 {
		m.share, m.at = min(float64(b1-b0)/float64(a1-a0), 1), now
	}
	m.before, m.known = s, true
}

// get returns a share that was not taken before.
func (m *busyMeter) get(now mihf.Time) (float64, bool) {
	if m.at.IsZero() || now.Sub(m.at) > surveyEvery {
		return 0, false
	}
	m.at = 0
	return m.share, true
}
