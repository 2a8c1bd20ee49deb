package conv

import (
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Observation encodes an observation.
func (e Encoder) Observation(o *mihf.Observation) *mihv1.Observation {
	p := &mihv1.Observation{Age: e.age(o.At), SensorAge: span(o.Age), Sensor: text(o.Sensor), Link: text(o.Link)}
	switch o.Kind {
	case mihf.ObsLink:
		p.Kind = &mihv1.Observation_Facts{Facts: encodeFacts(or(o.Facts))}
	case mihf.ObsLinkGone:
		p.Kind = &mihv1.Observation_Gone{Gone: &mihv1.LinkRemoved{Reason: shifted[mihv1.DownReason](o.Gone)}}
	case mihf.ObsRadio:
		p.Kind = &mihv1.Observation_Radio{Radio: &mihv1.Radio{Values: values(&o.Values), Poa: e.poa(o.PoA)}}
	case mihf.ObsAssociation:
		p.Kind = &mihv1.Observation_Association{Association: e.association(or(o.Association))}
	case mihf.ObsDetected:
		p.Kind = &mihv1.Observation_Detected{Detected: e.detected(or(o.Detected))}
	case mihf.ObsScan:
		p.Kind = &mihv1.Observation_Scan{Scan: &mihv1.Scan{Scanning: o.Scanning}}
	case mihf.ObsHandover:
		p.Kind = &mihv1.Observation_Handover{Handover: &mihv1.HandoverOrder{Poa: e.poa(o.PoA)}}
	case mihf.ObsEgress:
		p.Kind = &mihv1.Observation_Egress{Egress: encodeEgress(or(o.Egress))}
	case mihf.ObsPeer:
		p.Kind = &mihv1.Observation_Peer{Peer: encodePeer(or(o.Peer))}
	case mihf.ObsFlow:
		p.Kind = &mihv1.Observation_Flow{Flow: encodeFlowReading(or(o.Flow))}
	case mihf.ObsCondition:
		p.Kind = &mihv1.Observation_Condition{Condition: encodeCondition(or(o.Condition))}
	case mihf.ObsResync:
		p.Kind = &mihv1.Observation_Resync{Resync: &mihv1.Resync{Lost: o.Lost}}
	case mihf.ObsResume:
		p.Kind = &mihv1.Observation_Resume{Resume: &mihv1.ResumedFromSuspend{Suspended: span(o.Gap)}}
	case mihf.ObsTruth:
		t := or(o.Truth)
		p.Kind = &mihv1.Observation_Truth{Truth: &mihv1.Truth{Kind: text(t.Kind), Until: e.until(t.Until)}}
	}
	return p
}

func (e Encoder) association(a *mihf.Association) *mihv1.Association {
	return &mihv1.Association{
		State: shifted[mihv1.AssociationState](a.State), Poa: e.poa(a.PoA), Ssid: a.SSID,
		Cause: shifted[mihv1.DownReason](a.Cause), Code: a.Code, Local: a.Local, Technology: text(a.Technology),
	}
}

func encodePeer(r *mihf.PeerRoute) *mihv1.PeerRoute {
	p := &mihv1.PeerRoute{Link: text(r.Link), Source: addr(r.Source), Gateway: addr(r.Gateway)}
	if s := addr(r.Peer); s != nil {
		p.Peer = *s
	}
	return p
}

// Observation decodes an observation.
func (d Decoder) Observation(p *mihv1.Observation) (mihf.Observation, error) {
	r := d.reader()
	o := mihf.Observation{
		At: r.ago("age", p.GetAge()), Age: r.long("sensor_age", p.GetSensorAge()), Sensor: p.GetSensor(), Link: mihf.LinkID(p.GetLink()),
	}
	r.observationKind(&o, p)
	return o, r.error()
}

func (r *reader) observationKind(o *mihf.Observation, p *mihv1.Observation) {
	switch k := p.GetKind().(type) {
	case *mihv1.Observation_Facts:
		o.Kind, o.Facts = mihf.ObsLink, sub(r, "facts", k.Facts, r.facts)
	case *mihv1.Observation_Gone:
		o.Kind, o.Gone = mihf.ObsLinkGone, r.reason("gone.reason", k.Gone.GetReason())
	case *mihv1.Observation_Radio:
		o.Kind, o.Values, o.PoA = mihf.ObsRadio, r.values("radio.values", k.Radio.GetValues()), mihf.PoA(k.Radio.GetPoa())
	case *mihv1.Observation_Association:
		o.Kind, o.Association = mihf.ObsAssociation, sub(r, "association", k.Association, r.association)
	case *mihv1.Observation_Detected:
		o.Kind, o.Detected = mihf.ObsDetected, sub(r, "detected", k.Detected, r.detected)
	case *mihv1.Observation_Scan:
		o.Kind, o.Scanning = mihf.ObsScan, k.Scan.GetScanning()
	case *mihv1.Observation_Handover:
		o.Kind, o.PoA = mihf.ObsHandover, mihf.PoA(k.Handover.GetPoa())
	case *mihv1.Observation_Egress:
		o.Kind, o.Egress = mihf.ObsEgress, sub(r, "egress", k.Egress, r.egress)
	case *mihv1.Observation_Peer:
		o.Kind, o.Peer = mihf.ObsPeer, sub(r, "peer", k.Peer, r.peer)
	case *mihv1.Observation_Flow:
		o.Kind, o.Flow = mihf.ObsFlow, sub(r, "flow", k.Flow, r.flowReading)
	case *mihv1.Observation_Condition:
		o.Kind, o.Condition = mihf.ObsCondition, sub(r, "condition", k.Condition, r.condition)
	case *mihv1.Observation_Resync:
		o.Kind, o.Lost = mihf.ObsResync, k.Resync.GetLost()
	case *mihv1.Observation_Resume:
		o.Kind, o.Gap = mihf.ObsResume, r.long("resume.suspended", k.Resume.GetSuspended())
	case *mihv1.Observation_Truth:
		o.Kind, o.Truth = mihf.ObsTruth, &mihf.Truth{Kind: k.Truth.GetKind(), Until: r.from("truth.until", k.Truth.GetUntil())}
	default:
		r.fail("kind", "is absent or not known to this version")
	}
}

func (r *reader) association(p *mihv1.Association) mihf.Association {
	return mihf.Association{
		State: enum[mihf.AssociationState](r, "state", mihv1.AssociationState_name, p.GetState()), PoA: mihf.PoA(p.GetPoa()), SSID: p.Ssid,
		Cause: r.reason("cause", p.GetCause()), Code: p.GetCode(), Local: p.GetLocal(), Technology: p.GetTechnology(),
	}
}

func (r *reader) peer(p *mihv1.PeerRoute) mihf.PeerRoute {
	out := mihf.PeerRoute{Link: mihf.LinkID(p.GetLink()), Source: r.addr("source", p.Source), Gateway: r.addr("gateway", p.Gateway)}
	if p.GetPeer() != "" {
		out.Peer = r.addr("peer", &p.Peer)
	}
	return out
}
