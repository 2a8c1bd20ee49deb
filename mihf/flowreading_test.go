package mihf_test

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"mihf.dev/mihf"
)

func TestFlowReadingCheck(t *testing.T) {
	good := func() mihf.FlowReading {
		return mihf.FlowReading{Endpoints: mihf.Endpoints{
			Protocol: 6, Local: netip.MustParseAddrPort("192.0.2.7:40000"), Remote: netip.MustParseAddrPort("[2001:db8::1]:443"),
		}}
	}
	for name, tc := range map[string]struct {
		change func(*mihf.FlowReading)
		ok     bool
	}{
		"nothing known":        {func(*mihf.FlowReading) {}, true},
		"zeroes":               {func(r *mihf.FlowReading) { r.RTT, r.DeliveryRateBPS = mihf.Some[time.Duration](0), mihf.Some(0.0) }, true},
		"the longest":          {func(r *mihf.FlowReading) { r.RTT = mihf.Some(mihf.MaxFlowRTT) }, true},
		"too long":             {func(r *mihf.FlowReading) { r.RTT = mihf.Some(mihf.MaxFlowRTT + 1) }, false},
		"negative rtt":         {func(r *mihf.FlowReading) { r.MinRTT = mihf.Some[time.Duration](-1) }, false},
		"negative variance":    {func(r *mihf.FlowReading) { r.RTTVar = mihf.Some[time.Duration](-1) }, false},
		"negative receive":     {func(r *mihf.FlowReading) { r.ReceiveRTT = mihf.Some[time.Duration](-1) }, false},
		"negative time":        {func(r *mihf.FlowReading) { r.Busy = mihf.Some[time.Duration](-1) }, false},
		"no number":            {func(r *mihf.FlowReading) { r.DeliveryRateBPS = mihf.Some(math.NaN()) }, false},
		"endless":              {func(r *mihf.FlowReading) { r.DeliveryRateBPS = mihf.Some(math.Inf(1)) }, false},
		"negative rate":        {func(r *mihf.FlowReading) { r.DeliveryRateBPS = mihf.Some(-1.0) }, false},
		"no local end":         {func(r *mihf.FlowReading) { r.Local = netip.AddrPort{} }, false},
		"no remote end":        {func(r *mihf.FlowReading) { r.Remote = netip.AddrPort{} }, false},
		"a week in the window": {func(r *mihf.FlowReading) { r.WindowLimited = mihf.Some(7 * 24 * time.Hour) }, true},
	} {
		r := good()
		tc.change(&r)
		if err := r.Check(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
