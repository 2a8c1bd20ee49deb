package conv

import (
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Event encodes an event.
func (e Encoder) Event(ev *mihf.Event) *mihv1.Event {
	p := &mihv1.Event{
		Sequence: ev.Sequence, BootId: bootID(ev.Boot), Node: text(e.Node), Link: text(ev.Link),
		Age: e.age(ev.At), WallTime: e.wall(ev.At),
	}
	if ev.Kind != mihf.LinkGoingDown {
		p.Prediction = e.prediction(&ev.Prediction)
	}
	e.eventKind(p, ev)
	return p
}

// eventKind sets the kind of p.
func (e Encoder) eventKind(p *mihv1.Event, ev *mihf.Event) {
	switch ev.Kind {
	case mihf.LinkDetected:
		p.Kind = &mihv1.Event_LinkDetected{LinkDetected: e.detected(or(ev.Detected))}
	case mihf.LinkUp:
		u := or(ev.Up)
		p.Kind = &mihv1.Event_LinkUp{LinkUp: &mihv1.LinkUp{Poa: e.poa(u.PoA), Ssid: u.SSID, Facts: encodeFacts(u.Facts), Lci: e.LCI(u.LCI)}}
	case mihf.LinkDown:
		p.Kind = &mihv1.Event_LinkDown{LinkDown: &mihv1.LinkDown{
			Reason: shifted[mihv1.DownReason](ev.Down.Reason), Code: ev.Down.Code, Poa: e.poa(ev.Down.PoA),
			Withheld: span(ev.Down.Withheld), PredictionId: ev.Prediction.ID.String(),
		}}
	case mihf.LinkParametersReport:
		p.Kind = &mihv1.Event_LinkParametersReport{LinkParametersReport: encodeReport(&ev.Report)}
	case mihf.LinkGoingDown:
		p.Kind = &mihv1.Event_LinkGoingDown{LinkGoingDown: e.goingDown(ev)}
	case mihf.LinkEventRollback:
		p.Kind = &mihv1.Event_LinkEventRollback{LinkEventRollback: &mihv1.LinkEventRollback{PredictionId: ev.Prediction.ID.String()}}
	case mihf.PredictionExpired:
		p.Kind = &mihv1.Event_PredictionExpired{PredictionExpired: &mihv1.PredictionExpired{PredictionId: ev.Prediction.ID.String()}}
	case mihf.LinkHandoverImminent:
		p.Kind = &mihv1.Event_LinkHandoverImminent{LinkHandoverImminent: e.handover(ev)}
	case mihf.LinkHandoverComplete:
		p.Kind = &mihv1.Event_LinkHandoverComplete{LinkHandoverComplete: e.handover(ev)}
	case mihf.PathUsable:
		p.Kind = &mihv1.Event_PathUsable{PathUsable: e.path(or(ev.Path))}
	case mihf.PathLost:
		p.Kind = &mihv1.Event_PathLost{PathLost: e.path(or(ev.Path))}
	default:
		e.ownKind(p, ev)
	}
}

// ownKind sets the kinds that 802.21 does not have.
func (e Encoder) ownKind(p *mihv1.Event, ev *mihf.Event) {
	switch ev.Kind {
	case mihf.DefaultRouteChanged:
		c := or(ev.Egress)
		p.Kind = &mihv1.Event_DefaultRouteChanged{DefaultRouteChanged: &mihv1.DefaultRouteChanged{Old: encodeEgress(&c.Old), New: encodeEgress(&c.New)}}
	case mihf.AddressChanged:
		c := or(ev.Address)
		p.Kind = &mihv1.Event_AddressChanged{AddressChanged: &mihv1.AddressChanged{Old: optAddress(&c.Old), New: optAddress(&c.New), Minor: c.Minor}}
	case mihf.LinkRenamed:
		c := or(ev.Rename)
		p.Kind = &mihv1.Event_LinkRenamed{LinkRenamed: &mihv1.LinkRenamed{OldName: []byte(c.Old), NewName: []byte(c.New)}}
	case mihf.LinkRemoved:
		p.Kind = &mihv1.Event_LinkRemoved{LinkRemoved: &mihv1.LinkRemoved{Reason: shifted[mihv1.DownReason](ev.Removed)}}
	case mihf.SensorConditionChanged:
		p.Kind = &mihv1.Event_SensorCondition{SensorCondition: encodeCondition(or(ev.Condition))}
	case mihf.ResumedFromSuspend:
		p.Kind = &mihv1.Event_ResumedFromSuspend{ResumedFromSuspend: &mihv1.ResumedFromSuspend{Suspended: span(ev.Gap)}}
	case mihf.Resync:
		c := or(ev.Resync)
		p.Kind = &mihv1.Event_Resync{Resync: &mihv1.Resync{Sensor: text(c.Sensor), Lost: c.Lost, Reason: text(c.Reason)}}
	case mihf.ShareReport:
		c := or(ev.ShareReport)
		p.Kind = &mihv1.Event_ShareReport{ShareReport: &mihv1.ShareReport{Flow: text(c.Flow), LimitBps: number(c.LimitBPS)}}
	default: // a kind that the protocol does not have
	}
}

// or returns p, or an empty value for none: an event without its payload is still sent.
func or[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

func (e Encoder) detected(d *mihf.Detected) *mihv1.LinkDetected {
	return &mihv1.LinkDetected{Poa: e.poa(d.PoA), Ssid: d.SSID, Values: values(&d.Values)}
}

func encodeThreshold(o mihf.Opt[mihf.Threshold]) *mihv1.Threshold {
	t, ok := o.Get()
	if !ok || !finite(t.Value) {
		return nil
	}
	return &mihv1.Threshold{Value: t.Value, Direction: shifted[mihv1.ThresholdDirection](t.Direction)}
}

func encodeReport(r *mihf.Report) *mihv1.LinkParametersReport {
	p := &mihv1.LinkParametersReport{
		Parameter: shifted[mihv1.Parameter](r.Parameter), Value: number(r.Value), Threshold: encodeThreshold(r.Threshold), Periodic: r.Periodic,
	}
	if v, ok := r.Previous.Get(); ok {
		p.Previous = number(v)
	}
	return p
}

func (e Encoder) goingDown(ev *mihf.Event) *mihv1.LinkGoingDown {
	p := &ev.Prediction
	return &mihv1.LinkGoingDown{
		PredictionId: p.ID.String(), Revision: p.Revision, Cause: shifted[mihv1.Cause](p.Cause),
		TimeToLossP10: e.ahead(ev.At, p.P10), TimeToLossP50: e.ahead(ev.At, p.P50), TimeToLossP90: e.ahead(ev.At, p.P90),
		Confidence: number(p.Confidence), Reason: encodeTrend(&p.Trend), ReasonText: ReasonText(p),
		ExpiresIn: e.until(p.ExpiresAt), OpenFor: e.age(p.OpenedAt),
	}
}

func (e Encoder) handover(ev *mihf.Event) *mihv1.LinkHandover {
	h := or(ev.Handover)
	return &mihv1.LinkHandover{
		OldLink: text(h.OldLink), NewLink: text(h.NewLink), OldPoa: e.poa(h.OldPoA), NewPoa: e.poa(h.NewPoA),
		NetworkOrdered: h.NetworkOrdered, DataGap: optSpan(h.DataGap), PredictionId: ev.Prediction.ID.String(),
	}
}

func (e Encoder) path(p *mihf.Path) *mihv1.Path {
	return &mihv1.Path{
		Ipv6: p.IPv6, Source: addr(p.Source), Gateway: addr(p.Gateway),
		Reason: shifted[mihv1.DownReason](p.Reason), Lci: e.LCI(p.LCI),
	}
}
