package conv

import (
	"math"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// EncodeSubscribe encodes a subscription.
func EncodeSubscribe(q *mihf.SubscribeRequest) *mihv1.SubscribeRequest {
	p := &mihv1.SubscribeRequest{AfterSequence: q.After, BootId: bootID(q.Boot), Hints: q.Hints, Present: q.Present, HintsOnly: q.HintsOnly}
	for _, l := range q.Links {
		p.Links = append(p.Links, text(l))
	}
	p.Kinds = encodeKinds(q.Kinds)
	return p
}

func encodeKinds(s mihf.KindSet) []mihv1.EventKind {
	var out []mihv1.EventKind
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		if s.Has(k) {
			out = append(out, mihv1.EventKind(k))
		}
	}
	return out
}

func (r *reader) kinds(list []mihv1.EventKind) (s mihf.KindSet) {
	for _, k := range list {
		if _, ok := mihv1.EventKind_name[int32(k)]; !ok || k == 0 {
			r.fail("kinds", "%d is not a kind of event", k)
			break
		}
		s |= mihf.Kinds(mihf.Kind(k))
	}
	return s
}

// knownKinds is kinds of an answer: one that a newer broker added is passed over.
func knownKinds(list []mihv1.EventKind) (s mihf.KindSet) {
	for _, k := range list {
		if _, known := mihv1.EventKind_name[int32(k)]; known && k != 0 {
			s |= mihf.Kinds(mihf.Kind(k))
		}
	}
	return s
}

// DecodeSubscribe decodes and checks a subscription.
func DecodeSubscribe(p *mihv1.SubscribeRequest) (mihf.SubscribeRequest, error) {
	r := &reader{}
	q := mihf.SubscribeRequest{After: p.GetAfterSequence(), Boot: r.boot(p.GetBootId()), Hints: p.GetHints(), Present: p.GetPresent(), HintsOnly: p.GetHintsOnly()}
	if r.items("links", len(p.GetLinks()), maxItems) {
		for _, s := range p.GetLinks() {
			if s == "" {
				r.fail("links", "an empty link id")
			}
			q.Links = append(q.Links, r.link("links", s))
		}
	}
	q.Kinds = r.kinds(p.GetKinds())
	return q, r.error()
}

// DecodeLink decodes and checks the link that a command is about.
func DecodeLink(s string) (mihf.LinkID, error) {
	r := &reader{}
	if s == "" {
		r.fail("link", "is absent")
	}
	return r.link("link", s), r.error()
}

// DecodePredictionID decodes and checks the id of a prediction.
func DecodePredictionID(s string) (mihf.PredictionID, error) {
	r := &reader{}
	if s == "" {
		r.fail("prediction_id", "is absent")
	}
	return r.prediction("prediction_id", s), r.error()
}

// EncodeThresholds encodes the items of Link_Configure_Thresholds. A number that is not
// finite is sent as it is, so that the broker can refuse it.
func EncodeThresholds(items []mihf.ThresholdConfig) []*mihv1.ThresholdConfig {
	return each(items, func(c *mihf.ThresholdConfig) *mihv1.ThresholdConfig {
		p := &mihv1.ThresholdConfig{
			Parameter: shifted[mihv1.Parameter](c.Parameter), Action: shifted[mihv1.ThresholdAction](c.Action),
			Hysteresis: c.Hysteresis, Period: span(c.Period),
		}
		if t, ok := c.Threshold.Get(); ok {
			p.Threshold = &mihv1.Threshold{Value: t.Value, Direction: shifted[mihv1.ThresholdDirection](t.Direction)}
		}
		return p
	})
}

// DecodeThresholds decodes and checks the items of Link_Configure_Thresholds.
func DecodeThresholds(in []*mihv1.ThresholdConfig) ([]mihf.ThresholdConfig, error) {
	r := &reader{}
	if !r.items("items", len(in), maxItems) {
		return nil, r.error()
	}
	return list(r, "items", in, r.thresholdConfig), r.error()
}

func (r *reader) thresholdConfig(p *mihv1.ThresholdConfig) mihf.ThresholdConfig {
	c := mihf.ThresholdConfig{
		Parameter:  r.parameter(p.GetParameter()),
		Action:     enumOr[mihf.ThresholdAction](r, "action", mihv1.ThresholdAction_name, p.GetAction()),
		Threshold:  r.threshold(p.GetThreshold()),
		Hysteresis: r.finite("hysteresis", p.GetHysteresis()),
		Period:     r.span("period", p.GetPeriod()),
	}
	if t, ok := c.Threshold.Get(); ok {
		if err := c.Parameter.Check(t.Value); err != nil {
			r.fail("threshold.value", "%v", err)
		}
	}
	if c.Hysteresis < 0 || c.Hysteresis > math.MaxFloat32 {
		r.fail("hysteresis", "%v is out of range", c.Hysteresis)
	}
	if c.Period != 0 && c.Period < mihf.MinReportPeriod {
		r.fail("period", "%v is shorter than %v", c.Period, mihf.MinReportPeriod)
	}
	return c
}
