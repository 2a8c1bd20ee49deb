package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

// lossHorizon is how far probabilities look that are shown alone.
const lossHorizon = 2 * time.Second

// reportIndent is where a line that is too long for the terminal goes on.
const reportIndent = len("    +0.000 s  ")

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain PREDICTION", Short: "Why a prediction was announced: the samples, the forecasts and the rule that fired",
		Long: "explain shows the samples and forecasts around a prediction, each decision with its numbers, and\n" +
			"how it ended. The daemon keeps the newest predictions; link_going_down events carry their ids.",
		Example: "  mihctl explain 5f3a0c11-3",
		Args:    wants("PREDICTION"),
		RunE: a.with(func(ctx context.Context, c clients.Client, args []string) error {
			id, err := mihf.ParsePredictionID(args[0])
			if err != nil {
				return usageError{err}
			}
			if id.IsZero() {
				return usagef("which prediction? its id looks like 5f3a0c11-3")
			}
			x, err := ask(ctx, a, func(ctx context.Context) (*mihf.Explanation, error) { return c.Explain(ctx, id) })
			if err != nil {
				return notFoundHint(err, `"mihctl events --kind link_going_down" shows predictions with their ids`)
			}
			if a.json {
				return a.printJSON(a.encoder("").Explanation(x))
			}
			for _, line := range report(x, a.wallTime) {
				if err := a.printLine(line, reportIndent); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// plotWidth and plotHeight are those of the plots, without their axis.
const (
	plotWidth  = 66
	plotHeight = 6
)

// report is an explanation as people read it. Times are relative to the announcement.
func report(x *mihf.Explanation, wall func(mihf.Time) string) []string {
	p := &x.Prediction
	rows := [][]string{
		{"prediction", fmt.Sprintf("%s, revision %d: %s of %s", p.ID, p.Revision, p.Cause, show.Name(x.Link))},
		{"announced", wall(p.OpenedAt)},
		{"because", show.Text(conv.ReasonText(&x.Announced))},
		{"expected", expected(&x.Announced)},
	}
	if p.Revision != x.Announced.Revision {
		rows = append(rows,
			[]string{"newest", fmt.Sprintf("after %s: %s", show.Span(p.RevisedAt.Sub(p.OpenedAt)), show.Text(conv.ReasonText(p)))},
			[]string{"expected", expected(p)})
	}
	rows = append(rows, []string{"outcome", outcome(x)})
	lines := show.Table(rows)
	lines = append(lines, plots(x)...)
	lines = append(lines, "", "Decisions")
	rows = nil
	for i := range x.Decisions {
		d := &x.Decisions[i]
		who := "link"
		if d.Flow != "" {
			who = "flow " + show.Name(d.Flow)
		}
		rows = append(rows, []string{"  " + offset(d.At, p.OpenedAt), who, show.Text(d.Rule)})
	}
	return append(lines, show.Table(rows)...)
}

// expected shows when a revision expects the loss, from its own moment.
func expected(p *mihf.Prediction) string {
	return fmt.Sprintf("p10 %s, p50 %s, p90 %s, P %s", show.Span(p.P10), show.Span(p.P50), show.Span(p.P90), show.Probability(p.Confidence))
}

func outcome(x *mihf.Explanation) string {
	if x.Prediction.Outcome == mihf.OutcomeOpen {
		return "open"
	}
	return x.Prediction.Outcome.String() + " after " + show.Span(x.OutcomeAt.Sub(x.Prediction.OpenedAt))
}

// offset shows a moment relative to another.
func offset(t, from mihf.Time) string { return fmt.Sprintf("%+8.3f s", t.Sub(from).Seconds()) }

// plots draws the signal and the probability over the time of the samples.
func plots(x *mihf.Explanation) []string {
	if len(x.Samples) == 0 {
		return []string{"", "no samples were kept"}
	}
	start, end := x.Samples[0].At, x.Samples[len(x.Samples)-1].At
	for i := range x.Forecasts {
		end = max(end, x.Forecasts[i].At)
	}
	end = max(end, x.OutcomeAt, start.Add(time.Second))
	axis := marks(x, start, end)
	var lines []string
	if p, at, v := signalOf(x); len(at) > 0 {
		low, high, _ := show.Range(v, 20)
		lines = append(lines, "", p.String())
		lines = append(lines, plot(at, v, start, end, low, high)...)
		lines = append(lines, axis...)
	}
	at, v := lossOf(x)
	lines = append(lines, "", fmt.Sprintf("P(%s within %s)", x.Prediction.Cause, show.Span(within(x))))
	lines = append(lines, plot(at, v, start, end, 0, 1)...)
	return append(lines, axis...)
}

// signalOf returns the series that the prediction stands on, else the best there is.
func signalOf(x *mihf.Explanation) (p mihf.Parameter, at, v []float64) {
	p = x.Prediction.Trend.Parameter
	has := func(s mihf.Sample) bool { return s.Values.Has(p) }
	if !slices.ContainsFunc(x.Samples, has) {
		for i := range x.Samples {
			if q, _, ok := show.SignalOf(&x.Samples[i].Values); ok {
				p = q
				break
			}
		}
	}
	for i := range x.Samples {
		if y, ok := x.Samples[i].Values.Get(p); ok {
			at, v = append(at, x.Samples[i].At.Seconds()), append(v, y)
		}
	}
	return p, at, v
}

func lossOf(x *mihf.Explanation) (at, v []float64) {
	for i := range x.Forecasts {
		f := &x.Forecasts[i]
		y := f.PLoss
		if x.Prediction.Cause == mihf.CauseHandover {
			y = f.PHandover
		}
		at, v = append(at, f.At.Seconds()), append(v, y)
	}
	return at, v
}

func within(x *mihf.Explanation) time.Duration {
	if len(x.Forecasts) == 0 {
		return lossHorizon
	}
	return x.Forecasts[0].Within
}

// plot draws a series with its range at the left.
func plot(at, v []float64, start, end mihf.Time, low, high float64) []string {
	cols := fill(show.Resample(at, v, start.Seconds(), end.Seconds(), plotWidth), len(at))
	lines := show.Plot(cols, low, high, plotHeight)
	for i := range lines {
		label := ""
		switch i {
		case 0:
			label = show.Number(high)
		case plotHeight - 1:
			label = show.Number(low)
		}
		lines[i] = strings.TrimRight(fmt.Sprintf("%8s ", label)+lines[i], " ")
	}
	return lines
}

// fill closes the gaps between columns where there are fewer samples than columns.
func fill(cols []float64, samples int) []float64 {
	if samples == 0 {
		return cols
	}
	left := 0
	for i, v := range cols {
		switch {
		case !math.IsNaN(v):
			left = len(cols) / samples
		case left > 0:
			cols[i] = cols[i-1]
			left--
		}
	}
	return cols
}

// marks draws the axis of the time: A where the prediction was announced, F where a flow
// was frozen, O where it ended.
func marks(x *mihf.Explanation, start, end mihf.Time) []string {
	axis := []rune(strings.Repeat("·", plotWidth))
	opened := x.Prediction.OpenedAt
	put := func(t mihf.Time, r rune) {
		if t.Before(start) || end.Before(t) || t.IsZero() {
			return
		}
		i := min(int(t.Sub(start).Seconds()/end.Sub(start).Seconds()*plotWidth), plotWidth-1)
		if axis[i] == 'A' && i+1 < plotWidth {
			i++ // what follows an announcement at once stands beside it
		}
		axis[i] = r
	}
	put(opened, 'A')
	put(x.OutcomeAt, 'O')
	for i := range x.Decisions {
		if x.Decisions[i].Flow != "" {
			put(x.Decisions[i].At, 'F')
		}
	}
	first, last := strings.TrimSpace(offset(start, opened)), strings.TrimSpace(offset(end, opened))
	legend := first + "   A announced  F flow frozen  O outcome"
	return []string{
		strings.Repeat(" ", 9) + string(axis),
		strings.Repeat(" ", 9) + show.Pad(legend, plotWidth-show.Width(last)) + last,
	}
}
