package conv

import (
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Event decodes an event. One of a kind that this version does not know is an error,
// and the sequence is set all the same.
func (d Decoder) Event(p *mihv1.Event) (mihf.Event, error) {
	r := d.reader()
	ev := mihf.Event{
		Sequence: p.GetSequence(), Boot: r.boot(p.GetBootId()), Link: mihf.LinkID(p.GetLink()), At: r.ago("age", p.GetAge()),
	}
	if p.GetPrediction() != nil {
		failed := r.mark()
		ev.Prediction = r.open(p.GetPrediction())
		r.in("prediction", failed)
	}
	r.eventKind(&ev, p)
	return ev, r.error()
}

// eventKind sets the kind of ev and what belongs to it.
func (r *reader) eventKind(ev *mihf.Event, p *mihv1.Event) {
	switch k := p.GetKind().(type) {
	case *mihv1.Event_LinkDetected:
		ev.Kind, ev.Detected = mihf.LinkDetected, sub(r, "link_detected", k.LinkDetected, r.detected)
	case *mihv1.Event_LinkUp:
		ev.Kind, ev.Up = mihf.LinkUp, sub(r, "link_up", k.LinkUp, r.up)
	case *mihv1.Event_LinkDown:
		ev.Kind, ev.Down = mihf.LinkDown, *or(sub(r, "link_down", k.LinkDown, r.down))
	case *mihv1.Event_LinkParametersReport:
		ev.Kind, ev.Report = mihf.LinkParametersReport, *or(sub(r, "link_parameters_report", k.LinkParametersReport, r.report))
	case *mihv1.Event_LinkGoingDown:
		ev.Kind = mihf.LinkGoingDown
		failed := r.mark()
		ev.Prediction = r.announced(ev.At, k.LinkGoingDown)
		r.in("link_going_down", failed)
	case *mihv1.Event_LinkEventRollback:
		ev.Kind = mihf.LinkEventRollback
	case *mihv1.Event_PredictionExpired:
		ev.Kind = mihf.PredictionExpired
	case *mihv1.Event_LinkHandoverImminent:
		ev.Kind, ev.Handover = mihf.LinkHandoverImminent, sub(r, "link_handover_imminent", k.LinkHandoverImminent, r.handover)
	case *mihv1.Event_LinkHandoverComplete:
		ev.Kind, ev.Handover = mihf.LinkHandoverComplete, sub(r, "link_handover_complete", k.LinkHandoverComplete, r.handover)
	case *mihv1.Event_PathUsable:
		ev.Kind, ev.Path = mihf.PathUsable, sub(r, "path_usable", k.PathUsable, r.pathOf)
	case *mihv1.Event_PathLost:
		ev.Kind, ev.Path = mihf.PathLost, sub(r, "path_lost", k.PathLost, r.pathOf)
	default:
		r.ownKind(ev, p)
	}
}

// ownKind sets the kinds that 802.21 does not have.
func (r *reader) ownKind(ev *mihf.Event, p *mihv1.Event) {
	switch k := p.GetKind().(type) {
	case *mihv1.Event_DefaultRouteChanged:
		ev.Kind, ev.Egress = mihf.DefaultRouteChanged, sub(r, "default_route_changed", k.DefaultRouteChanged, r.egressChange)
	case *mihv1.Event_AddressChanged:
		ev.Kind, ev.Address = mihf.AddressChanged, sub(r, "address_changed", k.AddressChanged, r.addressChange)
	case *mihv1.Event_LinkRenamed:
		ev.Kind, ev.Rename = mihf.LinkRenamed, &mihf.Rename{Old: string(k.LinkRenamed.GetOldName()), New: string(k.LinkRenamed.GetNewName())}
	case *mihv1.Event_LinkRemoved:
		ev.Kind, ev.Removed = mihf.LinkRemoved, r.reason("link_removed.reason", k.LinkRemoved.GetReason())
	case *mihv1.Event_SensorCondition:
		ev.Kind, ev.Condition = mihf.SensorConditionChanged, sub(r, "sensor_condition", k.SensorCondition, r.condition)
	case *mihv1.Event_ResumedFromSuspend:
		ev.Kind, ev.Gap = mihf.ResumedFromSuspend, r.long("resumed_from_suspend.suspended", k.ResumedFromSuspend.GetSuspended())
	case *mihv1.Event_Resync:
		ev.Kind, ev.Resync = mihf.Resync, &mihf.ResyncInfo{Sensor: k.Resync.GetSensor(), Lost: k.Resync.GetLost(), Reason: k.Resync.GetReason()}
	case *mihv1.Event_ShareReport:
		ev.Kind = mihf.ShareReport
		ev.ShareReport = &mihf.ShareReportPayload{Flow: mihf.FlowID(k.ShareReport.GetFlow()), LimitBPS: r.finite("share_report.limit_bps", k.ShareReport.GetLimitBps())}
	default:
		r.fail("kind", "is absent or not known to this version")
	}
}

func (r *reader) detected(p *mihv1.LinkDetected) mihf.Detected {
	p = or(p)
	return mihf.Detected{PoA: mihf.PoA(p.GetPoa()), SSID: p.Ssid, Values: r.values("values", p.GetValues())}
}

func (r *reader) up(p *mihv1.LinkUp) mihf.Up {
	return mihf.Up{PoA: mihf.PoA(p.GetPoa()), SSID: p.Ssid, Facts: sub(r, "facts", p.GetFacts(), r.facts), LCI: sub(r, "lci", p.GetLci(), r.lci)}
}

func (r *reader) down(p *mihv1.LinkDown) mihf.Down {
	return mihf.Down{Reason: r.reason("reason", p.GetReason()), Code: p.GetCode(), PoA: mihf.PoA(p.GetPoa()), Withheld: r.long("withheld", p.GetWithheld())}
}

func (r *reader) threshold(p *mihv1.Threshold) mihf.Opt[mihf.Threshold] {
	if p == nil {
		return mihf.Opt[mihf.Threshold]{}
	}
	return mihf.Some(mihf.Threshold{
		Value:     r.finite("threshold.value", p.GetValue()),
		Direction: enum[mihf.ThresholdDirection](r, "threshold.direction", mihv1.ThresholdDirection_name, p.GetDirection()),
	})
}

func (r *reader) report(p *mihv1.LinkParametersReport) mihf.Report {
	out := mihf.Report{
		Parameter: r.parameter(p.GetParameter()), Value: r.number("value", p.Value),
		Threshold: r.threshold(p.GetThreshold()), Periodic: p.GetPeriodic(),
	}
	if p.Value == nil {
		r.fail("value", "is absent")
	}
	if p.Previous != nil {
		out.Previous = mihf.Some(r.number("previous", p.Previous))
	}
	return out
}

func (r *reader) handover(p *mihv1.LinkHandover) mihf.Handover {
	return mihf.Handover{
		OldLink: mihf.LinkID(p.GetOldLink()), NewLink: mihf.LinkID(p.GetNewLink()), OldPoA: mihf.PoA(p.GetOldPoa()), NewPoA: mihf.PoA(p.GetNewPoa()),
		NetworkOrdered: p.GetNetworkOrdered(), DataGap: r.optLong("data_gap", p.GetDataGap()),
	}
}

func (r *reader) pathOf(p *mihv1.Path) mihf.Path {
	return mihf.Path{
		IPv6: p.GetIpv6(), Source: r.addr("source", p.Source), Gateway: r.addr("gateway", p.Gateway),
		Reason: r.reason("reason", p.GetReason()), LCI: sub(r, "lci", p.GetLci(), r.lci),
	}
}

func (r *reader) egressChange(p *mihv1.DefaultRouteChanged) mihf.EgressChange {
	return mihf.EgressChange{Old: *or(sub(r, "old", p.GetOld(), r.egress)), New: *or(sub(r, "new", p.GetNew(), r.egress))}
}

func (r *reader) addressChange(p *mihv1.AddressChanged) mihf.AddressChange {
	return mihf.AddressChange{Old: *or(sub(r, "old", p.GetOld(), r.address)), New: *or(sub(r, "new", p.GetNew(), r.address)), Minor: p.GetMinor()}
}
