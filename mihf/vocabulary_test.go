package mihf_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// enum checks that names are distinct and that Parse is the inverse of String, for the
// values from first up to the first unknown one.
func enum[T ~uint8](t *testing.T, what string, first, count int, parse func(string) (T, bool), name func(T) string) {
	t.Helper()
	seen := map[string]bool{}
	for i := first; i < first+count; i++ {
		s := name(T(i))
		if s == "" || seen[s] {
			t.Errorf("%s %d is called %q", what, i, s)
		}
		seen[s] = true
		if v, ok := parse(s); !ok || v != T(i) {
			t.Errorf("%s: parse(%q) = %d, %v; want %d", what, s, v, ok, i)
		}
	}
	if s := name(T(first + count)); s != "unknown" {
		t.Errorf("%s %d is called %q; want it unknown", what, first+count, s)
	}
	for _, s := range []string{"", "none ", "UP", "\x00"} {
		if v, ok := parse(s); ok {
			t.Errorf("%s: parse(%q) = %v", what, s, v)
		}
	}
}

func TestEnumsRoundTrip(t *testing.T) {
	enum(t, "kind", 1, 19, mihf.ParseKind, mihf.Kind.String)
	enum(t, "cause", 0, 2, mihf.ParseCause, mihf.Cause.String)
	enum(t, "outcome", 0, 5, mihf.ParseOutcome, mihf.Outcome.String)
	enum(t, "link type", 0, 6, mihf.ParseLinkType, mihf.LinkType.String)
	enum(t, "source", 0, 6, mihf.ParseSource, mihf.Source.String)
	enum(t, "oper state", 0, 7, mihf.ParseOperState, mihf.OperState.String)
	enum(t, "association", 0, 5, mihf.ParseAssociationState, mihf.AssociationState.String)
	enum(t, "down reason", 0, 15, mihf.ParseDownReason, mihf.DownReason.String)
	enum(t, "observation", 1, 14, mihf.ParseObservationKind, mihf.ObservationKind.String)
	enum(t, "condition", 0, 6, mihf.ParseCondition, mihf.Condition.String)
	enum(t, "continuity", 0, 3, mihf.ParseContinuity, mihf.Continuity.String)
	enum(t, "direction", 0, 3, mihf.ParseDirection, mihf.Direction.String)
	enum(t, "rtt source", 0, 3, mihf.ParseRTTSource, mihf.RTTSource.String)
	enum(t, "ack", 0, 3, mihf.ParseAckResult, mihf.AckResult.String)
	enum(t, "hint", 1, 6, mihf.ParseHintKind, mihf.HintKind.String)
	enum(t, "freeze reason", 0, 3, mihf.ParseFreezeReason, mihf.FreezeReason.String)
	enum(t, "unfreeze cause", 0, 7, mihf.ParseUnfreezeCause, mihf.UnfreezeCause.String)
	enum(t, "abandon reason", 0, 3, mihf.ParseAbandonReason, mihf.AbandonReason.String)
	enum(t, "threshold direction", 0, 2, mihf.ParseThresholdDirection, mihf.ThresholdDirection.String)
	enum(t, "threshold action", 0, 3, mihf.ParseThresholdAction, mihf.ThresholdAction.String)
}

// Only what the delivery contract names may be conflated or dropped.
func TestAdmission(t *testing.T) {
	loose := map[mihf.Kind]mihf.Admission{
		mihf.LinkParametersReport: mihf.NewestOnly, mihf.SensorConditionChanged: mihf.NewestOnly,
		mihf.ShareReport: mihf.NewestOnly, mihf.LinkDetected: mihf.DropOldest,
	}
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		if got := k.Admission(); got != loose[k] {
			t.Errorf("%v: admission %d, want %d", k, got, loose[k])
		}
	}
}

func TestParameterNames(t *testing.T) {
	seen := map[string]bool{}
	for p := range mihf.Parameter(mihf.NumParameters) {
		s := p.String()
		if got, err := mihf.ParseParameter(s); err != nil || got != p || seen[s] {
			t.Errorf("parameter %d is called %q, which reads as %d, %v", p, s, got, err)
		}
		seen[s] = true
	}
	beyond := mihf.Parameter(mihf.NumParameters)
	if _, err := mihf.ParseParameter("rssi"); err == nil || beyond.String() != "unknown" || beyond.Unit() != "" || beyond.Check(1) == nil {
		t.Error("an unknown parameter is taken for one")
	}
}

// Values.Set refuses what is not finite or lies outside the parameter's range: no
// consumer meets a sentinel.
func TestValuesRefuseSentinels(t *testing.T) {
	for p := range mihf.Parameter(mihf.NumParameters) {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -math.MaxFloat64, math.MaxFloat64, -1e300} {
			var vs mihf.Values
			if vs.Set(p, v) || vs.Has(p) || vs.Len() != 0 {
				t.Errorf("%v took %v", p, v)
			}
		}
	}
	var vs mihf.Values
	for p, bad := range map[mihf.Parameter][]float64{
		mihf.ParamRSSI: {0, 75, 8, 11, -111, 185}, mihf.ParamRSRP: {0, 255, -157}, mihf.ParamRSRQ: {255, 99},
		mihf.ParamQuality: {-1, 101}, mihf.ParamTxRetryRatio: {-0.1, 1.1}, mihf.ParamTxPHYRate: {0},
	} {
		for _, v := range bad {
			if vs.Set(p, v) {
				t.Errorf("%v took %v", p, v)
			}
		}
	}
}

// For every octet that a driver may give, the value is its signed reading or absent.
func TestSignalOctets(t *testing.T) {
	for b := range 256 {
		want := float64(int8(b))
		var vs mihf.Values
		vs.Set(mihf.ParamRSSI, want)
		got, known := vs.Get(mihf.ParamRSSI)
		if known != (want >= -110 && want <= -10) || (known && got != want) {
			t.Errorf("octet %#x: %v, %v", b, got, known)
		}
	}
}

func TestValuesAreWhatWasSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var vs mihf.Values
		model := map[mihf.Parameter]float64{}
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			p := mihf.Parameter(rapid.IntRange(0, mihf.NumParameters).Draw(t, "p"))
			v := rapid.Float64Range(-200, 200).Draw(t, "v")
			if vs.Set(p, v) {
				model[p] = v
			}
		}
		if vs.Len() != len(model) {
			t.Fatalf("%d values, want %d", vs.Len(), len(model))
		}
		last := -1
		vs.All(func(p mihf.Parameter, v float64) bool {
			if want, ok := model[p]; !ok || want != v || int(p) <= last {
				t.Fatalf("%v = %v, want %v in the order of the parameters", p, v, want)
			}
			last = int(p)
			delete(model, p)
			return true
		})
		if len(model) != 0 {
			t.Fatalf("not given: %v", model)
		}
		calls := 0
		vs.All(func(mihf.Parameter, float64) bool { calls++; return false })
		if calls > 1 {
			t.Fatal("All went on after false")
		}
	})
}

func TestOpt(t *testing.T) {
	var none mihf.Opt[int]
	if _, known := none.Get(); known || none.Known() || none.Or(7) != 7 {
		t.Error("the zero Opt is known")
	}
	some := mihf.Some(0)
	if v, known := some.Get(); !known || v != 0 || some.Or(7) != 0 {
		t.Error("a known zero is not kept")
	}
}

func TestTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Custom(func(t *rapid.T) mihf.Time { return mihf.Time(rapid.Int64Range(0, 1<<40).Draw(t, "ns")) })
		a, b, now := at.Draw(t, "a"), at.Draw(t, "b"), at.Draw(t, "now")
		s := mihf.Sooner(a, b)
		if s != mihf.Sooner(b, a) || (s.IsZero() != (a.IsZero() && b.IsZero())) {
			t.Fatalf("sooner of %d, %d is %d", a, b, s)
		}
		if s.Due(now) != (a.Due(now) || b.Due(now)) {
			t.Fatalf("the sooner of %d, %d at %d", a, b, now)
		}
		if b != a.Add(b.Sub(a)) || a.Before(b) != (b.Sub(a) > 0) {
			t.Fatalf("%d and %d", a, b)
		}
	})
}

func TestSourceMayRaise(t *testing.T) {
	for s, want := range map[mihf.Source]bool{
		mihf.SourceUnknown: false, mihf.SourceMeasured: true, mihf.SourceOperator: true, mihf.SourceHistory: true,
		mihf.SourceModem: false, mihf.SourcePHY: false,
	} {
		if s.MayRaise() != want {
			t.Errorf("%v may raise: %v", s, !want)
		}
	}
}

func TestRunning(t *testing.T) {
	for _, c := range []struct {
		f    mihf.LinkFacts
		want bool
	}{
		{mihf.LinkFacts{AdminUp: true, Carrier: true, Oper: mihf.OperUp}, true},
		{mihf.LinkFacts{AdminUp: true, Oper: mihf.OperUnknown, Carrier: true}, true}, // tun
		{mihf.LinkFacts{AdminUp: true, Oper: mihf.OperUnknown}, false},
		{mihf.LinkFacts{AdminUp: true, Carrier: true, Oper: mihf.OperDormant}, false}, // 802.1X is not finished
		{mihf.LinkFacts{AdminUp: true, Carrier: true, Oper: mihf.OperDown}, false},
		{mihf.LinkFacts{Carrier: true, Oper: mihf.OperUp}, false},
	} {
		if got := c.f.Running(); got != c.want {
			t.Errorf("%+v: running %v", c.f, got)
		}
	}
}
