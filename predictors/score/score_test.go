package score_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/predictors"
	"mihf.dev/predictors/score"
)

const header = "t_s,row,poa,rssi_dbm,rsrp_dbm,rsrq_db,sinr_db,rate_mbps,rtt_ms,kind,until_s\n"

func read(t testing.TB, rows string) score.Trace {
	t.Helper()
	all, err := score.Read("test.csv", strings.NewReader(header+rows))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d links, want 1", len(all))
	}
	return all[0]
}

// A trace of 20 s with a loss at 10 s that lasts 2 s.
const oneLoss = "0,serving,ap,-60,,,,,,,\n10,truth,,,,,,,,blackout,12\n10,blind,,,,,,,,,12\n20,serving,ap,-60,,,,,,,\n"

// "An alarm at time a with horizon H is a hit if an event comes in [a+0.1 s, a+H]; late
// (neither hit nor false) if sooner; else one false alarm."
func TestAccounting(t *testing.T) {
	tr := read(t, oneLoss)
	if diff := cmp.Diff([]score.Span{{From: 0, To: 10}, {From: 12, To: 20}}, tr.Spans); diff != "" {
		t.Errorf("judged (-want +got)\n%s", diff)
	}
	for _, c := range []struct {
		name   string
		alarms []float64
		want   score.Tally
	}{
		{"none", nil, score.Tally{}},
		{"in time", []float64{8.5}, score.Tally{Hits: 1, Leads: []float64{1.5}}},
		{"at the horizon's end", []float64{8}, score.Tally{Hits: 1, Leads: []float64{2}}},
		{"too early", []float64{7.9}, score.Tally{False: 1}},
		{"late", []float64{9.95}, score.Tally{Late: 1}},
		{"pending, no other counts", []float64{7, 7.5, 8.9}, score.Tally{False: 1}},
		{"persisting, again at a+H", []float64{7, 8, 9}, score.Tally{False: 1, Hits: 1, Leads: []float64{1}}},
		{"within the loss", []float64{10.5, 11}, score.Tally{}},
		{"pending when judging stops", []float64{18.5}, score.Tally{}},
		{"over before judging stops", []float64{17.5}, score.Tally{False: 1}},
	} {
		c.want.Events, c.want.Seconds = 1, 18
		if diff := cmp.Diff(c.want, tr.Alarms(c.alarms, 2)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

// "The event that ends a judged interval may come up to 1.5 s after it."
func TestEventBehindTheInterval(t *testing.T) {
	for _, c := range []struct {
		at   string
		want int
	}{{"9", 1}, {"9.5", 1}, {"11", 0}} {
		tr := read(t, "0,serving,ap,-60,,,,,,,\n8,blind,,,,,,,,,12\n"+c.at+",truth,,,,,,,,lost,\n20,serving,ap,-60,,,,,,,\n")
		if got := tr.Alarms(nil, 2).Events; got != c.want {
			t.Errorf("judged until 8 s, event at %s s: %d events, want %d", c.at, got, c.want)
		}
	}
}

// Whatever the alarms, no event is hit twice, and every alarm counts once at most.
func TestAccountingBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gaps := rapid.SliceOf(rapid.Float64Range(0.001, 3)).Draw(rt, "gaps")
		var tr score.Trace
		tr.Spans = []score.Span{{From: 0, To: 30}}
		for e := 0.0; e < 30; {
			e += rapid.Float64Range(0.5, 20).Draw(rt, "event")
			tr.Events = append(tr.Events, e)
		}
		var alarms []float64
		at := 0.0
		for _, g := range gaps {
			at += g
			alarms = append(alarms, at)
		}
		h := rapid.Float64Range(0.2, 10).Draw(rt, "horizon")
		r := tr.Alarms(alarms, h)
		if r.Hits != len(r.Leads) || r.Hits+r.Late > r.Events || r.Hits+r.Late+r.False > len(alarms) {
			rt.Fatalf("%d alarms: %+v", len(alarms), r)
		}
		for _, l := range r.Leads {
			if l < score.MinLead || l > h+1e-6 {
				rt.Fatalf("lead %v with horizon %v", l, h)
			}
		}
	})
}

// constant says the same always, and notes when it is asked and what it is shown.
type constant struct {
	p     float32
	asked []mihf.Time
	seen  []mihf.Time
}

func (c *constant) Observe(now mihf.Time, o *mihf.Observation) {
	if o.Kind == mihf.ObsTruth {
		panic("a predictor was shown the truth")
	}
	c.seen = append(c.seen, now)
}

func (c *constant) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	c.asked = append(c.asked, now)
	*f = mihf.Forecast{At: now}
	for i := range f.Loss {
		f.Loss[i] = c.p
	}
	return true
}

// "It is asked after each observation, and every Step between"; times only go on.
func TestAskedInOrder(t *testing.T) {
	tr := read(t, oneLoss)
	c := &constant{p: 0.7}
	s := score.Run(&tr, c, score.JudgeLoss, []time.Duration{2 * time.Second})
	if len(s.At) != 201 || len(c.asked) != 201 {
		t.Errorf("asked %d times in 20 s, want every 0.1 s", len(s.At))
	}
	for i := range s.At[1:] {
		if s.At[i+1] <= s.At[i] || s.At[i+1]-s.At[i] > 0.1+1e-9 {
			t.Fatalf("asked at %v after %v", s.At[i+1], s.At[i])
		}
	}
	r := tr.Alarms(s.Standing(0), 2)
	if r.Hits != 1 || r.False != 8 {
		t.Errorf("an alarm that always stands: %+v", r)
	}
}

// A method that says the base rate always has no skill; one that knows has all of it.
func TestCalibration(t *testing.T) {
	tr := read(t, oneLoss)
	h := []time.Duration{2 * time.Second}
	s := score.Run(&tr, &constant{p: 0.125}, score.JudgeLoss, h)
	c := s.Calibrate(0)
	if base := c.BaseRate(); math.Abs(base-2.0/16) > 0.01 {
		t.Errorf("base rate %v, want 2 s of the 10 s before the loss and the 6 s after it", base)
	}
	if sk := c.Skill(); math.Abs(sk) > 0.01 {
		t.Errorf("skill of the base rate %v, want 0", sk)
	}
	for i, at := range s.At {
		s.P[0][i] = 0
		if at >= 8 && at < 10 {
			s.P[0][i] = 1
		}
	}
	c = s.Calibrate(0)
	if c.Brier() > 1e-9 || c.Skill() < 1-1e-9 || c.Worst(0.3, 0) > 1e-9 {
		t.Errorf("of what was known: Brier %v, skill %v, reliability error %v", c.Brier(), c.Skill(), c.Worst(0.3, 0))
	}
	for i := range s.P[0] {
		s.P[0][i] = 1 - s.P[0][i]
	}
	c = s.Calibrate(0)
	if c.Worst(0.3, 0) < 0.99 || c.Skill() >= 0 {
		t.Errorf("of the opposite: reliability error %v, skill %v", c.Worst(0.3, 0), c.Skill())
	}
}

// Fit finds the threshold that parts what came from what did not.
func TestFit(t *testing.T) {
	tr := read(t, oneLoss)
	s := score.Run(&tr, &constant{}, score.JudgeLoss, []time.Duration{2 * time.Second})
	for i, at := range s.At {
		s.P[0][i] = 0.1
		if at >= 8.3 && at < 9.5 {
			s.P[0][i] = 0.3
		}
	}
	y := score.Fit([]*score.Series{s}, 0)
	if y.Raise <= 0.1 || y.Raise > 0.3001 {
		t.Fatalf("policy %+v, want a threshold above 0.1 up to 0.3", y)
	}
	s.Use(0, y)
	row := score.Rows([]*score.Series{s})[0]
	if row.F1 != 1 || row.LeadP50S == nil || math.Abs(*row.LeadP50S-1.7) > 0.01 || row.RecallAt6PerH != 1 {
		t.Errorf("%+v", row)
	}
}

func TestPolicyHysteresis(t *testing.T) {
	y, on := predictors.Policy{Raise: 0.5, Clear: 0.2}, false
	for i, c := range []struct {
		p    float64
		want bool
	}{{0.4, false}, {0.5, true}, {0.3, true}, {0.19, false}, {0.3, false}} {
		if on = y.Stands(on, c.p); on != c.want {
			t.Errorf("step %d, p %v: stands %v", i, c.p, on)
		}
	}
}

// Thin leaves the serving cell at its pace, and the truth.
func TestThin(t *testing.T) {
	tr := read(t, "0,serving,c1,,-90,-10,,,,,\n0.1,neighbour,c2,,-90,-10,,,,,\n0.5,serving,c1,,-91,-10,,,,,\n0.6,probe,,,,,,,20,,\n1,serving,c1,,-92,-10,,,,,\n3,truth,,,,,,,,ho_command,\n3.2,serving,c2,,-80,-10,,,,,\n")
	thin := tr.Thin(time.Second)
	var got []float64
	for i := range thin.Observations {
		if o := &thin.Observations[i]; o.Kind != mihf.ObsAssociation {
			v, _ := o.Values.Get(mihf.ParamRSRP)
			got = append(got, v)
		}
	}
	if diff := cmp.Diff([]float64{-90, -92, -80}, got); diff != "" {
		t.Errorf("serving levels (-want +got)\n%s", diff)
	}
	if len(thin.Events) != 1 || !thin.Handovers || thin.Losses {
		t.Errorf("truth: %+v", thin.Events)
	}
}

// A recording of several links is judged link by link.
func TestLinks(t *testing.T) {
	rec := `{"format":"mihf-recording","version":1}
{"t":0,"kind":"radio","link":"wifi-00000001","values":{"rssi_dbm":-61}}
{"t":1,"kind":"radio","link":"wwan-00000002","values":{"rsrp_dbm":-90}}
{"t":2,"kind":"truth","link":"wifi-00000001","truth":{"kind":"loss","until":3}}
{"t":5,"kind":"resume","gap_s":1}
`
	all, err := score.Read("r.jsonl", strings.NewReader(rec))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "r.jsonl#wifi-00000001" || len(all[0].Events) != 1 || len(all[1].Events) != 0 || len(all[1].Observations) != 2 {
		t.Errorf("%+v", all)
	}
	if score.JudgedOf(all) != score.JudgeLoss || score.JudgedOf(all[1:]) != score.JudgeEither {
		t.Error("what is judged does not follow from the truth")
	}
}
