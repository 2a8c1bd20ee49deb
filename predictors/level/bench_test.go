package level

import (
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/predictors/predictorstest"
)

// BenchmarkSample is one sample and the forecast after it, of a link that is near its
// end, where no part of the forecast is trivial.
func BenchmarkSample(b *testing.B) {
	p := New()
	o := predictorstest.Reading(predictorstest.Start, mihf.ParamRSSI, 0)
	var f mihf.Forecast
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.At = o.At.Add(1e8)
		o.Values.Set(mihf.ParamRSSI, float64(-75-i%13))
		p.Observe(o.At, o)
		p.Forecast(o.At, &f)
	}
}

// BenchmarkSampleSteady is the same for a good link.
func BenchmarkSampleSteady(b *testing.B) {
	p := New()
	o := predictorstest.Reading(predictorstest.Start, mihf.ParamRSSI, 0)
	var f mihf.Forecast
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.At = o.At.Add(1e8)
		o.Values.Set(mihf.ParamRSSI, float64(-60-i%2))
		p.Observe(o.At, o)
		p.Forecast(o.At, &f)
	}
}
