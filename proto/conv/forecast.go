package conv

import (
	"math"

	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func encodeTrend(t *mihf.Trend) *mihv1.Trend {
	if *t == (mihf.Trend{}) {
		return nil
	}
	return &mihv1.Trend{
		Parameter: shifted[mihv1.Parameter](t.Parameter), Level: number(t.Level), SlopePerSecond: number(t.Slope),
		Floor: number(t.Floor), Noise: number(t.Noise), Samples: uint32(min(max(t.Samples, 0), math.MaxInt32)),
	}
}

func (r *reader) trend(p *mihv1.Trend) mihf.Trend {
	if p == nil {
		return mihf.Trend{}
	}
	if p.GetSamples() > math.MaxInt32 {
		r.fail("samples", "%d is too large", p.GetSamples())
	}
	return mihf.Trend{
		Parameter: r.parameter(p.GetParameter()), Level: r.number("level", p.Level),
		Slope: r.number("slope_per_second", p.SlopePerSecond), Floor: r.number("floor", p.Floor),
		Noise: r.number("noise", p.Noise), Samples: int(p.GetSamples()),
	}
}

// prediction encodes one; nil for none.
func (e Encoder) prediction(p *mihf.Prediction) *mihv1.Prediction {
	if p.ID.IsZero() {
		return nil
	}
	return &mihv1.Prediction{
		PredictionId: p.ID.String(), Revision: p.Revision, Cause: shifted[mihv1.Cause](p.Cause),
		TimeToLossP10: e.ahead(p.RevisedAt, p.P10), TimeToLossP50: e.ahead(p.RevisedAt, p.P50), TimeToLossP90: e.ahead(p.RevisedAt, p.P90),
		Confidence: number(p.Confidence), Reason: encodeTrend(&p.Trend), ReasonText: ReasonText(p),
		ExpiresIn: e.until(p.ExpiresAt), OpenFor: e.age(p.OpenedAt), RevisedFor: e.age(p.RevisedAt), Outcome: shifted[mihv1.Outcome](p.Outcome),
	}
}

// announced is what LinkGoingDown and Prediction have in common.
type announced interface {
	GetPredictionId() string
	GetRevision() uint32
	GetCause() mihv1.Cause
	GetTimeToLossP10() *durationpb.Duration
	GetTimeToLossP50() *durationpb.Duration
	GetTimeToLossP90() *durationpb.Duration
	GetConfidence() float64
	GetReason() *mihv1.Trend
	GetExpiresIn() *durationpb.Duration
	GetOpenFor() *durationpb.Duration
}

// announced decodes figures that were revised at the moment at.
func (r *reader) announced(at mihf.Time, p announced) mihf.Prediction {
	out := mihf.Prediction{
		ID: r.prediction("prediction_id", p.GetPredictionId()), Revision: p.GetRevision(),
		Cause:      enum[mihf.Cause](r, "cause", mihv1.Cause_name, p.GetCause()),
		OpenedAt:   r.ago("open_for", p.GetOpenFor()),
		RevisedAt:  at,
		P10:        r.ahead("time_to_loss_p10", at, p.GetTimeToLossP10()),
		P50:        r.ahead("time_to_loss_p50", at, p.GetTimeToLossP50()),
		P90:        r.ahead("time_to_loss_p90", at, p.GetTimeToLossP90()),
		Confidence: r.finite("confidence", p.GetConfidence()),
		ExpiresAt:  r.from("expires_in", p.GetExpiresIn()),
	}
	if out.ID.IsZero() {
		r.fail("prediction_id", "is absent")
	}
	failed := r.mark()
	out.Trend = r.trend(p.GetReason())
	r.in("reason", failed)
	return out
}

func (r *reader) open(p *mihv1.Prediction) mihf.Prediction {
	out := r.announced(r.ago("revised_for", p.GetRevisedFor()), p)
	out.Outcome = enum[mihf.Outcome](r, "outcome", mihv1.Outcome_name, p.GetOutcome())
	return out
}

// incidence is absent where it is 0 throughout or not a number.
func incidence(c *mihf.Incidence) []float32 {
	if *c == (mihf.Incidence{}) {
		return nil
	}
	for _, p := range c {
		if !finite(float64(p)) {
			return nil
		}
	}
	return c[:]
}

func (r *reader) incidence(field string, in []float32) (c mihf.Incidence) {
	if len(in) == 0 {
		return c
	}
	if len(in) != len(c) {
		r.fail(field, "%d values, want %d", len(in), len(c))
		return c
	}
	for _, p := range in {
		if !(p >= 0 && p <= 1) {
			r.fail(field, "%v is not a probability", p)
			return mihf.Incidence{}
		}
	}
	copy(c[:], in)
	return c
}

// Forecast encodes a forecast; nil stays nil.
func (e Encoder) Forecast(f *mihf.Forecast) *mihv1.Forecast {
	if f == nil {
		return nil
	}
	return &mihv1.Forecast{
		Age: e.age(f.At), Loss: incidence(&f.Loss), Handover: incidence(&f.Handover), TargetPoa: e.poa(f.Target),
		Interval: span(f.Interval), Trend: encodeTrend(&f.Trend),
	}
}

func (r *reader) forecast(p *mihv1.Forecast) mihf.Forecast {
	f := mihf.Forecast{
		At: r.ago("age", p.GetAge()), Loss: r.incidence("loss", p.GetLoss()), Handover: r.incidence("handover", p.GetHandover()),
		Target: mihf.PoA(p.GetTargetPoa()), Interval: r.long("interval", p.GetInterval()),
	}
	failed := r.mark()
	f.Trend = r.trend(p.GetTrend())
	r.in("trend", failed)
	return f
}
