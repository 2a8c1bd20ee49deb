package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf"
	"mihf.dev/mihf/config"
	"mihf.dev/predictors"
	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/score"
)

// scoreFlags are the flags of the command.
type scoreFlags struct {
	horizons []float64
	method   string
	fit      []string
	alarms   string
	thin     time.Duration
	weights  string
}

func (a *app) scoreCommand() *cobra.Command {
	f := &scoreFlags{}
	cmd := &cobra.Command{
		Use: "score TRACE...", Short: "Judge a prediction method on recordings whose losses are known",
		Long: "score plays recordings and traces to a prediction method and compares its alarms with what is known\n" +
			"to have happened: precision, recall, lead times, false alarms an hour, and whether probabilities mean\n" +
			"what they say. All files given make one figure a horizon. docs/predictors.md has the rules.\n\n" +
			"The alarm is the method's own. With --fit its thresholds are fitted on other files first.",
		Args: atLeastOne("TRACE"),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.score(ctx, f, args) }),
	}
	s := cmd.Flags()
	s.Float64SliceVar(&f.horizons, "horizon", []float64{1, 2, 3, 5}, "horizons in seconds")
	methods := wiring.Known().Predictors
	s.StringVar(&f.method, "predictor", config.Defaults().Predictor.Method, "the prediction method: "+strings.Join(methods, ", "))
	s.StringSliceVar(&f.fit, "fit", nil, "fit the alarm thresholds on these files (names or patterns, with commas between)")
	s.StringVar(&f.alarms, "alarms", "", "also write the moments at which an alarm stands to this CSV file")
	s.DurationVar(&f.thin, "serving-every", 0, "as a modem shows it that is asked so often: the serving cell only; 0: all there is")
	s.StringVar(&f.weights, "weights", "", "the method ensemble with the weights of this file (see train)")
	must(cmd.RegisterFlagCompletionFunc("predictor", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp)))
	cmd.MarkFlagsMutuallyExclusive("predictor", "weights")
	return cmd
}

// atLeastOne takes one argument or more.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is missing", name)
		}
		return nil
	}
}

func (a *app) score(ctx context.Context, f *scoreFlags, names []string) error {
	method, horizons, err := f.parse()
	if err != nil {
		return err
	}
	traces, err := readTraces(names, f.thin)
	if err != nil {
		return err
	}
	judged := score.JudgedOf(traces)
	policies, err := f.fitted(ctx, method, judged, horizons)
	if err != nil {
		return err
	}
	all, err := runAll(ctx, traces, method, judged, horizons)
	if err != nil {
		return err
	}
	for _, s := range all {
		for h := range policies {
			s.Use(h, policies[h])
		}
	}
	if f.alarms != "" {
		if err := writeAlarms(f.alarms, all); err != nil {
			return err
		}
	}
	rows := score.Rows(all)
	if a.json {
		return a.printValue(map[string]any{"rows": rows})
	}
	return a.print(scoreTable(rows)...)
}

// parse checks the flags.
func (f *scoreFlags) parse() (m predictors.Method, horizons []time.Duration, err error) {
	if m, err = wiring.Methods().Find(f.method); err != nil {
		return m, nil, usagef("--predictor: %w", err)
	}
	if f.weights != "" {
		c, err := weighted(f.weights)
		if err != nil {
			return m, nil, err
		}
		m = ensemble.With(c)
	}
	if f.thin < 0 {
		return m, nil, usagef("--serving-every %v: want a time, or 0", f.thin)
	}
	for _, h := range f.horizons {
		if !(h > score.MinLead && h <= mihf.ForecastHorizon.Seconds()) {
			return m, nil, usagef("--horizon %v: want seconds above %v and at most %v", h, score.MinLead, mihf.ForecastHorizon.Seconds())
		}
		horizons = append(horizons, time.Duration(h*float64(time.Second)))
	}
	if len(horizons) == 0 {
		return m, nil, usagef("--horizon: give one at least")
	}
	return m, horizons, nil
}

// fitted returns the policy for each horizon that fits the files of --fit best; none
// without them.
func (f *scoreFlags) fitted(ctx context.Context, m predictors.Method, judged score.Judged, horizons []time.Duration) ([]predictors.Policy, error) {
	if len(f.fit) == 0 {
		return nil, nil
	}
	var names []string
	for _, pattern := range f.fit {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, usagef("--fit %s: there is no such file", pattern)
		}
		names = append(names, found...)
	}
	traces, err := readTraces(names, f.thin)
	if err != nil {
		return nil, err
	}
	all, err := runAll(ctx, traces, m, judged, horizons)
	if err != nil {
		return nil, err
	}
	policies := make([]predictors.Policy, len(horizons))
	for h := range horizons {
		policies[h] = score.Fit(all, h)
	}
	return policies, nil
}

func readTraces(names []string, thin time.Duration) ([]score.Trace, error) {
	var all []score.Trace
	for _, name := range names {
		traces, err := readTrace(name)
		if err != nil {
			return nil, hinted{err, "docs/recordings.md describes recordings and traces"}
		}
		for _, t := range traces {
			if thin > 0 {
				t = t.Thin(thin)
			}
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, hinted{errors.New("no link in these files has a reading of its radio"), "docs/recordings.md describes recordings and traces"}
	}
	return all, nil
}

func readTrace(name string) ([]score.Trace, error) {
	in, err := openInput(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // was only read
	return score.Read(name, in)
}

func runAll(ctx context.Context, traces []score.Trace, m predictors.Method, judged score.Judged, horizons []time.Duration) ([]*score.Series, error) {
	all := make([]*score.Series, len(traces))
	for i := range traces {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("score: %w", err)
		}
		all[i] = score.Run(&traces[i], m.New(), judged, horizons)
	}
	return all, nil
}

// writeAlarms writes a line for each moment at which an alarm stands.
func writeAlarms(name string, all []*score.Series) (err error) {
	file, err := os.Create(name) //nolint:gosec // the user's own choice
	if err != nil {
		return fmt.Errorf("write the alarms: %w", err)
	}
	defer func() {
		if e := file.Close(); e != nil && err == nil {
			err = fmt.Errorf("write the alarms: %w", e)
		}
	}()
	w := bufio.NewWriter(file)
	_, _ = w.WriteString("file,t_s,horizon_s,probability\n") // Flush tells of errors
	for _, s := range all {
		for h, horizon := range s.Horizons[:s.Judged] {
			for i, on := range s.Stands[h] {
				if on {
					_, _ = fmt.Fprintf(w, "%s,%s,%s,%.4f\n", s.Trace.Name, decimal(s.At[i]), decimal(horizon.Seconds()), s.P[h][i])
				}
			}
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the alarms: %w", err)
	}
	return nil
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func scoreTable(rows []score.Row) []string {
	lead := func(v *float64) string {
		if v == nil {
			return show.Unknown
		}
		return fmt.Sprintf("%.2f", *v)
	}
	table := [][]string{{"HORIZON", "EVENTS", "PRECISION", "RECALL", "F1", "LEAD p10/p50/p90", "FALSE/h", "RECALL AT 6/h", "BRIER", "SKILL", "FROM"}}
	for _, r := range rows {
		table = append(table, []string{
			fmt.Sprintf("%g s", r.HorizonS), fmt.Sprint(r.Events), fmt.Sprintf("%.2f", r.Precision), fmt.Sprintf("%.2f", r.Recall), fmt.Sprintf("%.2f", r.F1),
			lead(r.LeadP10S) + " / " + lead(r.LeadP50S) + " / " + lead(r.LeadP90S),
			fmt.Sprintf("%.1f", r.FalseAlarmsPerH), fmt.Sprintf("%.2f", r.RecallAt6PerH), fmt.Sprintf("%.4f", r.Brier), fmt.Sprintf("%.3f", r.BrierSkill), fmt.Sprintf("%.3f", r.BrierSkillLow),
		})
	}
	return show.Table(table)
}
