package train_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/score"
	"mihf.dev/predictors/train"
)

// drive is a made-up trace of cells that fade: the handover comes when RSRQ has been below
// -15 dB for a while, with chance.
func drive(t *testing.T, name string, seed uint64) score.Trace {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	b.WriteString("t_s,row,poa,rssi_dbm,rsrp_dbm,rsrq_db,sinr_db,rate_mbps,rtt_ms,kind,until_s\n")
	cell, q := 0, -8.0
	for s := range 400 {
		fmt.Fprintf(&b, "%d,serving,c%d,,%.1f,%.1f,,,,,\n", s, cell, -90+q, q+0.5*r.NormFloat64())
		if q -= r.Float64(); q < -15 && r.Float64() < 0.5 {
			fmt.Fprintf(&b, "%d.5,truth,,,,,,,,ho_command,\n", s)
			cell, q = cell+1, -8
		}
	}
	all, err := score.Read(name, strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func groups(t *testing.T) []train.Group {
	t.Helper()
	g := train.Group{Name: "made-up <drive>"}
	for i := range 4 {
		g.Traces = append(g.Traces, drive(t, fmt.Sprint(i), uint64(i)))
	}
	return []train.Group{g}
}

func silent(string) error { return nil }

// What can be learned is learned: handovers that the quality announces are foreseen on
// files that the models do not know, by the model whose input they are.
func TestTrain(t *testing.T) {
	set, results, err := train.Train(groups(t), 2, silent)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Model != ensemble.ModelCell || len(r.Rows) != 4 {
		t.Fatalf("%+v", r)
	}
	if last := r.Rows[3]; last.F1 < 0.6 || last.BrierSkillLow <= 0.1 {
		t.Errorf("at 5 s F1 %.2f, skill from %.2f", last.F1, last.BrierSkillLow)
	}
	w, ok := set.Models["cell"]
	if !ok || len(set.Models) != 1 || len(w.Policies) != 4 {
		t.Fatalf("models %v", set.Models)
	}
	if _, err := set.Compile(); err != nil {
		t.Error(err)
	}
}

// "The same traces give the same figures."
func TestDeterministic(t *testing.T) {
	a, _, err1 := train.Train(groups(t), 2, silent)
	b, _, err2 := train.Train(groups(t), 2, silent)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

// "Each model needs MinEvents events; one with fewer is left as it was."
func TestTooFewEvents(t *testing.T) {
	g := groups(t)
	for i := range g[0].Traces {
		g[0].Traces[i].Events = g[0].Traces[i].Events[:2]
	}
	set, _, err := train.Train(g, 2, silent)
	if err != nil || len(set.Models) != 0 {
		t.Errorf("models %v, error %v; 8 events are too few", set.Models, err)
	}
	if _, _, err := train.Train(g, 1, silent); err == nil {
		t.Error("one fold is accepted")
	}
}

// An error of told ends the work.
func TestEnded(t *testing.T) {
	enough := errors.New("enough")
	for n := range 4 {
		left := n
		_, _, err := train.Train(groups(t), 2, func(string) error {
			if left--; left < 0 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("told ended it at call %d: %v", n+1, err)
		}
	}
}

// The report is XML, names its groups, and holds no number that is none.
func TestReport(t *testing.T) {
	results := []train.Result{{Group: "made-up <drive>", Model: ensemble.ModelCell, Rows: make([]score.Row, 4)}}
	for i := range results[0].Rows {
		lead := float64(i)
		results[0].Rows[i] = score.Row{HorizonS: lead + 1, F1: 0.5, LeadP10S: &lead, LeadP50S: &lead, LeadP90S: &lead, Reliability: make([]score.Bin, score.Bins)}
	}
	results[0].Rows[0].LeadP50S, results[0].Rows[0].LeadP10S, results[0].Rows[0].LeadP90S = nil, nil, nil
	var b bytes.Buffer
	if err := train.WriteSVG(&b, results); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(text, "made-up &lt;drive&gt; (model cell)") || strings.Contains(text, fmt.Sprint(math.NaN())) || strings.Contains(text, "Inf") {
		t.Error("the report does not name its group, or shows what is no number")
	}
}
