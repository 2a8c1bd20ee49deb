package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/score"
	"mihf.dev/predictors/train"
)

// trainFlags are the flags of the command.
type trainFlags struct {
	folds int
	thin  []time.Duration
	out   string
	from  string
	svg   string
}

func (a *app) trainCommand() *cobra.Command {
	f := &trainFlags{}
	cmd := &cobra.Command{
		Use: "train TRACE...", Short: "Make the weights of the ensemble from recordings whose losses are known",
		Long: "train fits the hazard models of the prediction method \"ensemble\" and its alarm thresholds to recordings\n" +
			"and traces, and shows how good they are on files that they do not know (cross-validation by files).\n" +
			"Files in one folder are one group. Where neighbours are heard, each group is used in thinner forms\n" +
			"too, as a modem shows it (--serving-every). A model for which there are too few events stays as shipped.",
		Args: atLeastOne("TRACE"),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.train(ctx, f, args) }),
	}
	s := cmd.Flags()
	s.IntVar(&f.folds, "folds", 5, "how many parts the files are split into for cross-validation")
	s.DurationSliceVar(&f.thin, "serving-every", []time.Duration{time.Second, 5 * time.Second}, "the thinner forms, by the time between readings")
	s.StringVar(&f.out, "out", "", "write the weights to this file, for --weights of \"mihctl score\"")
	s.StringVar(&f.svg, "svg", "", "draw the report to this SVG file")
	s.StringVar(&f.from, "provenance", "", "what the weights file says of where it comes from")
	return cmd
}

func (a *app) train(ctx context.Context, f *trainFlags, names []string) error {
	if f.folds < 2 {
		return usagef("--folds %d: want 2 at least", f.folds)
	}
	for _, d := range f.thin {
		if d <= 0 {
			return usagef("--serving-every %v: want a time above 0", d)
		}
	}
	groups, err := trainGroups(names, f.thin)
	if err != nil {
		return err
	}
	set, results, err := train.Train(groups, f.folds, func(what string) error {
		_, _ = fmt.Fprintln(a.err, "training:", what) // only tells people that it goes on
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	shipped := ensemble.Shipped()
	for name, w := range shipped.Models {
		if _, made := set.Models[name]; !made {
			set.Models[name] = w
		}
	}
	if set.Provenance = f.from; f.from == "" {
		set.Provenance = fmt.Sprintf("mihctl train, %d files; models without enough events: %s", len(names), shipped.Provenance)
	}
	if f.out != "" {
		if err := writeWeights(f.out, &set); err != nil {
			return err
		}
	}
	if f.svg != "" {
		if err := writeReport(f.svg, results); err != nil {
			return err
		}
	}
	if a.json {
		return a.printValue(map[string]any{"groups": results})
	}
	return a.print(trainTable(results)...)
}

// trainGroups makes a group of each folder, and its thinner forms.
func trainGroups(names []string, thin []time.Duration) ([]train.Group, error) {
	var groups []train.Group
	index := map[string]int{}
	for _, name := range names {
		traces, err := readTrace(name)
		if err != nil {
			return nil, hinted{err, "docs/recordings.md describes recordings and traces"}
		}
		dir := filepath.Base(filepath.Dir(name))
		if _, ok := index[dir]; !ok {
			index[dir] = len(groups)
			groups = append(groups, train.Group{Name: dir})
		}
		g := &groups[index[dir]]
		g.Traces = append(g.Traces, traces...)
	}
	for _, g := range groups {
		if !hearsOthers(g.Traces) {
			continue
		}
		for _, every := range thin {
			t := train.Group{Name: fmt.Sprintf("%s at %v", g.Name, every)}
			for i := range g.Traces {
				t.Traces = append(t.Traces, g.Traces[i].Thin(every))
			}
			groups = append(groups, t)
		}
	}
	return groups, nil
}

func hearsOthers(traces []score.Trace) bool {
	for i := range traces {
		for k := range traces[i].Observations {
			if traces[i].Observations[k].Kind == mihf.ObsDetected {
				return true
			}
		}
	}
	return false
}

func writeWeights(name string, s *ensemble.Set) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("write the weights: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil { //nolint:gosec // figures for everybody
		return fmt.Errorf("write the weights: %w", err)
	}
	return nil
}

func writeReport(name string, results []train.Result) error {
	file, err := os.Create(name) //nolint:gosec // the user's own choice
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(train.WriteSVG(file, results), file.Close())
}

func trainTable(results []train.Result) []string {
	table := [][]string{{"GROUP", "MODEL", "HORIZON", "EVENTS", "PRECISION", "RECALL", "F1", "LEAD p50", "FALSE/h", "RECALL AT 6/h", "SKILL", "FROM", "RELIABILITY"}}
	for _, r := range results {
		for _, w := range r.Rows {
			lead := show.Unknown
			if w.LeadP50S != nil {
				lead = fmt.Sprintf("%.2f", *w.LeadP50S)
			}
			table = append(table, []string{
				r.Group, r.Model.String(), fmt.Sprintf("%g s", w.HorizonS), fmt.Sprint(w.Events), fmt.Sprintf("%.2f", w.Precision), fmt.Sprintf("%.2f", w.Recall),
				fmt.Sprintf("%.3f", w.F1), lead, fmt.Sprintf("%.1f", w.FalseAlarmsPerH), fmt.Sprintf("%.2f", w.RecallAt6PerH),
				fmt.Sprintf("%.3f", w.BrierSkill), fmt.Sprintf("%.3f", w.BrierSkillLow), fmt.Sprintf("%.2f", w.ReliabilityError),
			})
		}
	}
	return show.Table(table)
}

// weighted returns the ensemble with the weights of a file.
func weighted(name string) (*ensemble.Compiled, error) {
	b, err := os.ReadFile(name) //nolint:gosec // the user's own choice
	if err != nil {
		return nil, fmt.Errorf("--weights: %w", err)
	}
	var s ensemble.Set
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, hinted{fmt.Errorf("--weights %s: %w", name, err), `"mihctl train --out" makes such files`}
	}
	c, err := s.Compile()
	if err != nil {
		return nil, fmt.Errorf("--weights %s: %w", name, err)
	}
	return c, nil
}
