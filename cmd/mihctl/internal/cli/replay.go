package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/cmd/mihctl/internal/tally"
	"mihf.dev/cmd/mihctl/internal/virtual"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/recording"
	"mihf.dev/proto/conv"
	"mihf.dev/sensors/replay"
)

// replayFlags are the flags of the command.
type replayFlags struct {
	speed   float64
	virtual bool
	reports bool
	rtt     time.Duration
	kinds   []string
	method  string
}

func (a *app) replayCommand() *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use: "replay FILE", Short: "Play a recording and show the events and hints that it gives",
		Long: "replay plays a recording through the broker's own decisions and prints what comes out, one a line,\n" +
			"with the time since the recording's start. No daemon is needed. Each link gets one flow that\n" +
			"receives and keeps its address. FILE may be compressed; - is standard input.\n\n" +
			"With --virtual time does not pass: the result comes at once. It is the same either way, and the\n" +
			"same each time. Changes of parameters that crossed no threshold are left out without --reports.",
		Args: wants("FILE"),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.replay(ctx, f, args[0]) }),
	}
	s := cmd.Flags()
	s.Float64Var(&f.speed, "speed", 1, "how many seconds of the recording pass in one")
	s.BoolVar(&f.virtual, "virtual", false, "in virtual time")
	s.BoolVar(&f.reports, "reports", false, "also each change of a parameter and each point of attachment that was heard")
	s.DurationVar(&f.rtt, "rtt", 100*time.Millisecond, "RTT of the flows; 0: no flows, no hints")
	s.StringSliceVar(&f.kinds, "kind", nil, "of the events only this kind; may be given more than once")
	methods := append(wiring.Known().Predictors, config.NoPredictor)
	s.StringVar(&f.method, "predictor", config.Defaults().Predictor.Method, "the prediction method: "+strings.Join(methods, ", "))
	must(cmd.RegisterFlagCompletionFunc("kind", completeKinds))
	must(cmd.RegisterFlagCompletionFunc("predictor", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp)))
	cmd.MarkFlagsMutuallyExclusive("speed", "virtual")
	return cmd
}

func (a *app) replay(ctx context.Context, f *replayFlags, name string) error {
	o, kinds, err := f.parse()
	if err != nil {
		return err
	}
	in, err := openInput(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // was only read
	src, err := recording.Open(in, "")
	if err != nil {
		return hinted{fmt.Errorf("replay %s: %w", name, err), `"mihctl record" makes recordings; docs/recordings.md describes them and the traces`}
	}
	header := recording.Header{Started: time.Unix(0, 0)} // a trace does not say when it was made
	r, judged := src.(*recording.Reader)
	if judged {
		header = r.Header()
	}
	o.Engine.Node = header.Node
	p := &replayer{app: a, reports: f.reports, kinds: kinds, header: header, changes: &show.Changes{Time: traceTime}}
	if !f.virtual {
		p.pace = &pace{clock: clock.Scaled(f.speed)}
		p.pace.start = p.pace.clock.Now()
	}
	emit := func(now mihf.Time, d *mihf.Delivery, truth *mihf.Observation) error {
		return p.emit(ctx, now, d, truth)
	}
	refused, err := virtual.Run(replay.NewPlayer(src, recording.Base), o, emit)
	if err != nil {
		return err
	}
	defer a.warn(refusals(&refused)...)
	if a.json {
		return nil
	}
	if !judged {
		return a.print("", "not judged: a trace says nothing of the link between its samples")
	}
	return a.print(append([]string{""}, summary(&p.tally)...)...)
}

// refusals says what of the recording was not taken.
func refusals(r *virtual.Refused) (lines []string) {
	if r.Observations > 0 {
		lines = append(lines, fmt.Sprintf("left out: %d observations of %d links, for there is room for %d links and each needs an id like wifi-3fa9c01d",
			r.Observations, r.Links, engine.MaxLinks))
	}
	if r.Sensors > 0 {
		lines = append(lines, fmt.Sprintf("left out: %d conditions of sensors beyond the first %d", r.Sensors, engine.MaxSensors))
	}
	if r.Values > 0 {
		lines = append(lines, fmt.Sprintf("left out: %d values outside the range of their parameter", r.Values))
	}
	return lines
}

// parse checks the flags.
func (f *replayFlags) parse() (o virtual.Options, kinds mihf.KindSet, err error) {
	if !(f.speed > 0) {
		return o, 0, usagef("--speed %v: want a number above 0", f.speed)
	}
	if f.rtt < 0 {
		return o, 0, usagef("--rtt %v: want a time, or 0", f.rtt)
	}
	o = virtual.Options{Engine: engine.Defaults(), Flow: mihf.FlowSpec{RTT: f.rtt, Direction: mihf.DirectionReceive}}
	if o.Engine.NewPredictor, err = wiring.NewPredictor(f.method); err != nil {
		return o, 0, usagef("--predictor: %w", err)
	}
	kinds, err = parseKinds(f.kinds)
	return o, kinds, err
}

func openInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return f, nil
}

// traceTime shows a moment as seconds from the start.
func traceTime(t mihf.Time) string {
	return fmt.Sprintf("%9.3f", t.Sub(recording.Base).Seconds())
}

// replayer prints what comes out.
type replayer struct {
	app     *app
	reports bool
	kinds   mihf.KindSet
	header  recording.Header
	changes *show.Changes
	tally   tally.Tally
	pace    *pace // nil: virtual time
}

func (p *replayer) emit(ctx context.Context, now mihf.Time, d *mihf.Delivery, truth *mihf.Observation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.pace != nil {
		if err := p.pace.wait(ctx, now.Sub(recording.Base)); err != nil {
			return err
		}
	}
	if truth != nil {
		p.tally.Truth(truth)
		return p.truth(truth)
	}
	switch d.Kind {
	case mihf.DeliverEvent:
		p.tally.Event(&d.Event)
		if !p.wanted(&d.Event) {
			return nil
		}
	case mihf.DeliverHint:
		p.tally.Hint(now, &d.Hint)
	default:
	}
	if p.app.json {
		return p.app.printJSON(delivery(p.encoder(now), d))
	}
	return p.app.printLine(p.changes.Line(d), p.changes.Indent())
}

func (p *replayer) wanted(ev *mihf.Event) bool {
	if p.kinds != 0 {
		return p.kinds.Has(ev.Kind)
	}
	if p.reports {
		return true
	}
	return ev.Kind != mihf.LinkDetected && (ev.Kind != mihf.LinkParametersReport || ev.Report.Threshold.Known() || ev.Report.Periodic)
}

// encoder encodes at the moment that is played. Wall times are those of the recording; of
// one that does not know its own they count from 1970.
func (p *replayer) encoder(now mihf.Time) conv.Encoder {
	start := p.header.Started
	if start.IsZero() {
		start = time.Unix(0, 0)
	}
	return conv.Encoder{Now: now, Wall: start.Add(now.Sub(recording.Base)), Node: p.header.Node}
}

// truth shows what the recording tells. It is no message of the protocol.
func (p *replayer) truth(o *mihf.Observation) error {
	if p.app.json {
		return nil
	}
	text := "truth: " + show.Text(o.Truth.Kind)
	if !o.Truth.Until.IsZero() {
		text += ", until " + strings.TrimSpace(traceTime(o.Truth.Until))
	}
	return p.app.print(traceTime(o.At) + "         " + show.Name(o.Link) + "  " + text)
}

// pace lets the time of a recording pass.
type pace struct {
	clock clock.Clock
	start mihf.Time
}

func (p *pace) wait(ctx context.Context, since time.Duration) error {
	d := p.start.Add(since).Sub(p.clock.Now())
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(p.clock.Real(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// summary says what became of it all.
func summary(t *tally.Tally) []string {
	lines := []string{
		fmt.Sprintf("%d predictions: %d came true, %d taken back, %d false alarms", t.Announced, t.CameTrue, t.Rollbacks, t.FalseAlarms),
		fmt.Sprintf("%d freezes, %d needless", t.Freezes, t.Needless),
	}
	for i := range t.Losses {
		l := &t.Losses[i]
		lead, foreseen := l.Lead()
		frozen, ok := l.FrozenBefore()
		lines = append(lines, fmt.Sprintf("%s of %s at %s s: announced %s before, frozen %s before",
			show.Text(l.Kind), show.Name(l.Link), strings.TrimSpace(traceTime(l.At)), show.OptSpan(lead, foreseen), show.OptSpan(frozen, ok)))
	}
	return lines
}
