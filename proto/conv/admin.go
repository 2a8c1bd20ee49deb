package conv

import (
	"math"

	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func count(n int) uint32 { return uint32(min(max(n, 0), math.MaxInt32)) }

// EncodeStatus encodes a status.
func EncodeStatus(s *mihf.Status) *mihv1.StatusResponse {
	return &mihv1.StatusResponse{
		Version: text(s.Version), Node: text(s.Node), BootId: bootID(s.Boot), Uptime: durationpb.New(s.Uptime), Sequence: s.Sequence,
		Subscribers: count(s.Subscribers), Flows: count(s.Flows), Links: count(s.Links), Predictor: text(s.Predictor),
		Sensors: each(s.Sensors, encodeCondition), Fronts: each(s.Fronts, encodeCondition),
		Counters: each(s.Counters, func(c *mihf.CounterValue) *mihv1.Counter {
			return &mihv1.Counter{Name: text(c.Name), Value: c.Value}
		}),
	}
}

// DecodeStatus decodes a status.
func DecodeStatus(p *mihv1.StatusResponse) (mihf.Status, error) {
	r := &reader{}
	return mihf.Status{
		Version: p.GetVersion(), Node: mihf.NodeID(p.GetNode()), Boot: r.boot(p.GetBootId()), Uptime: r.long("uptime", p.GetUptime()),
		Sequence: p.GetSequence(), Subscribers: int(p.GetSubscribers()), Flows: int(p.GetFlows()), Links: int(p.GetLinks()), Predictor: p.GetPredictor(),
		Sensors: list(r, "sensors", p.GetSensors(), r.condition), Fronts: list(r, "fronts", p.GetFronts(), r.condition),
		Counters: list(r, "counters", p.GetCounters(), func(c *mihv1.Counter) mihf.CounterValue {
			return mihf.CounterValue{Name: c.GetName(), Value: c.GetValue()}
		}),
	}, r.error()
}

// Explanation encodes an explanation.
func (e Encoder) Explanation(x *mihf.Explanation) *mihv1.ExplainResponse {
	return &mihv1.ExplainResponse{
		Prediction: e.prediction(&x.Prediction), Announced: e.prediction(&x.Announced), Link: text(x.Link), OutcomeAge: e.age(x.OutcomeAt),
		Samples: each(x.Samples, func(s *mihf.Sample) *mihv1.Sample {
			return &mihv1.Sample{Age: e.age(s.At), Values: values(&s.Values), Poa: e.poa(s.PoA)}
		}),
		Forecasts: each(x.Forecasts, func(f *mihf.ForecastPoint) *mihv1.ForecastPoint {
			return &mihv1.ForecastPoint{
				Age: e.age(f.At), Within: span(f.Within), PLoss: number(f.PLoss), PHandover: number(f.PHandover),
				TimeToLossP10: optSpan(f.P10), TimeToLossP50: optSpan(f.P50), TimeToLossP90: optSpan(f.P90),
			}
		}),
		Decisions: each(x.Decisions, func(d *mihf.Decision) *mihv1.Decision {
			return &mihv1.Decision{Age: e.age(d.At), Flow: text(d.Flow), Rule: text(d.Rule)}
		}),
	}
}

// Explanation decodes an explanation.
func (d Decoder) Explanation(p *mihv1.ExplainResponse) (*mihf.Explanation, error) {
	r := d.reader()
	x := &mihf.Explanation{
		Link: mihf.LinkID(p.GetLink()), OutcomeAt: r.ago("outcome_age", p.GetOutcomeAge()),
		Samples: list(r, "samples", p.GetSamples(), func(s *mihv1.Sample) mihf.Sample {
			return mihf.Sample{At: r.ago("age", s.GetAge()), Values: r.values("values", s.GetValues()), PoA: mihf.PoA(s.GetPoa())}
		}),
		Forecasts: list(r, "forecasts", p.GetForecasts(), r.forecastPoint),
		Decisions: list(r, "decisions", p.GetDecisions(), func(c *mihv1.Decision) mihf.Decision {
			return mihf.Decision{At: r.ago("age", c.GetAge()), Flow: mihf.FlowID(c.GetFlow()), Rule: c.GetRule()}
		}),
	}
	x.Prediction = r.revision("prediction", p.GetPrediction())
	x.Announced = r.revision("announced", p.GetAnnounced())
	return x, r.error()
}

func (r *reader) revision(field string, p *mihv1.Prediction) mihf.Prediction {
	if p == nil {
		return mihf.Prediction{}
	}
	defer r.in(field, r.mark())
	return r.open(p)
}

func (r *reader) forecastPoint(p *mihv1.ForecastPoint) mihf.ForecastPoint {
	return mihf.ForecastPoint{
		At: r.ago("age", p.GetAge()), Within: r.long("within", p.GetWithin()),
		PLoss: r.finite("p_loss", p.GetPLoss()), PHandover: r.finite("p_handover", p.GetPHandover()),
		P10: r.optLong("time_to_loss_p10", p.GetTimeToLossP10()),
		P50: r.optLong("time_to_loss_p50", p.GetTimeToLossP50()),
		P90: r.optLong("time_to_loss_p90", p.GetTimeToLossP90()),
	}
}
