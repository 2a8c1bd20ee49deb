// Package level is the method "level-slope": where will the serving signal be, by its
// level and slope, and is the link known to live there?
//
// One exponentially weighted regression a parameter gives level, slope, noise and their
// uncertainty; the loss is the crossing of an uncertain floor, given the lowest level at
// which the link has lived so far. A handover is expected only on evidence: the network
// ordered it, or a candidate of the same network is clearly better.
//
// # Guarantees
//
//   - Those of package predictors.
//   - One series is one parameter; readings of different attributes are never mixed.
//   - A series never crosses a change of the point of attachment, a disconnection, a
//     scan (bounded by 12 s), a suspend, or a silence of more than three intervals and
//     a second.
//   - Single outliers are left out; the third in a row is a new level.
//   - Serving and candidate signal are compared only when both are fresh.
//
// # Limits
//
// The floors are a table, not learned from losses. Retries, beacon loss and round-trip
// times are not used. The weights assume noise that is independent from sample to
// sample; slow shadowing makes the forecast more certain than it should be.
package level

import (
	"math"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
)

// Name is the method's name in configuration.
const Name = "level-slope"

const (
	scanMax   = 12 * time.Second // a scan whose end was not seen is over then
	clockBack = 10 * time.Second // time that went back further is a new time

	shrink       = 3.0  // how many noise variances of slope are shrunk away
	persistence  = 20.0 // seconds: time constant with which a slope ends
	slopeWander2 = 0.05 // (dB/s)² a second: how fast slopes change
)

// Method returns the method for a list of methods.
func Method() predictors.Method {
	return predictors.Method{
		Name:        Name,
		Description: "level and slope of the serving signal against an uncertain floor",
		New:         func() predictors.Predictor { return New() },
	}
}

// Predictor is the state of one link. It is used by one goroutine.
type Predictor struct {
	series [len(floors)]struct {
		trend trend
		proof proof
	}
	candidates candidates
	poa        mihf.PoA
	ssid       []byte
	running    bool      // facts said so
	scan       mihf.Time // start of the scan that goes on; zero: none
	now        mihf.Time
}

// New returns a predictor that has seen nothing.
func New() *Predictor { return &Predictor{} }

// Observe takes what a sensor saw.
func (p *Predictor) Observe(now mihf.Time, o *mihf.Observation) {
	if now.Before(p.now) {
		if p.now.Sub(now) <= clockBack {
			return
		}
		*p = Predictor{}
	}
	p.now = now
	switch o.Kind {
	case mihf.ObsRadio:
		p.radio(now, o)
	case mihf.ObsAssociation:
		p.association(o.Association)
	case mihf.ObsDetected:
		p.detected(now, o)
	case mihf.ObsScan:
		p.scanning(now, o.Scanning)
	case mihf.ObsHandover:
		p.candidates.ordered, p.candidates.orderedAt = o.PoA, now
	case mihf.ObsLink:
		running := o.Facts != nil && o.Facts.Running()
		if p.running && !running {
			p.detach()
		}
		p.running = running
	case mihf.ObsLinkGone, mihf.ObsResume:
		p.detach()
	default: // nothing that this method uses
	}
}

// detach forgets the attachment: what was true of its signal is not true of the next.
func (p *Predictor) detach() {
	for i := range p.series {
		p.series[i].trend.restart()
		p.series[i].proof = proof{}
	}
	p.candidates = candidates{}
	p.scan = 0
	p.poa = ""
}

func (p *Predictor) attach(poa mihf.PoA) {
	if poa == "" || poa == p.poa {
		return
	}
	if p.poa != "" {
		p.detach()
	}
	p.poa = poa
}

func (p *Predictor) association(a *mihf.Association) {
	if a == nil {
		return
	}
	switch a.State {
	case mihf.AssociationNone, mihf.AssociationDisconnected:
		p.detach()
		p.ssid = nil
	case mihf.AssociationAssociated, mihf.AssociationAuthorised:
		p.attach(a.PoA)
		p.ssid = a.SSID
	default: // authenticating: still on the old one
	}
}

// scanning opens or closes the window in which the signal is not looked at.
func (p *Predictor) scanning(now mihf.Time, on bool) {
	if !p.scan.IsZero() && (!on || !p.inScan(now)) {
		p.endScan()
	}
	if on && p.scan.IsZero() {
		p.scan = now
	}
}

func (p *Predictor) endScan() {
	p.scan = 0
	for i := range p.series {
		p.series[i].trend.restart()
	}
}

func (p *Predictor) inScan(now mihf.Time) bool {
	return !p.scan.IsZero() && now.Sub(p.scan) <= scanMax
}

func (p *Predictor) radio(now mihf.Time, o *mihf.Observation) {
	p.attach(o.PoA)
	if p.inScan(now) {
		return
	}
	if !p.scan.IsZero() {
		p.endScan()
	}
	at := min(o.At, now).Add(-max(o.Age, 0))
	for i := range floors {
		v, ok := o.Values.Get(floors[i].parameter)
		if !ok {
			continue
		}
		s := &p.series[i]
		if at <= s.trend.seen || now.Sub(at).Seconds() > s.trend.maxAge() {
			continue // a repeated or an old reading
		}
		s.trend.unit = floors[i].unit
		if dt := s.trend.add(at, v); dt > 0 || !s.proof.known {
			s.proof.add(s.trend.level, dt)
		}
	}
}

func (p *Predictor) detected(now mihf.Time, o *mihf.Observation) {
	d := o.Detected
	if d == nil || d.PoA == "" || !sameESS(p.ssid, d.SSID) {
		return
	}
	at := min(o.At, now).Add(-max(o.Age, 0))
	for i := range floors {
		if v, ok := d.Values.Get(floors[i].parameter); ok {
			p.candidates.add(candidate{poa: d.PoA, series: i, value: v, at: at})
		}
	}
}

// Forecast fills f with the forecast at now.
func (p *Predictor) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now}
	now = max(now, p.now) // a clock that went back changes nothing
	for i := range p.series {
		tr := &p.series[i].trend
		if tr.samples < minSamples {
			continue
		}
		silence := p.silence(now, tr)
		if silence > tr.maxAge() {
			continue
		}
		p.loss(i, silence, f)
		p.candidates.handover(now, p.poa, i, tr.level, f)
		return true
	}
	return p.candidates.order(now, p.poa, f)
}

// silence returns the seconds since a series' newest sample. A scan explains it, so
// that during one the time stands still for as long as a forecast may stand.
func (p *Predictor) silence(now mihf.Time, tr *trend) float64 {
	s := now.Sub(tr.seen).Seconds()
	if s <= tr.maxAge() && p.inScan(now) {
		s = p.scan.Sub(tr.seen).Seconds()
	}
	return math.Max(s, 0)
}

// decays holds exp(-h/persistence) at each of mihf.Horizons.
var decays = func() (d [len(mihf.Horizons)]float64) {
	for i, h := range mihf.Horizons {
		d[i] = math.Exp(-h / persistence)
	}
	return d
}()

func (p *Predictor) loss(i int, silence float64, f *mihf.Forecast) {
	fl, tr := &floors[i], &p.series[i].trend
	slope := tr.significant()
	c := fl.given(&p.series[i].proof)
	lag := silence + tr.seen.Sub(tr.at).Seconds()
	spread := tr.uncertainty()
	wander2 := slopeWander2 * fl.unit * fl.unit / 3
	decay := math.Exp(-lag / persistence)
	low := 0.0 // what was crossed stays crossed
	for k, h := range mihf.Horizons {
		h += lag
		reach := persistence * (1 - decay*decays[k])
		variance := spread*(tr.ll+reach*(2*tr.ls+reach*tr.ss)) + wander2*h*h*h
		low = max(low, c.crossed(tr.level+float64(slope*reach), variance))
		f.Loss[k] = float32(low)
	}
	f.Interval = time.Duration(nextSample(tr.interval, silence) * 1e9)
	f.Trend = mihf.Trend{
		Parameter: fl.parameter,
		Level:     tr.level + float64(slope*lag),
		Slope:     slope,
		Floor:     c.mean,
		Noise:     math.Sqrt(tr.noise2),
		Samples:   tr.samples,
	}
}

// nextSample returns the expected seconds to the next sample: one that is overdue may
// come at any moment within an interval.
func nextSample(interval, silence float64) float64 {
	if silence < interval {
		return interval - silence
	}
	return interval
}
