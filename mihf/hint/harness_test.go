package hint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/hint"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	wwan = mihf.LinkID("wwan-00000002")
	flow = mihf.FlowID("f")
)

var lci = &mihf.LCI{Link: wlan}

// policyTest drives one policy. Every hint that a test did not want fails it.
type policyTest struct {
	t   testing.TB
	p   *hint.Policy
	cfg hint.Config
	now mihf.Time
	out hint.Out
	n   uint64 // of the newest prediction
}

func newPolicy(t testing.TB, change ...func(*hint.Config)) *policyTest {
	t.Helper()
	h := &policyTest{t: t, cfg: hint.Defaults(), now: mihf.Time(time.Hour)}
	for _, f := range change {
		f(&h.cfg)
	}
	h.p = hint.New(h.cfg, 7)
	t.Cleanup(func() { h.want() })
	return h
}

// add registers a flow on the Wi-Fi link.
func (h *policyTest) add(spec mihf.FlowSpec) mihf.Registration {
	if spec.ID == "" {
		spec.ID = flow
	}
	return h.p.Add(spec, 1000, wlan, 0)
}

// advance lets time pass, stopping wherever the policy wants to be woken.
func (h *policyTest) advance(d time.Duration) {
	h.t.Helper()
	end := h.now.Add(d)
	for n := 0; ; n++ {
		next := h.p.Next()
		if next == 0 || next > end {
			break
		}
		if n > 10000 {
			h.t.Fatalf("the policy spins at %v", next)
		}
		h.now = max(h.now, next)
		h.p.Advance(h.now, &h.out)
	}
	h.now = end
}

// soon is a forecast of a loss that is certain within 50 ms.
func soon() *mihf.Forecast { return likely(1, 50*time.Millisecond) }

// likely is a forecast of a loss with probability p, evenly within d.
func likely(p float64, d time.Duration) *mihf.Forecast {
	f := &mihf.Forecast{}
	f.Loss.Set(func(s float64) float64 { return p * min(s/d.Seconds(), 1) })
	return f
}

var chance = hint.Chance{Interval: 50 * time.Millisecond, ExpiresIn: 3 * time.Second}

// predict freezes the flows that are due by a forecast, as a new prediction, and returns it.
func (h *policyTest) predict(f *mihf.Forecast) *mihf.Prediction {
	h.n++
	pr := &mihf.Prediction{ID: mihf.PredictionID{Boot: 7, N: h.n}, P10: 100 * time.Millisecond, P50: 200 * time.Millisecond, P90: 300 * time.Millisecond}
	h.p.Due(h.now, wlan, f, chance)
	h.p.Freeze(h.now, pr, &h.out)
	return pr
}

func (h *policyTest) end(pr *mihf.Prediction, o mihf.Outcome) {
	pr.Outcome = o
	h.p.Ended(h.now, pr, false, &h.out)
}

func (h *policyTest) usable() { h.p.Usable(h.now, flow, mihf.UnfreezePathUsable, lci, &h.out) }

func (h *policyTest) status() mihf.FlowStatus {
	h.t.Helper()
	var s mihf.FlowStatus
	if !h.p.Status(h.now, flow, &s) {
		h.t.Fatal("not registered")
	}
	return s
}

// want takes the hints that came since, written as show does, and fails on any other.
func (h *policyTest) want(hints ...string) {
	h.t.Helper()
	var got []string
	for i := range h.out.List {
		got = append(got, show(&h.out.List[i]))
	}
	h.out.List = h.out.List[:0]
	if strings.Join(got, "\n") != strings.Join(hints, "\n") {
		h.t.Fatalf("at %v came\n\t%s\nwant\n\t%s", h.now, strings.Join(got, "\n\t"), strings.Join(hints, "\n\t"))
	}
}

func show(h *mihf.Hint) string {
	s := h.Kind.String()
	switch h.Kind {
	case mihf.HintFreeze:
		s += fmt.Sprintf(" %v %v", h.Freeze.Reason, h.Freeze.Lease)
		if h.Freeze.P50 != 0 {
			s += fmt.Sprintf(" p50 %v", h.Freeze.P50)
		}
	case mihf.HintUnfreeze:
		s += " " + h.Unfreeze.Cause.String()
		if h.Unfreeze.Recovery {
			s += " recovery"
		}
		if h.Unfreeze.LCI != nil {
			s += " lci"
		}
	case mihf.HintPrepare:
		s += fmt.Sprintf(" %s in %v", h.Prepare.Target, h.Prepare.Deadline)
	case mihf.HintSwitch:
		s += " " + string(h.Switch.Target)
	case mihf.HintAbandon:
		s += " " + h.Abandon.String()
	default:
	}
	if !h.Prediction.IsZero() {
		s += fmt.Sprintf(" #%d", h.Prediction.N)
	}
	if h.Flow != flow {
		s = string(h.Flow) + ": " + s
	}
	return s
}
