package recording

import (
	"fmt"
	"net/netip"
	"time"

	"mihf.dev/mihf"
)

// flow is a reading of a flow as it is written.
type flow struct {
	Protocol mihf.Protocol  `json:"protocol"`
	Local    netip.AddrPort `json:"local"`
	Remote   netip.AddrPort `json:"remote"`

	RTT        *seconds `json:"rtt_s,omitzero"`
	RTTVar     *seconds `json:"rtt_var_s,omitzero"`
	MinRTT     *seconds `json:"min_rtt_s,omitzero"`
	ReceiveRTT *seconds `json:"receive_rtt_s,omitzero"`

	Cwnd         *uint64  `json:"cwnd_bytes,omitzero"`
	Flight       *uint64  `json:"flight_bytes,omitzero"`
	DeliveryRate *float64 `json:"delivery_rate_bps,omitzero"`
	AppLimited   bool     `json:"app_limited,omitzero"`
	PathMTU      *uint64  `json:"path_mtu_bytes,omitzero"`

	Acked           *uint64  `json:"acked_bytes,omitzero"`
	Received        *uint64  `json:"received_bytes,omitzero"`
	SentSegments    *uint64  `json:"sent_segments,omitzero"`
	RetransSegments *uint64  `json:"retransmitted_segments,omitzero"`
	Delivered       *uint64  `json:"delivered_segments,omitzero"`
	Busy            *seconds `json:"busy_s,omitzero"`
	WindowLimited   *seconds `json:"window_limited_s,omitzero"`
	BufferLimited   *seconds `json:"buffer_limited_s,omitzero"`
}

func encodeFlow(f *mihf.FlowReading) *flow {
	if f == nil {
		return nil
	}
	return &flow{
		Protocol: f.Protocol, Local: f.Local, Remote: f.Remote,
		RTT: length(f.RTT), RTTVar: length(f.RTTVar), MinRTT: length(f.MinRTT), ReceiveRTT: length(f.ReceiveRTT),
		Cwnd: pointer(f.CwndBytes), Flight: pointer(f.FlightBytes), DeliveryRate: pointer(f.DeliveryRateBPS), AppLimited: f.AppLimited,
		PathMTU: pointer(f.PathMTUBytes), Acked: pointer(f.AckedBytes), Received: pointer(f.ReceivedBytes),
		SentSegments: pointer(f.SentSegments), RetransSegments: pointer(f.RetransSegments), Delivered: pointer(f.DeliveredSegments),
		Busy: length(f.Busy), WindowLimited: length(f.WindowLimited), BufferLimited: length(f.BufferLimited),
	}
}

func (f *flow) decode() (*mihf.FlowReading, error) {
	if f == nil {
		return nil, nil
	}
	out := &mihf.FlowReading{
		Endpoints: mihf.Endpoints{Protocol: f.Protocol, Local: f.Local, Remote: f.Remote},
		CwndBytes: optional(f.Cwnd), FlightBytes: optional(f.Flight), DeliveryRateBPS: optional(f.DeliveryRate), AppLimited: f.AppLimited,
		PathMTUBytes: optional(f.PathMTU), AckedBytes: optional(f.Acked), ReceivedBytes: optional(f.Received),
		SentSegments: optional(f.SentSegments), RetransSegments: optional(f.RetransSegments), DeliveredSegments: optional(f.Delivered),
	}
	for _, x := range [...]struct {
		name string
		from *seconds
		to   *mihf.Opt[time.Duration]
	}{
		{"rtt_s", f.RTT, &out.RTT},
		{"rtt_var_s", f.RTTVar, &out.RTTVar},
		{"min_rtt_s", f.MinRTT, &out.MinRTT},
		{"receive_rtt_s", f.ReceiveRTT, &out.ReceiveRTT},
		{"busy_s", f.Busy, &out.Busy},
		{"window_limited_s", f.WindowLimited, &out.WindowLimited},
		{"buffer_limited_s", f.BufferLimited, &out.BufferLimited},
	} {
		if x.from == nil {
			continue
		}
		d, err := x.from.length()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
		*x.to = mihf.Some(d)
	}
	return out, out.Check()
}

func length(o mihf.Opt[time.Duration]) *seconds {
	if d, ok := o.Get(); ok {
		s := toSeconds(d)
		return &s
	}
	return nil
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
