package conv

import (
	"math"
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func encodeAddress(a *mihf.Address) *mihv1.Address {
	p := &mihv1.Address{Tentative: a.Tentative, Deprecated: a.Deprecated, Temporary: a.Temporary, LinkLocal: a.LinkLocal}
	if a.Prefix.IsValid() {
		p.Prefix = a.Prefix.String()
	}
	return p
}

// optAddress encodes an address that may be none.
func optAddress(a *mihf.Address) *mihv1.Address {
	if *a == (mihf.Address{}) {
		return nil
	}
	return encodeAddress(a)
}

func (r *reader) address(p *mihv1.Address) mihf.Address {
	a := mihf.Address{Tentative: p.GetTentative(), Deprecated: p.GetDeprecated(), Temporary: p.GetTemporary(), LinkLocal: p.GetLinkLocal()}
	if s := p.GetPrefix(); s != "" {
		var err error
		if a.Prefix, err = netip.ParsePrefix(s); err != nil {
			r.fail("prefix", "%.60q is not an IP prefix", s)
		}
	}
	return a
}

func encodeRoute(t *mihf.Route) *mihv1.Route {
	return &mihv1.Route{Ipv6: t.IPv6, Gateway: addr(t.Gateway), Source: addr(t.Source), Table: t.Table, Metric: t.Metric}
}

func (r *reader) route(p *mihv1.Route) mihf.Route {
	p = or(p)
	return mihf.Route{
		IPv6: p.GetIpv6(), Gateway: r.addr("gateway", p.Gateway), Source: r.addr("source", p.Source),
		Table: p.GetTable(), Metric: p.GetMetric(),
	}
}

func encodeFacts(f *mihf.LinkFacts) *mihv1.LinkFacts {
	if f == nil {
		return nil
	}
	return &mihv1.LinkFacts{
		Name:            []byte(f.Name),
		Index:           int32(min(max(f.Index, math.MinInt32), math.MaxInt32)),
		Namespace:       text(f.Namespace),
		Kind:            text(f.Kind),
		HardwareAddress: text(f.HardwareAddr),
		MtuBytes:        uint32(min(max(f.MTUBytes, 0), math.MaxInt32)),
		AdminUp:         f.AdminUp,
		Carrier:         f.Carrier,
		Oper:            shifted[mihv1.OperState](f.Oper),
		Addresses:       each(f.Addresses, encodeAddress),
		Defaults:        each(f.Defaults, encodeRoute),
	}
}

func (r *reader) facts(p *mihv1.LinkFacts) mihf.LinkFacts {
	if p.GetMtuBytes() > math.MaxInt32 {
		r.fail("mtu_bytes", "%d is too large", p.GetMtuBytes())
	}
	return mihf.LinkFacts{
		Name: string(p.GetName()), Index: int(p.GetIndex()), Namespace: p.GetNamespace(), Kind: p.GetKind(),
		HardwareAddr: p.GetHardwareAddress(), MTUBytes: int(p.GetMtuBytes()), AdminUp: p.GetAdminUp(), Carrier: p.GetCarrier(),
		Oper:      enumOr[mihf.OperState](r, "oper", mihv1.OperState_name, p.GetOper()),
		Addresses: list(r, "addresses", p.GetAddresses(), r.address),
		Defaults:  list(r, "defaults", p.GetDefaults(), r.route),
	}
}

func encodeEgress(e *mihf.Egress) *mihv1.Egress {
	return &mihv1.Egress{
		Ipv6: e.IPv6, Link: text(e.Link), Gateway: addr(e.Gateway), Source: addr(e.Source), Table: e.Table, Metric: e.Metric,
	}
}

func (r *reader) egress(p *mihv1.Egress) mihf.Egress {
	p = or(p)
	return mihf.Egress{
		IPv6: p.GetIpv6(), Link: mihf.LinkID(p.GetLink()), Gateway: r.addr("gateway", p.Gateway),
		Source: r.addr("source", p.Source), Table: p.GetTable(), Metric: p.GetMetric(),
	}
}

func (e Encoder) characteristic(c *mihf.Characteristic) *mihv1.Characteristic {
	if !c.Known() || !finite(c.Value) {
		return nil
	}
	return &mihv1.Characteristic{
		Value: c.Value, Source: mihv1.Source(c.Source), Age: e.age(c.At), Confidence: finiteOr0(c.Confidence), MayRaise: c.Source.MayRaise(),
	}
}

// durationCharacteristic encodes seconds as a duration.
func (e Encoder) durationCharacteristic(c *mihf.Characteristic) *mihv1.DurationCharacteristic {
	if !c.Known() || !(math.Abs(c.Value) <= maxSpan.Seconds()) {
		return nil
	}
	return &mihv1.DurationCharacteristic{
		Value:  durationpb.New(time.Duration(math.Round(c.Value * 1e9))),
		Source: mihv1.Source(c.Source), Age: e.age(c.At), Confidence: finiteOr0(c.Confidence), MayRaise: c.Source.MayRaise(),
	}
}

func finiteOr0(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return v
}

// LCI encodes link characteristics; nil stays nil.
func (e Encoder) LCI(l *mihf.LCI) *mihv1.Lci {
	if l == nil {
		return nil
	}
	return &mihv1.Lci{
		Link: text(l.Link), Poa: e.poa(l.PoA),
		CapacityDownBps: e.characteristic(&l.CapacityDownBPS),
		CapacityUpBps:   e.characteristic(&l.CapacityUpBPS),
		Rtt:             e.durationCharacteristic(&l.RTTSeconds),
		Jitter:          e.durationCharacteristic(&l.JitterSeconds),
		LossRatio:       e.characteristic(&l.LossRatio),
		MtuBytes:        e.characteristic(&l.MTUBytes),
		BufferBytes:     e.characteristic(&l.BufferBytes),
	}
}

func (r *reader) provenance(field string, src mihv1.Source, age *durationpb.Duration, confidence float64) mihf.Characteristic {
	if _, ok := mihv1.Source_name[int32(src)]; !ok || src == 0 {
		r.fail(field, "source %d is not one of its values", src)
		return mihf.Characteristic{}
	}
	return mihf.Characteristic{Source: mihf.Source(src), At: r.ago(field, age), Confidence: r.finite(field, confidence)}
}

func (r *reader) characteristic(field string, p *mihv1.Characteristic) mihf.Characteristic {
	if p == nil {
		return mihf.Characteristic{}
	}
	c := r.provenance(field, p.GetSource(), p.GetAge(), p.GetConfidence())
	c.Value = r.finite(field, p.GetValue())
	return c
}

func (r *reader) durationCharacteristic(field string, p *mihv1.DurationCharacteristic) mihf.Characteristic {
	if p == nil {
		return mihf.Characteristic{}
	}
	c := r.provenance(field, p.GetSource(), p.GetAge(), p.GetConfidence())
	c.Value = float64(r.duration(field, p.GetValue(), -maxSpan, maxSpan)) / 1e9
	return c
}

func (r *reader) lci(p *mihv1.Lci) mihf.LCI {
	return mihf.LCI{
		Link: mihf.LinkID(p.GetLink()), PoA: mihf.PoA(p.GetPoa()),
		CapacityDownBPS: r.characteristic("capacity_down_bps", p.GetCapacityDownBps()),
		CapacityUpBPS:   r.characteristic("capacity_up_bps", p.GetCapacityUpBps()),
		RTTSeconds:      r.durationCharacteristic("rtt", p.GetRtt()),
		JitterSeconds:   r.durationCharacteristic("jitter", p.GetJitter()),
		LossRatio:       r.characteristic("loss_ratio", p.GetLossRatio()),
		MTUBytes:        r.characteristic("mtu_bytes", p.GetMtuBytes()),
		BufferBytes:     r.characteristic("buffer_bytes", p.GetBufferBytes()),
	}
}

// LCI decodes link characteristics.
func (d Decoder) LCI(p *mihv1.Lci) (mihf.LCI, error) {
	r := d.reader()
	return r.lci(p), r.error()
}

func encodeCondition(c *mihf.SensorCondition) *mihv1.SensorCondition {
	if c == nil {
		return nil
	}
	return &mihv1.SensorCondition{Sensor: text(c.Sensor), Condition: shifted[mihv1.Condition](c.Condition), Text: text(c.Text)}
}

func (r *reader) condition(p *mihv1.SensorCondition) mihf.SensorCondition {
	return mihf.SensorCondition{
		Sensor: p.GetSensor(), Condition: enum[mihf.Condition](r, "condition", mihv1.Condition_name, p.GetCondition()), Text: p.GetText(),
	}
}

// reason reads why something went down; a reason that a newer broker added is unknown.
func (r *reader) reason(field string, p mihv1.DownReason) mihf.DownReason {
	if _, known := mihv1.DownReason_name[int32(p)]; !known {
		return mihf.DownUnknown
	}
	return enumOr[mihf.DownReason](r, field, mihv1.DownReason_name, p)
}
