package conv

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Hint encodes a hint.
func (e Encoder) Hint(h *mihf.Hint) *mihv1.Hint {
	var p *mihv1.Hint
	if h.Kind == mihf.HintFreeze {
		p = e.freezeHint(h)
	} else {
		p = &mihv1.Hint{Age: e.age(h.At)}
		e.hintKind(p, h)
	}
	p.Flow, p.Link, p.Epoch, p.Sequence = text(h.Flow), text(h.Link), h.Epoch, h.Sequence
	p.BootId, p.PredictionId = bootID(h.Boot), h.Prediction.String()
	return p
}

// hintKind sets the kind of p, other than a Freeze.
func (e Encoder) hintKind(p *mihv1.Hint, h *mihf.Hint) {
	switch h.Kind {
	case mihf.HintUnfreeze:
		p.Kind = &mihv1.Hint_Unfreeze{Unfreeze: &mihv1.Unfreeze{
			Cause: shifted[mihv1.UnfreezeCause](h.Unfreeze.Cause), Lci: e.LCI(h.Unfreeze.LCI), Recovery: h.Unfreeze.Recovery,
		}}
	case mihf.HintPrepare:
		p.Kind = &mihv1.Hint_Prepare{Prepare: &mihv1.Prepare{Target: text(h.Prepare.Target), Deadline: e.ahead(h.At, h.Prepare.Deadline)}}
	case mihf.HintSwitch:
		p.Kind = &mihv1.Hint_Switch{Switch: &mihv1.Switch{Target: text(h.Switch.Target), Lci: e.LCI(h.Switch.LCI)}}
	case mihf.HintAbandon:
		p.Kind = &mihv1.Hint_Abandon{Abandon: &mihv1.Abandon{Reason: shifted[mihv1.AbandonReason](h.Abandon)}}
	case mihf.HintCharacteristics:
		p.Kind = &mihv1.Hint_Characteristics{Characteristics: &mihv1.Characteristics{Lci: e.LCI(h.Characteristics)}}
	default: // a kind that the protocol does not have
	}
}

// freezeMessage has everything of the message of a Freeze in one place: this is the path
// that must be fast.
type freezeMessage struct {
	hint   mihv1.Hint
	kind   mihv1.Hint_Freeze
	freeze mihv1.Freeze

	age, lease, outage, p10, p50, p90 durationpb.Duration
}

func (e Encoder) freezeHint(h *mihf.Hint) *mihv1.Hint {
	m, f := new(freezeMessage), &h.Freeze
	m.hint.Kind, m.kind.Freeze = &m.kind, &m.freeze
	m.freeze.Reason = shifted[mihv1.FreezeReason](f.Reason)
	if f.Lease != 0 {
		m.freeze.Lease = set(&m.lease, f.Lease)
	}
	if f.ExpectedOutage != 0 {
		m.freeze.ExpectedOutage = set(&m.outage, f.ExpectedOutage)
	}
	age := time.Duration(0)
	if !h.At.IsZero() {
		age = e.Now.Sub(h.At)
		m.hint.Age = set(&m.age, age)
	}
	if f.P10 != 0 || f.P50 != 0 || f.P90 != 0 {
		m.freeze.TimeToLossP10, m.freeze.TimeToLossP50, m.freeze.TimeToLossP90 = set(&m.p10, f.P10-age), set(&m.p50, f.P50-age), set(&m.p90, f.P90-age)
	}
	return &m.hint
}

func set(p *durationpb.Duration, d time.Duration) *durationpb.Duration {
	p.Seconds, p.Nanos = int64(d/time.Second), int32(d%time.Second)
	return p
}

// Hint decodes a hint.
func (d Decoder) Hint(p *mihv1.Hint) (mihf.Hint, error) {
	r := d.reader()
	h := mihf.Hint{
		Sequence: p.GetSequence(), Boot: r.boot(p.GetBootId()), Flow: mihf.FlowID(p.GetFlow()), Link: mihf.LinkID(p.GetLink()),
		Epoch: p.GetEpoch(), Prediction: r.prediction("prediction_id", p.GetPredictionId()), At: r.ago("age", p.GetAge()),
	}
	switch k := p.GetKind().(type) {
	case *mihv1.Hint_Freeze:
		h.Kind = mihf.HintFreeze
		failed := r.mark()
		h.Freeze = r.freeze(h.At, k.Freeze)
		r.in("freeze", failed)
	case *mihv1.Hint_Unfreeze:
		h.Kind = mihf.HintUnfreeze
		failed := r.mark()
		h.Unfreeze = r.unfreeze(k.Unfreeze)
		r.in("unfreeze", failed)
	case *mihv1.Hint_Prepare:
		h.Kind = mihf.HintPrepare
		h.Prepare = mihf.Prepare{Target: mihf.LinkID(k.Prepare.GetTarget()), Deadline: r.ahead("prepare.deadline", h.At, k.Prepare.GetDeadline())}
	case *mihv1.Hint_Switch:
		h.Kind = mihf.HintSwitch
		h.Switch = mihf.Switch{Target: mihf.LinkID(k.Switch.GetTarget()), LCI: sub(r, "switch.lci", k.Switch.GetLci(), r.lci)}
	case *mihv1.Hint_Abandon:
		h.Kind = mihf.HintAbandon
		h.Abandon = enum[mihf.AbandonReason](r, "abandon.reason", mihv1.AbandonReason_name, k.Abandon.GetReason())
	case *mihv1.Hint_Characteristics:
		h.Kind = mihf.HintCharacteristics
		h.Characteristics = sub(r, "characteristics.lci", k.Characteristics.GetLci(), r.lci)
	default:
		r.fail("kind", "is absent or not known to this version")
	}
	return h, r.error()
}

func (r *reader) freeze(at mihf.Time, p *mihv1.Freeze) mihf.Freeze {
	return mihf.Freeze{
		Lease:          r.duration("lease", p.GetLease(), 0, maxSpan),
		P10:            r.ahead("time_to_loss_p10", at, p.GetTimeToLossP10()),
		P50:            r.ahead("time_to_loss_p50", at, p.GetTimeToLossP50()),
		P90:            r.ahead("time_to_loss_p90", at, p.GetTimeToLossP90()),
		ExpectedOutage: r.duration("expected_outage", p.GetExpectedOutage(), 0, maxAge),
		Reason:         enum[mihf.FreezeReason](r, "reason", mihv1.FreezeReason_name, p.GetReason()),
	}
}

func (r *reader) unfreeze(p *mihv1.Unfreeze) mihf.Unfreeze {
	return mihf.Unfreeze{
		Cause:    enum[mihf.UnfreezeCause](r, "cause", mihv1.UnfreezeCause_name, p.GetCause()),
		Recovery: p.GetRecovery(), LCI: sub(r, "lci", p.GetLci(), r.lci),
	}
}
