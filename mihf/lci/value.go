package lci

import (
	"math"
	"time"

	"mihf.dev/mihf"
)

// How long values live.
const (
	Fresh     = 10 * time.Second // measured, and true
	Forgotten = 24 * time.Hour   // history
	phyFresh  = 30 * time.Second
	HalfLife  = 10 * time.Minute // of the confidence
)

// value is what each source says of one quantity; for history what was known before this attachment.
type value struct {
	by [mihf.SourcePHY + 1]mihf.Characteristic
}

func (v *value) set(c mihf.Characteristic) {
	if !math.IsNaN(c.Value) && !math.IsInf(c.Value, 0) {
		v.by[c.Source] = c
	}
}

// renew sets what differs from what was said, or is so much newer that it would have been forgotten soon; it reports whether it did.
func (v *value) renew(c mihf.Characteristic) bool {
	was := v.by[c.Source]
	if was.Known() && math.Abs(c.Value-was.Value) <= significant*was.Value && c.At.Sub(was.At) < phyFresh/2 {
		return false
	}
	v.set(c)
	return true
}

// best returns what counts now.
func (v *value) best(now mihf.Time) mihf.Characteristic {
	measured, history := v.by[mihf.SourceMeasured], v.by[mihf.SourceHistory]
	if measured.Known() && now.Sub(measured.At) >= Fresh {
		history, measured = asHistory(measured), mihf.Characteristic{}
	}
	if history.Known() && now.Sub(history.At) >= Forgotten {
		history = mihf.Characteristic{}
	}
	phy := v.by[mihf.SourcePHY]
	if phy.Known() && now.Sub(phy.At) >= phyFresh {
		phy = mihf.Characteristic{}
	}
	for _, c := range [...]mihf.Characteristic{measured, v.by[mihf.SourceOperator], history, v.by[mihf.SourceModem], phy} {
		if c.Known() {
			c.Confidence *= math.Exp2(-now.Sub(c.At).Seconds() / HalfLife.Seconds())
			return c
		}
	}
	return mihf.Characteristic{}
}

// next returns when best changes by time alone; zero: never.
func (v *value) next(now mihf.Time) mihf.Time {
	t := mihf.Time(0)
	for _, x := range [...]struct {
		c    mihf.Characteristic
		life time.Duration
	}{
		{v.by[mihf.SourceMeasured], Fresh}, {v.by[mihf.SourceMeasured], Forgotten}, {v.by[mihf.SourceHistory], Forgotten}, {v.by[mihf.SourcePHY], phyFresh},
	} {
		if ends := x.c.At.Add(x.life); x.c.Known() && now.Before(ends) {
			t = mihf.Sooner(t, ends)
		}
	}
	return t
}

func asHistory(c mihf.Characteristic) mihf.Characteristic {
	if c.Source == mihf.SourceMeasured {
		c.Source = mihf.SourceHistory
		c.Confidence /= 2
	}
	return c
}

// significant is by how much a value must differ to matter.
const significant = 0.2

// Significant reports whether flows should be told: a capacity or an RTT that differs by 20 %, jitter, loss or a
// buffer by half, another MTU, point of attachment or source, or something that was not known.
func Significant(old, is *mihf.LCI) bool {
	if old == nil || is == nil {
		return old != is
	}
	if old.Link != is.Link || old.PoA != is.PoA {
		return true
	}
	for _, x := range [...]struct {
		old, is     mihf.Characteristic
		by, atLeast float64
	}{
		{old.CapacityDownBPS, is.CapacityDownBPS, significant, 0},
		{old.CapacityUpBPS, is.CapacityUpBPS, significant, 0},
		{old.RTTSeconds, is.RTTSeconds, significant, 0.002},
		{old.JitterSeconds, is.JitterSeconds, 0.5, 0.01},
		{old.LossRatio, is.LossRatio, 0.5, 0.005},
		{old.MTUBytes, is.MTUBytes, 0, 0},
		{old.BufferBytes, is.BufferBytes, 0.5, 3000},
	} {
		d := math.Abs(x.is.Value - x.old.Value)
		if x.old.Source != x.is.Source || (d > x.by*math.Abs(x.old.Value) && d > x.atLeast) {
			return true
		}
	}
	return false
}
