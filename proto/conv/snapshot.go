package conv

import (
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// LinkStatus encodes the state of a link.
func (e Encoder) LinkStatus(l *mihf.LinkStatus) *mihv1.LinkStatus {
	p := &mihv1.LinkStatus{
		Link: text(l.Link), Facts: encodeFacts(l.Facts), Up: l.Up, StateAge: e.age(l.Since), Poa: e.poa(l.PoA), Ssid: l.SSID,
		Association: shifted[mihv1.AssociationState](l.Association), UsableIpv4: l.UsableIPv4, UsableIpv6: l.UsableIPv6,
		Values: values(&l.Values), ValuesAge: e.age(l.ValuesAt), Forecast: e.Forecast(l.Forecast), Lci: e.LCI(l.LCI), HoldDown: l.HoldDown,
		Technology: text(l.Technology),
	}
	if open, ok := l.Prediction.Get(); ok {
		p.Prediction = e.prediction(&open)
	}
	return p
}

func (r *reader) linkStatus(p *mihv1.LinkStatus) mihf.LinkStatus {
	p = or(p)
	l := mihf.LinkStatus{
		Link: mihf.LinkID(p.GetLink()), Facts: sub(r, "facts", p.GetFacts(), r.facts), Up: p.GetUp(), Since: r.ago("state_age", p.GetStateAge()),
		PoA: mihf.PoA(p.GetPoa()), SSID: p.Ssid,
		Association: enumOr[mihf.AssociationState](r, "association", mihv1.AssociationState_name, p.GetAssociation()),
		UsableIPv4:  p.GetUsableIpv4(), UsableIPv6: p.GetUsableIpv6(),
		Values: r.values("values", p.GetValues()), ValuesAt: r.ago("values_age", p.GetValuesAge()),
		Forecast: sub(r, "forecast", p.GetForecast(), r.forecast), LCI: sub(r, "lci", p.GetLci(), r.lci), HoldDown: p.GetHoldDown(),
		Technology: p.GetTechnology(),
	}
	if open := p.GetPrediction(); open != nil {
		failed := r.mark()
		l.Prediction = mihf.Some(r.open(open))
		r.in("prediction", failed)
	}
	return l
}

// LinkStatus decodes the state of a link.
func (d Decoder) LinkStatus(p *mihv1.LinkStatus) (mihf.LinkStatus, error) {
	r := d.reader()
	return r.linkStatus(p), r.error()
}

// Snapshot encodes a snapshot.
func (e Encoder) Snapshot(s *mihf.Snapshot) *mihv1.Snapshot {
	return &mihv1.Snapshot{
		Sequence: s.Sequence, BootId: bootID(s.Boot), Node: text(s.Node), Age: e.age(s.At), WallTime: e.wall(s.At),
		Links: each(s.Links, e.LinkStatus), Flows: each(s.Flows, e.flowStatus),
		Sensors: each(s.Sensors, encodeCondition), Egress: each(s.Egress, encodeEgress),
		Kinds: encodeKinds(s.Kinds),
	}
}

// Snapshot decodes a snapshot.
func (d Decoder) Snapshot(p *mihv1.Snapshot) (*mihf.Snapshot, error) {
	r := d.reader()
	s := &mihf.Snapshot{
		Sequence: p.GetSequence(), Boot: r.boot(p.GetBootId()), Node: mihf.NodeID(p.GetNode()), At: r.ago("age", p.GetAge()),
		Links: list(r, "links", p.GetLinks(), r.linkStatus), Flows: list(r, "flows", p.GetFlows(), r.flowStatus),
		Sensors: list(r, "sensors", p.GetSensors(), r.condition), Egress: list(r, "egress", p.GetEgress(), r.egress),
		Kinds: knownKinds(p.GetKinds()),
	}
	return s, r.error()
}

// EncodeGap encodes a gap.
func EncodeGap(g *mihf.Gap) *mihv1.Gap {
	return &mihv1.Gap{FromSequence: g.From, ToSequence: g.To, Reason: text(g.Reason)}
}

// DecodeGap decodes a gap.
func DecodeGap(p *mihv1.Gap) mihf.Gap {
	return mihf.Gap{From: p.GetFromSequence(), To: p.GetToSequence(), Reason: p.GetReason()}
}
