package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/cmd/mihctl/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	var speed float64
	cmd := &cobra.Command{
		Use: "demo", Short: "The whole path in one process, on a recorded walk",
		Long: "demo starts a daemon in this process, joins a client with a flow to each of its fronts, and plays a\n" +
			"recorded walk: a fade that recovers, then out of one cell and into another. It shows what is\n" +
			"foreseen, what the clients are told, and what then happens. It fails unless each client's Freeze\n" +
			"comes before the loss. D-Bus is left out where there is no dbus-daemon.\n" +
			"With --json it prints one object at the end; its times are those of the recording.",
		Args: wants(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if !(speed > 0 && speed <= demo.MaxSpeed) {
				return usagef("--speed %v: want a number above 0 and at most %v", speed, demo.MaxSpeed)
			}
			return a.demo(ctx, speed)
		}),
	}
	cmd.Flags().Float64Var(&speed, "speed", demo.DefaultSpeed, "how many seconds of the recording pass in one")
	return cmd
}

func (a *app) demo(ctx context.Context, speed float64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shown := func(e *demo.Entry) {
		if e.Revision() {
			return
		}
		if err := a.printLine(timelineLine(e), timelineIndent); err != nil {
			cancel(err) // nobody sees the rest
		}
	}
	if a.json {
		shown = func(*demo.Entry) {}
	} else if err := a.print(demoHead...); err != nil {
		return err
	}
	r, err := demo.Run(ctx, speed, shown)
	if err != nil {
		return err
	}
	if r.NoDBus != nil {
		_, _ = fmt.Fprintln(a.err, "D-Bus is left out:", r.NoDBus) // only tells what is missing
	}
	if a.json {
		err = a.printValue(r)
	} else {
		err = a.print(demoEnd(r)...)
	}
	if err == nil && !r.OK() {
		err = errors.New("not every client's Freeze came before the loss")
	}
	return err
}

var demoHead = []string{
	"A daemon, its fronts and a client with a flow on each (RTT 100 ms, receiving), on a recorded walk.",
	"",
	"   TIME s  FROM   WHAT",
}

// timelineIndent is where the kind begins.
const timelineIndent = len("   TIME s  FROM   ")

func timelineLine(e *demo.Entry) string {
	return fmt.Sprintf("%9.3f  %-5s  %-22s  %s", e.TimeS, e.From, e.Kind, e.Text)
}

func demoEnd(r *demo.Report) []string {
	millis := func(v *float64) string {
		if v == nil {
			return show.Unknown
		}
		return show.Number(*v) + " ms"
	}
	return append([]string{""}, show.Table([][]string{
		{"announced before the loss", millis(r.Prediction.LeadMs)},
		{"frozen before the loss", fmt.Sprintf("gRPC %s, NATS %s, D-Bus %s (each flow needs %s ms)",
			millis(r.Freeze.GRPC), millis(r.Freeze.NATS), millis(r.Freeze.DBus), show.Number(r.Flow.LeadMs))},
		{"frozen for", millis(r.FrozenMs)},
		{"outcome", r.Outcome},
		{"taken back", fmt.Sprintf("%d (needless freezes: %d)", r.Rollbacks, r.NeedlessFreeze)},
		{"false alarms", fmt.Sprint(r.FalseAlarms)},
	})...)
}
