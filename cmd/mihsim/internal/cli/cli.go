// Package cli is mihsim's command line.
//
// # Guarantees
//
//   - Exit codes: 0 done, 1 it failed, 2 the command line was wrong.
//   - Results go to standard output; progress and errors to standard error. With --json the
//     result is one object {experiment, seed, runs, rows, claims}, and an error
//     {"error": …, "hint": …}.
//   - A claim that doesn't hold is a result and no failure.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/cmd/mihsim/internal/report"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is what the commands share.
type app struct {
	experiments []experiment.Experiment
	out, err    io.Writer
	json        bool
	started     bool // the command line was right
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, experiments []experiment.Experiment, args []string, out, errOut io.Writer) int {
	a := &app{experiments: experiments, out: out, err: errOut}
	root := a.root() //nolint:contextcheck // each command gets it from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return a.report(ctx, args, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mihsim",
		Short: "Run the papers' experiments on the simulation bed",
		Long: "mihsim runs the experiments of the papers behind mihf on a discrete-event bed, with the\n" +
			"transports' own state machines. The same seed gives the same result.",
		Version:       wiring.Version(),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetVersionTemplate("mihsim {{.Version}}\n")
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the result as one JSON object")
	root.AddCommand(a.listCommand(), a.runCommand())
	return root
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "The experiments that there are", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.started = true
			return a.list()
		},
	}
}

func (a *app) list() error {
	type entry struct {
		Name  string `json:"name"`
		Short string `json:"short"`
		Runs  int    `json:"runs"`
	}
	rows := [][]string{{"NAME", "RUNS", "WHAT"}}
	for _, x := range a.experiments {
		if a.json {
			b, err := json.Marshal(entry{x.Name, x.Short, x.Runs})
			if err != nil {
				return fmt.Errorf("list the experiments: %w", err)
			}
			rows = append(rows, []string{string(b)})
			continue
		}
		rows = append(rows, []string{x.Name, fmt.Sprint(x.Runs), x.Short})
	}
	lines := show.Table(rows)
	if a.json {
		lines = lines[1:]
	}
	if _, err := fmt.Fprintln(a.out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

func (a *app) runCommand() *cobra.Command {
	var (
		seed uint64
		runs int
		dir  string
	)
	cmd := &cobra.Command{
		Use: "run NAME", Short: "Run an experiment",
		Long: "run runs an experiment and prints its rows and claims as Markdown, or with --json as one object.\n" +
			"With --out it also writes NAME.md, NAME.csv, NAME.json and its plots as SVG into that folder.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := a.find(args[0])
			if err != nil {
				return err
			}
			if runs == 0 {
				runs = x.Runs
			}
			if runs < 0 {
				return fmt.Errorf("--runs %d: want a number above 0", runs)
			}
			a.started = true
			return a.run(cmd.Context(), x, experiment.Options{Seed: seed, Runs: runs}, dir)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&seed, "seed", 1, "of all that is random")
	f.IntVar(&runs, "runs", 0, "of each case; 0: as many as \"mihsim list\" shows")
	f.StringVar(&dir, "out", "", "folder for the tables and plots")
	return cmd
}

func (a *app) complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, x := range a.experiments {
			names = append(names, x.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) find(name string) (experiment.Experiment, error) {
	i := slices.IndexFunc(a.experiments, func(x experiment.Experiment) bool { return x.Name == name })
	if i < 0 {
		return experiment.Experiment{}, hinted{fmt.Errorf("there is no experiment %q", name), `"mihsim list" shows those that there are`}
	}
	return a.experiments[i], nil
}

func (a *app) run(ctx context.Context, x experiment.Experiment, o experiment.Options, dir string) error {
	p := progress{w: a.err, name: x.Name, begin: time.Now()}
	if f, ok := a.err.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	o.Progress = p.tell
	r, err := x.Run(ctx, o)
	p.end()
	if err != nil {
		return fmt.Errorf("run %s: %w", x.Name, err)
	}
	r.Experiment, r.Seed, r.Runs = x.Name, o.Seed, o.Runs
	if dir != "" {
		paths, err := report.Files(dir, r)
		if err != nil {
			return err
		}
		for _, path := range paths {
			_, _ = fmt.Fprintln(a.err, "wrote", path) // only tells people
		}
	}
	if a.json {
		return report.JSON(a.out, r)
	}
	return report.Markdown(a.out, r)
}

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// report prints what went wrong and returns the exit code.
func (a *app) report(ctx context.Context, args []string, err error) int {
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return exitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	code, hint := exitFailed, ""
	if !a.started {
		code, hint = exitUsage, `"mihsim help" shows how to use it`
	}
	if h, ok := errors.AsType[hinted](err); ok {
		hint = h.hint
	}
	text := show.Text(err.Error())
	if a.json || slices.Contains(args, "--json") {
		b, _ := json.Marshal(struct { // strings always encode
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
		}{text, hint})
		_, _ = fmt.Fprintln(a.err, string(b)) // there is nowhere else to say it
		return code
	}
	if hint != "" {
		text += "\n" + hint
	}
	_, _ = fmt.Fprintln(a.err, "mihsim: "+text) // there is nowhere else to say it
	return code
}
