package conv

import (
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func encodeFlowReading(f *mihf.FlowReading) *mihv1.FlowReading {
	p := &mihv1.FlowReading{
		Endpoints: encodeEndpoints(&f.Endpoints), Rtt: optSpan(f.RTT), RttVar: optSpan(f.RTTVar), MinRtt: optSpan(f.MinRTT), ReceiveRtt: optSpan(f.ReceiveRTT),
		CwndBytes: pointer(f.CwndBytes), FlightBytes: pointer(f.FlightBytes), AppLimited: f.AppLimited, PathMtuBytes: pointer(f.PathMTUBytes),
		AckedBytes: pointer(f.AckedBytes), ReceivedBytes: pointer(f.ReceivedBytes), SentSegments: pointer(f.SentSegments), DeliveredSegments: pointer(f.DeliveredSegments),
		RetransmittedSegments: pointer(f.RetransSegments),
		Busy:                  optSpan(f.Busy), WindowLimited: optSpan(f.WindowLimited), BufferLimited: optSpan(f.BufferLimited),
	}
	if v, ok := f.DeliveryRateBPS.Get(); ok {
		p.DeliveryRateBps = number(v)
	}
	return p
}

func (r *reader) flowReading(p *mihv1.FlowReading) mihf.FlowReading {
	failed := r.mark()
	f := mihf.FlowReading{Endpoints: r.endpoints(p.GetEndpoints())}
	r.in("endpoints", failed)
	f.RTT, f.RTTVar = r.optSpan("rtt", p.GetRtt()), r.optSpan("rtt_var", p.GetRttVar())
	f.MinRTT, f.ReceiveRTT = r.optSpan("min_rtt", p.GetMinRtt()), r.optSpan("receive_rtt", p.GetReceiveRtt())
	f.CwndBytes, f.FlightBytes, f.PathMTUBytes = optional(p.CwndBytes), optional(p.FlightBytes), optional(p.PathMtuBytes)
	f.DeliveryRateBPS, f.AppLimited = optional(p.DeliveryRateBps), p.GetAppLimited()
	f.AckedBytes, f.ReceivedBytes = optional(p.AckedBytes), optional(p.ReceivedBytes)
	f.SentSegments, f.RetransSegments, f.DeliveredSegments = optional(p.SentSegments), optional(p.RetransmittedSegments), optional(p.DeliveredSegments)
	f.Busy, f.WindowLimited, f.BufferLimited = r.optLong("busy", p.GetBusy()), r.optLong("window_limited", p.GetWindowLimited()), r.optLong("buffer_limited", p.GetBufferLimited())
	if err := f.Check(); err != nil {
		r.fail("reading", "%v", err)
	}
	return f
}

func pointer[T any](o mihf.Opt[T]) *T {
	if v, ok := o.Get(); ok {
		return &v
	}
	return nil
}

func optional[T any](p *T) mihf.Opt[T] {
	if p == nil {
		return mihf.Opt[T]{}
	}
	return mihf.Some(*p)
}
