package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/mihctl/internal/bench"
)

// benchServer is the hidden command that serves in a process of its own.
const benchServer = "bench-server"

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
	o.Server = []string{self, benchServer}
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
