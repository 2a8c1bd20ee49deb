// Package cli is mihctl's command line.
//
// # Guarantees
//
//   - Exit codes: 0 done, 1 it failed, 2 the command line was wrong.
//   - An error says what was tried and, where there is something, what to do. With --json
//     it is {"error": …, "hint": …}, both on standard error.
//   - With --json, standard output holds the messages of mih.v1 as protojson with proto
//     field names, one object a line.
//   - No octet of a name that comes from outside reaches the terminal as a control
//     character, and no escape sequence goes to what is no terminal.
//   - A reader of standard output that has enough (EPIPE) ends the program quietly.
package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/mihf/clock"
)

// app is what the commands share. It is used by one goroutine.
type app struct {
	out, err *os.File
	clock    clock.Clock // boot time, as that of the clients
	via      string      // which front is spoken to
	address  string
	tls      struct{ cert, key, ca string } // PEM files
	nats     natsFlags
	json     bool
	timeout  time.Duration
	started  bool // a command was found and its arguments are right
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, out, errOut *os.File) int {
	a := &app{out: out, err: errOut}
	root := a.root() //nolint:contextcheck // each command gets it from ExecuteContext
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(ctx, cmd, args, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mihctl",
		Short: "Show and steer a mobility event broker",
		Long: "mihctl shows and steers a mobility event broker: its links, what it foresees of them,\n" +
			"and what it tells the flows that are registered with it.",
		Version:       thisVersion().String(),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.out)
	root.SetErr(a.err)
	f := root.PersistentFlags()
	a.connectionFlags(root)
	f.BoolVar(&a.json, "json", false, "print messages as JSON, one object a line")
	f.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for the daemon's answer")
	root.AddCommand(
		a.statusCommand(), a.linksCommand(), a.lciCommand(), a.infoCommand(), a.eventsCommand(), a.watchCommand(), a.hintsCommand(), a.getCommand(), a.thresholdCommand(),
		a.recordCommand(), a.replayCommand(), a.scoreCommand(), a.trainCommand(), a.explainCommand(), a.benchCommand(), a.benchServerCommand(), a.benchClientsCommand(), a.demoCommand(), a.versionCommand(),
	)
	return root
}

// wants takes exactly the arguments with these names.
func wants(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", strings.Join(names[len(args):], " and "))
		}
		return mayTake(len(names))(cmd, args)
	}
}

// mayTake takes up to n arguments.
func mayTake(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%q is one argument too many", args[n])
		}
		return nil
	}
}

// run adapts a command's work: from here on an error is no longer one of usage.
func (a *app) run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if a.timeout <= 0 {
			return usagef("--timeout %v: want a time above 0", a.timeout)
		}
		a.started = true
		return f(c.Context(), args)
	}
}

// with runs f with a client.
func (a *app) with(f func(ctx context.Context, c clients.Client, args []string) error) func(*cobra.Command, []string) error {
	return a.run(func(ctx context.Context, args []string) error {
		c, err := a.dial()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // nothing is lost with it
		return f(ctx, c, args)
	})
}

// ask calls f with the time limit of one question.
func ask[T any](ctx context.Context, a *app, f func(context.Context) (T, error)) (T, error) {
	limit, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	v, err := f(limit)
	return v, a.explained(ctx, err)
}
