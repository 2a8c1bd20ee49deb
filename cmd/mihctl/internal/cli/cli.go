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
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// app is what the commands share. It is used by one goroutine.
type app struct {
	out, err *os.File
	clock    clock.Clock // boot time, as that of the clients
	address  string
	tls      struct{ cert, key, ca string } // PEM files, for TCP
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
	f.StringVar(&a.address, "address", "", "the daemon's address, unix:///path or host:port (default $MIHF_ADDRESS, else the system's socket, else the user's)")
	f.StringVar(&a.tls.cert, "cert", "", "for host:port: PEM `file` of our certificate (default $MIHF_CERT)")
	f.StringVar(&a.tls.key, "key", "", "for host:port: PEM `file` of the certificate's key (default $MIHF_KEY)")
	f.StringVar(&a.tls.ca, "ca", "", "for host:port: PEM `file` of the authority of the daemon's certificate (default $MIHF_CA)")
	f.BoolVar(&a.json, "json", false, "print messages as JSON, one object a line")
	f.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for the daemon's answer")
	root.AddCommand(
		a.statusCommand(), a.linksCommand(), a.lciCommand(), a.infoCommand(), a.eventsCommand(), a.watchCommand(), a.hintsCommand(), a.getCommand(), a.thresholdCommand(),
		a.recordCommand(), a.replayCommand(), a.explainCommand(), a.benchCommand(), a.benchServerCommand(), a.demoCommand(), a.versionCommand(),
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

func (a *app) where() string {
	if a.address != "" {
		return a.address
	}
	return clients.DefaultAddress()
}

func (a *app) dial() (clients.Client, error) {
	network, _, err := clients.ParseAddress(a.where())
	if err != nil {
		return nil, usageError{err}
	}
	var o mihgrpc.Options
	if network == "tcp" {
		if o.TLS, err = a.side(); err != nil {
			return nil, err
		}
	}
	return mihgrpc.Dial(a.where(), o)
}

// side returns our side of TLS.
func (a *app) side() (*tls.Config, error) {
	var missing []string
	for _, f := range []struct {
		path              *string
		flag, environment string
	}{{&a.tls.cert, "--cert", "MIHF_CERT"}, {&a.tls.key, "--key", "MIHF_KEY"}, {&a.tls.ca, "--ca", "MIHF_CA"}} {
		if *f.path = cmp.Or(*f.path, os.Getenv(f.environment)); *f.path == "" {
			missing = append(missing, f.flag)
		}
	}
	if len(missing) > 0 {
		return nil, hinted{
			usagef("address %q: over TCP both sides show certificates; missing: %s", a.where(), strings.Join(missing, ", ")),
			"give PEM files with --cert, --key and --ca or MIHF_CERT, MIHF_KEY and MIHF_CA, or the address of a unix socket",
		}
	}
	return wiring.ClientTLS(a.tls.cert, a.tls.key, a.tls.ca)
}

// ask calls f with the time limit of one question.
func ask[T any](ctx context.Context, a *app, f func(context.Context) (T, error)) (T, error) {
	limit, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	v, err := f(limit)
	return v, a.explained(ctx, err)
}

// follow asks for the daemon's status, which tells whether there is one, and subscribes.
func (a *app) follow(ctx context.Context, c clients.Client, req mihf.SubscribeRequest) (mihf.Feed, mihf.NodeID, error) {
	s, err := ask(ctx, a, c.Status)
	if err != nil {
		return nil, "", err
	}
	feed, err := c.Follow(ctx, req)
	if err != nil {
		return nil, "", a.explained(ctx, err)
	}
	return feed, s.Node, nil
}
