package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/mihctl/internal/bench"
)

// Hidden commands of which bench starts processes.
const (
	benchServer  = "bench-server"
	benchClients = "bench-clients"
)

func (a *app) benchCommand() *cobra.Command {
	o := bench.Options{}
	cmd := &cobra.Command{
		Use: "bench", Short: "How fast the broker is on this machine, beside bare counterparts",
		Long: "bench measures a broker in this process: the fan-out to 100 subscribers, and a Freeze that is due to\n" +
			"a client of each front. Ours and a bare counterpart that does the same work without a broker\n" +
			"alternate in rounds; a ratio is the median of the rounds' ratios. It takes a minute and a half; --all\n" +
			"adds NATS without a socket, a subscriber that stopped reading, and the memory of many subscribers.",
		Args: wants(),
		RunE: a.run(func(ctx context.Context, _ []string) error { return a.bench(ctx, o) }),
	}
	s := cmd.Flags()
	s.BoolVar(&o.All, "all", false, "also NATS without a socket, the subscriber that stopped reading, and the memory")
	s.IntVar(&o.Rounds, "rounds", 5, "rounds of each comparison")
	return cmd
}

func (a *app) bench(ctx context.Context, o bench.Options) error {
	if o.Rounds <= 0 {
		return usagef("--rounds %d: want a number above 0", o.Rounds)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	o.Server, o.Clients = []string{self, benchServer}, []string{self, benchClients}
	o.Progress = func(what string) {
		_, _ = fmt.Fprintln(a.err, "measuring: "+what) // only tells people that it goes on
	}
	o.Missing = func(why error) {
		_, _ = fmt.Fprintln(a.err, "left out:", why) // as above
	}
	r, err := bench.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if a.json {
		return a.printValue(r)
	}
	if err := r.WriteTable(a.out); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

func (a *app) benchServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: benchServer + " FRONT DIR", Short: "The server whose memory bench measures", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return bench.ServeMemory(ctx, args[0], args[1], os.Stdin, a.out)
		}),
	}
}

func (a *app) benchClientsCommand() *cobra.Command {
	return &cobra.Command{
		Use: benchClients + " SOCKET COUNT EVENTS", Short: "The clients of which bench measures when they hear events", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: a.run(func(ctx context.Context, args []string) error {
			count, err := strconv.Atoi(args[1])
			if err != nil {
				return usagef("COUNT %q: want a number", args[1])
			}
			events, err := strconv.Atoi(args[2])
			if err != nil {
				return usagef("EVENTS %q: want a number", args[2])
			}
			return bench.ServeNeighbours(ctx, args[0], count, events, os.Stdin, a.out)
		}),
	}
}
