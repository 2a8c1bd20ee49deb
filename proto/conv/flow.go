package conv

import (
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func encodeEndpoints(t *mihf.Endpoints) *mihv1.Endpoints {
	return &mihv1.Endpoints{Protocol: uint32(t.Protocol), Local: addrPort(t.Local), Remote: addrPort(t.Remote)}
}

func (r *reader) endpoints(p *mihv1.Endpoints) mihf.Endpoints {
	p = or(p)
	if p.GetProtocol() > 255 {
		r.fail("protocol", "%d is not an IP protocol number", p.GetProtocol())
	}
	return mihf.Endpoints{Protocol: mihf.Protocol(p.GetProtocol()), Local: r.addrPort("local", p.Local), Remote: r.addrPort("remote", p.Remote)}
}

func (r *reader) tuples(in []*mihv1.Endpoints) []mihf.Endpoints {
	if !r.items("tuples", len(in), mihf.MaxTuples) {
		return nil
	}
	return list(r, "tuples", in, r.endpoints)
}

func encodeHints(s mihf.HintSet) (out []mihv1.HintKind) {
	for k := mihf.HintFreeze; k <= mihf.HintCharacteristics; k++ {
		if s.Has(k) {
			out = append(out, mihv1.HintKind(k))
		}
	}
	return out
}

func (r *reader) hints(in []mihv1.HintKind) (s mihf.HintSet) {
	for _, k := range in {
		if _, ok := mihv1.HintKind_name[int32(k)]; !ok || k == 0 {
			r.fail("hints", "%d is not a kind of hint", k)
			return 0
		}
		s |= mihf.Hints(mihf.HintKind(k))
	}
	return s
}

// EncodeFlowSpec encodes a registration.
func EncodeFlowSpec(f *mihf.FlowSpec) *mihv1.FlowSpec {
	p := &mihv1.FlowSpec{
		Flow: text(f.ID), Group: text(f.Group), Tuples: each(f.Tuples, encodeEndpoints), Link: text(f.Link),
		Continuity: shifted[mihv1.Continuity](f.Continuity), Direction: shifted[mihv1.Direction](f.Direction),
		Rtt: span(f.RTT), LocalDrain: span(f.LocalDrain), Lead: span(f.Lead), CostMiss: span(f.CostMiss),
		CostNeedless: span(f.CostNeedless), Recovery: span(f.Recovery), LateFreeze: f.LateFreeze,
		MaxFreeze: span(f.MaxFreeze), Hints: encodeHints(f.Hints),
	}
	if uid, ok := f.Owner.Get(); ok {
		p.OwnerUid = &uid
	}
	return p
}

func (r *reader) flowSpec(p *mihv1.FlowSpec) mihf.FlowSpec {
	p = or(p)
	f := mihf.FlowSpec{
		ID: mihf.FlowID(r.id("flow", p.GetFlow())), Group: r.id("group", p.GetGroup()), Tuples: r.tuples(p.GetTuples()),
		Link:       r.link("link", p.GetLink()),
		Continuity: enumOr[mihf.Continuity](r, "continuity", mihv1.Continuity_name, p.GetContinuity()),
		Direction:  enumOr[mihf.Direction](r, "direction", mihv1.Direction_name, p.GetDirection()),
		RTT:        r.span("rtt", p.GetRtt()), LocalDrain: r.span("local_drain", p.GetLocalDrain()), Lead: r.span("lead", p.GetLead()),
		CostMiss: r.span("cost_miss", p.GetCostMiss()), CostNeedless: r.span("cost_needless", p.GetCostNeedless()),
		Recovery: r.span("recovery", p.GetRecovery()), LateFreeze: p.GetLateFreeze(),
		MaxFreeze: r.span("max_freeze", p.GetMaxFreeze()), Hints: r.hints(p.GetHints()),
	}
	if p.OwnerUid != nil {
		f.Owner = mihf.Some(p.GetOwnerUid())
	}
	return f
}

// DecodeFlowSpec decodes and checks a registration.
func DecodeFlowSpec(p *mihv1.FlowSpec) (mihf.FlowSpec, error) {
	r := &reader{path: "register."}
	return r.flowSpec(p), r.error()
}

// EncodeFlowUpdate encodes a transport's newer state.
func EncodeFlowUpdate(u *mihf.FlowUpdate) *mihv1.FlowUpdate {
	p := &mihv1.FlowUpdate{
		Flow: text(u.Flow), Rtt: optSpan(u.RTT), LocalDrain: optSpan(u.LocalDrain), Lead: optSpan(u.Lead),
		Tuples: each(u.Tuples, encodeEndpoints),
	}
	if l, ok := u.Link.Get(); ok {
		s := text(l)
		p.Link = &s
	}
	return p
}

// DecodeFlowUpdate decodes and checks a transport's newer state.
func DecodeFlowUpdate(p *mihv1.FlowUpdate) (mihf.FlowUpdate, error) {
	r := &reader{path: "update."}
	u := mihf.FlowUpdate{
		Flow: mihf.FlowID(r.flowID(p.GetFlow())), RTT: r.optSpan("rtt", p.GetRtt()), LocalDrain: r.optSpan("local_drain", p.GetLocalDrain()),
		Lead: r.optSpan("lead", p.GetLead()), Tuples: r.tuples(p.GetTuples()),
	}
	if p != nil && p.Link != nil {
		u.Link = mihf.Some(r.link("link", p.GetLink()))
	}
	return u, r.error()
}

// flowID reads the id of a flow that must be named.
func (r *reader) flowID(s string) string {
	if s == "" {
		r.fail("flow", "is absent")
	}
	return r.id("flow", s)
}

// DecodeUnregister decodes and checks the end of a registration.
func DecodeUnregister(p *mihv1.Unregister) (mihf.FlowID, error) {
	r := &reader{path: "unregister."}
	return mihf.FlowID(r.flowID(p.GetFlow())), r.error()
}

// EncodeAck encodes an acknowledgement.
func EncodeAck(a *mihf.Ack) *mihv1.Ack {
	return &mihv1.Ack{Flow: text(a.Flow), Epoch: a.Epoch, Result: shifted[mihv1.AckResult](a.Result), Held: span(a.Held)}
}

// DecodeAck decodes and checks an acknowledgement.
func DecodeAck(p *mihv1.Ack) (mihf.Ack, error) {
	r := &reader{path: "ack."}
	return mihf.Ack{
		Flow: mihf.FlowID(r.flowID(p.GetFlow())), Epoch: p.GetEpoch(),
		Result: enum[mihf.AckResult](r, "result", mihv1.AckResult_name, p.GetResult()), Held: r.span("held", p.GetHeld()),
	}, r.error()
}

// EncodeRegistration encodes the broker's answer.
func EncodeRegistration(g *mihf.Registration) *mihv1.Registration {
	return &mihv1.Registration{
		Flow: text(g.Flow), BootId: bootID(g.Boot), Link: text(g.Link), Lead: span(g.Lead), Lease: span(g.Lease),
		Hints: encodeHints(g.Hints), Frozen: g.Frozen,
	}
}

// DecodeRegistration decodes the broker's answer.
func DecodeRegistration(p *mihv1.Registration) (mihf.Registration, error) {
	r := &reader{path: "registered."}
	return mihf.Registration{
		Flow: mihf.FlowID(p.GetFlow()), Boot: r.boot(p.GetBootId()), Link: mihf.LinkID(p.GetLink()),
		Lead: r.span("lead", p.GetLead()), Lease: r.span("lease", p.GetLease()), Hints: r.hints(p.GetHints()), Frozen: p.GetFrozen(),
	}, r.error()
}

func (e Encoder) flowStatus(f *mihf.FlowStatus) *mihv1.FlowStatus {
	return &mihv1.FlowStatus{
		Spec: EncodeFlowSpec(&f.Spec), Link: text(f.Link), Lead: span(f.Lead), Frozen: f.Frozen, FrozenFor: e.age(f.FrozenSince),
		Epoch: f.Epoch, AcknowledgedEpoch: f.Acknowledged, LastAck: shifted[mihv1.AckResult](f.LastAck),
		Needless: span(f.Needless), BackoffLeft: e.until(f.BackoffUntil),
		Rtt: span(f.RTT), RttSource: shifted[mihv1.RttSource](f.RTTSource),
	}
}

func (r *reader) flowStatus(p *mihv1.FlowStatus) mihf.FlowStatus {
	f := mihf.FlowStatus{
		Link: mihf.LinkID(p.GetLink()), Lead: r.span("lead", p.GetLead()), Frozen: p.GetFrozen(), FrozenSince: r.ago("frozen_for", p.GetFrozenFor()),
		Epoch: p.GetEpoch(), Acknowledged: p.GetAcknowledgedEpoch(),
		LastAck:  enumOr[mihf.AckResult](r, "last_ack", mihv1.AckResult_name, p.GetLastAck()),
		Needless: r.long("needless", p.GetNeedless()), BackoffUntil: r.from("backoff_left", p.GetBackoffLeft()),
		RTT: r.span("rtt", p.GetRtt()), RTTSource: enumOr[mihf.RTTSource](r, "rtt_source", mihv1.RttSource_name, p.GetRttSource()),
	}
	failed := r.mark()
	f.Spec = r.flowSpec(p.GetSpec())
	r.in("spec", failed)
	return f
}
