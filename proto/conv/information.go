package conv

import (
	"slices"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// EncodeInformationRequest encodes a question for points of attachment.
func EncodeInformationRequest(q *mihf.InformationRequest) *mihv1.GetInformationRequest {
	p := &mihv1.GetInformationRequest{Ssids: q.SSIDs}
	for _, l := range q.Links {
		p.Links = append(p.Links, text(l))
	}
	for _, a := range q.PoAs {
		p.Poas = append(p.Poas, text(a))
	}
	return p
}

// DecodeInformationRequest decodes and checks a question for points of attachment.
func DecodeInformationRequest(p *mihv1.GetInformationRequest) (mihf.InformationRequest, error) {
	q := mihf.InformationRequest{SSIDs: p.GetSsids()}
	for _, l := range p.GetLinks() {
		q.Links = append(q.Links, mihf.LinkID(l))
	}
	for _, a := range p.GetPoas() {
		q.PoAs = append(q.PoAs, mihf.PoA(a))
	}
	return q, q.Check()
}

// Information encodes an answer about points of attachment.
func (e Encoder) Information(i *mihf.Information) *mihv1.GetInformationResponse {
	return &mihv1.GetInformationResponse{Age: e.age(i.At), Poas: each(i.PoAs, e.PoAInformation), Forgotten: i.Forgotten}
}

// PoAInformation encodes what is known of one point of attachment.
func (e Encoder) PoAInformation(a *mihf.PoAInformation) *mihv1.PoaInformation {
	return &mihv1.PoaInformation{
		Poa: e.poa(a.PoA), Link: text(a.Link), Ssid: a.SSID, Readings: each(a.Readings, e.reading),
		FirstHeardAge: e.age(a.FirstHeard), LastHeardAge: e.age(a.LastHeard), Attached: a.Attached, Attachments: a.Attachments, Lci: e.LCI(a.LCI),
	}
}

func (e Encoder) reading(r *mihf.Reading) *mihv1.Reading {
	return &mihv1.Reading{Parameter: shifted[mihv1.Parameter](r.Parameter), Value: r.Value, Age: e.age(r.At)}
}

// Information decodes an answer about points of attachment.
func (d Decoder) Information(p *mihv1.GetInformationResponse) (*mihf.Information, error) {
	r := d.reader()
	return &mihf.Information{
		At: r.ago("age", p.GetAge()), PoAs: list(r, "poas", p.GetPoas(), r.poaInformation), Forgotten: p.GetForgotten(),
	}, r.error()
}

func (r *reader) poaInformation(p *mihv1.PoaInformation) mihf.PoAInformation {
	p = or(p)
	return mihf.PoAInformation{
		PoA: mihf.PoA(p.GetPoa()), Link: mihf.LinkID(p.GetLink()), SSID: p.Ssid, Readings: r.readings(p.GetReadings()),
		FirstHeard: r.ago("first_heard_age", p.GetFirstHeardAge()), LastHeard: r.ago("last_heard_age", p.GetLastHeardAge()),
		Attached: p.GetAttached(), Attachments: p.GetAttachments(), LCI: sub(r, "lci", p.GetLci(), r.lci),
	}
}

// readings passes over parameters that a newer broker added.
func (r *reader) readings(in []*mihv1.Reading) (out []mihf.Reading) {
	known := slices.DeleteFunc(slices.Clone(in), func(p *mihv1.Reading) bool {
		_, ok := mihv1.Parameter_name[int32(p.GetParameter())]
		return !ok
	})
	return list(r, "readings", known, r.reading)
}

func (r *reader) reading(p *mihv1.Reading) mihf.Reading {
	x := mihf.Reading{Parameter: r.parameter(p.GetParameter()), Value: p.GetValue(), At: r.ago("age", p.GetAge())}
	if err := x.Parameter.Check(x.Value); err != nil {
		r.fail("value", "%v", err)
	}
	return x
}
