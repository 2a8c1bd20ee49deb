package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// thresholdFlags are the flags of the command.
type thresholdFlags struct {
	below, above, hysteresis float64
	period                   time.Duration
	oneShot, cancel          bool
	isBelow, isAbove         bool // were given
}

func (a *app) thresholdCommand() *cobra.Command {
	f := &thresholdFlags{}
	cmd := &cobra.Command{
		Use: "threshold LINK PARAM", Short: "Ask for reports of a link's parameter (Link_Configure_Thresholds)",
		Long: "threshold asks for a link_parameters_report when a parameter falls below or rises above a value,\n" +
			"or for one every --period. With --cancel it takes back what the other flags name; alone, all of\n" +
			"the parameter. Values are in the parameter's unit:\n  " + strings.Join(parameterNames(), "\n  "),
		Example: "  mihctl threshold wlan0 rssi_dbm --below -75 --hysteresis 3\n" +
			"  mihctl threshold wlan0 rssi_dbm --period 1s\n" +
			"  mihctl threshold wlan0 rssi_dbm --cancel",
		Args: wants("LINK", "PARAM"), ValidArgsFunction: a.completeThreshold,
	}
	s := cmd.Flags()
	s.Float64Var(&f.below, "below", 0, "report when it falls below this value")
	s.Float64Var(&f.above, "above", 0, "report when it rises above this value")
	s.Float64Var(&f.hysteresis, "hysteresis", 0, "how far it must come back before it is reported again (default the parameter's own)")
	s.DurationVar(&f.period, "period", 0, "report every so often, at least 20ms")
	s.BoolVar(&f.oneShot, "one-shot", false, "report one crossing only")
	s.BoolVar(&f.cancel, "cancel", false, "take back")
	cmd.MarkFlagsMutuallyExclusive("one-shot", "cancel")
	work := a.with(func(ctx context.Context, c clients.Client, args []string) error {
		return a.configure(ctx, c, f, args)
	})
	cmd.RunE = func(c *cobra.Command, args []string) error {
		f.isBelow, f.isAbove = s.Changed("below"), s.Changed("above")
		return work(c, args)
	}
	return cmd
}

func (a *app) configure(ctx context.Context, c clients.Client, f *thresholdFlags, args []string) error {
	p, err := mihf.ParseParameter(args[1])
	if err != nil {
		return usagef("%w; want one of %s", err, strings.Join(parameterNames(), ", "))
	}
	items, err := f.items(p)
	if err != nil {
		return err
	}
	id, err := a.resolve(ctx, c, args[0])
	if err != nil {
		return err
	}
	_, err = ask(ctx, a, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.ConfigureThresholds(ctx, id, items) })
	if err != nil {
		return thresholdHint(err, args[0])
	}
	if !f.cancel {
		a.foretell(ctx, c, id, p)
	}
	if a.json {
		return a.printJSON(&mihv1.ConfigureThresholdsResponse{})
	}
	for i := range items {
		if err := a.print(show.Name(id) + ": " + thresholdText(&items[i])); err != nil {
			return err
		}
	}
	return nil
}

// thresholdHint tells where links, or a link's parameters, are found.
func thresholdHint(err error, link string) error {
	if errors.Is(err, mihf.ErrInvalid) {
		return hinted{err, fmt.Sprintf("%q shows the parameters that the link gives", "mihctl get "+show.Text(link))}
	}
	return linkHint(err)
}

// foretell says that reports may not come, where no value has come so far.
func (a *app) foretell(ctx context.Context, c clients.Client, id mihf.LinkID, p mihf.Parameter) {
	l, err := ask(ctx, a, func(ctx context.Context) (mihf.LinkStatus, error) { return c.Parameters(ctx, id) })
	if err == nil && !l.Values.Has(p) {
		a.warn(fmt.Sprintf("%s has not given %s yet: a report comes when a sensor gives it", id, p))
	}
}

// items turns the flags into what is asked for.
func (f *thresholdFlags) items(p mihf.Parameter) ([]mihf.ThresholdConfig, error) {
	base := mihf.ThresholdConfig{Parameter: p, Hysteresis: f.hysteresis}
	switch {
	case f.cancel:
		base.Action = mihf.ThresholdCancel
	case f.oneShot:
		base.Action = mihf.ThresholdOneShot
	}
	var items []mihf.ThresholdConfig
	add := func(v float64, d mihf.ThresholdDirection) {
		c := base
		c.Threshold = mihf.Some(mihf.Threshold{Value: v, Direction: d})
		items = append(items, c)
	}
	if f.isBelow {
		add(f.below, mihf.ThresholdBelow)
	}
	if f.isAbove {
		add(f.above, mihf.ThresholdAbove)
	}
	if f.period != 0 {
		c := base
		c.Period = f.period
		items = append(items, c)
	}
	switch {
	case len(items) > 0:
		return items, f.check(items)
	case f.cancel:
		return []mihf.ThresholdConfig{base}, nil
	default:
		return nil, usagef("nothing to report: give --below, --above or --period, or --cancel")
	}
}

// check refuses what could never be reported, by the names of the flags.
func (f *thresholdFlags) check(items []mihf.ThresholdConfig) error {
	for _, x := range []struct {
		given bool
		v     float64
		name  string
	}{{f.isBelow, f.below, "--below"}, {f.isAbove, f.above, "--above"}} {
		if !x.given {
			continue
		}
		if err := items[0].Parameter.Check(x.v); err != nil {
			return usagef("%s: %w", x.name, err)
		}
	}
	switch {
	case f.hysteresis < 0:
		return usagef("--hysteresis %v: want 0 or more", f.hysteresis)
	case f.period != 0 && f.period < mihf.MinReportPeriod:
		return usagef("--period %v: want at least %v", f.period, mihf.MinReportPeriod)
	case f.oneShot && !f.isBelow && !f.isAbove:
		return usagef("--one-shot needs --below or --above")
	}
	for i := range items {
		if err := items[i].Check(); err != nil {
			return usageError{err}
		}
	}
	return nil
}

// thresholdText says what an item asks for.
func thresholdText(c *mihf.ThresholdConfig) string {
	what := c.Parameter.String()
	if t, ok := c.Threshold.Get(); ok {
		what += " " + t.Direction.String() + " " + show.Value(c.Parameter, t.Value)
	}
	if c.Period > 0 {
		what += " every " + c.Period.String()
	}
	switch {
	case c.Action == mihf.ThresholdCancel && !c.Threshold.Known() && c.Period == 0:
		return "no more reports of " + what + " that were asked for"
	case c.Action == mihf.ThresholdCancel:
		return "no more reports of " + what
	case c.Action == mihf.ThresholdOneShot:
		return "one report of " + what
	case c.Hysteresis > 0:
		return fmt.Sprintf("reports of %s, again after it came back by %s", what, show.Number(c.Hysteresis))
	default:
		return "reports of " + what
	}
}
