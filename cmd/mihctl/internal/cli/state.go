package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "What the daemon is and counts", Args: wants(),
		RunE: a.with(func(ctx context.Context, c clients.Client, _ []string) error {
			s, err := ask(ctx, a, c.Status)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(conv.EncodeStatus(&s))
			}
			return a.print(statusLines(&s)...)
		}),
	}
}

func statusLines(s *mihf.Status) []string {
	rows := [][]string{
		{"node", show.Name(s.Node)},
		{"version", show.Name(s.Version)},
		{"run", s.Boot.String() + ", up " + show.Span(s.Uptime)},
		{"predictor", show.Name(s.Predictor)},
		{"sequence", strconv.FormatUint(s.Sequence, 10)},
		{"links", strconv.Itoa(s.Links)},
		{"flows", strconv.Itoa(s.Flows)},
		{"subscribers", strconv.Itoa(s.Subscribers)},
	}
	for _, part := range []struct {
		what  string
		which []mihf.SensorCondition
	}{{"front ", s.Fronts}, {"sensor ", s.Sensors}} {
		for _, x := range part.which {
			text := x.Condition.String()
			if x.Text != "" {
				text += ": " + show.Text(x.Text)
			}
			rows = append(rows, []string{part.what + show.Name(x.Sensor), text})
		}
	}
	var counters [][]string
	for _, x := range s.Counters {
		counters = append(counters, []string{show.Name(x.Name), strconv.FormatUint(x.Value, 10)})
	}
	return slices.Concat(show.Table(rows), []string{""}, show.Table(counters))
}

func (a *app) linksCommand() *cobra.Command {
	return &cobra.Command{
		Use: "links", Short: "All links with their state, signal and forecast", Args: wants(),
		RunE: a.with(func(ctx context.Context, c clients.Client, _ []string) error {
			s, err := ask(ctx, a, c.Snapshot)
			if err != nil {
				return err
			}
			if !a.json {
				return a.print(a.linksTable(s)...)
			}
			for i := range s.Links {
				if err := a.printJSON(a.encoder(s.Node).LinkStatus(&s.Links[i])); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func (a *app) linksTable(s *mihf.Snapshot) []string {
	rows := [][]string{{"LINK", "NAME", "STATE", "FOR", "POA", "SSID", "SIGNAL", "P(LOSS 2s)", "PATH"}}
	for i := range s.Links {
		l := &s.Links[i]
		name, since, signal := show.Unknown, show.Unknown, show.Unknown
		if l.Facts != nil {
			name = show.Name(l.Facts.Name)
		}
		if !l.Since.IsZero() {
			since = show.Span(a.ago(l.Since))
		}
		if v, ok := show.Signal(&l.Values); ok {
			signal = v
		}
		rows = append(rows, []string{show.Name(l.Link), name, linkState(l), since, show.Name(l.PoA), show.SSID(l.SSID), signal, lossWithin(l), paths(l)})
	}
	return show.Table(rows)
}

func linkState(l *mihf.LinkStatus) string {
	switch {
	case l.Prediction.Known():
		return "going down"
	case l.Up && l.HoldDown:
		return "up (held)"
	case l.Up:
		return "up"
	default:
		return "down"
	}
}

func lossWithin(l *mihf.LinkStatus) string {
	if l.Forecast == nil {
		return show.Unknown
	}
	return show.Probability(l.Forecast.Loss.Within(lossHorizon))
}

func paths(l *mihf.LinkStatus) string {
	var s []string
	if l.UsableIPv4 {
		s = append(s, "IPv4")
	}
	if l.UsableIPv6 {
		s = append(s, "IPv6")
	}
	if len(s) == 0 {
		return show.Unknown
	}
	return strings.Join(s, " ")
}

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get LINK", Short: "One link's parameters and state (Link_Get_Parameters)",
		Long: "get shows all that is known of one link: its id, or the name of its interface, is given.",
		Args: wants("LINK"), ValidArgsFunction: a.completeLinks,
		RunE: a.with(func(ctx context.Context, c clients.Client, args []string) error {
			id, err := a.resolve(ctx, c, args[0])
			if err != nil {
				return err
			}
			l, err := ask(ctx, a, func(ctx context.Context) (mihf.LinkStatus, error) { return c.Parameters(ctx, id) })
			if err != nil {
				return linkHint(err)
			}
			if a.json {
				return a.printJSON(a.encoder("").LinkStatus(&l))
			}
			return a.print(a.linkLines(&l)...)
		}),
	}
}

// linkHint tells where links are found.
func linkHint(err error) error { return notFoundHint(err, `"mihctl links" shows the links`) }

// resolve turns a link's id or its interface's name into the id.
func (a *app) resolve(ctx context.Context, c clients.Client, arg string) (mihf.LinkID, error) {
	if mihf.LinkID(arg).Valid() {
		return mihf.LinkID(arg), nil
	}
	s, err := ask(ctx, a, c.Snapshot)
	if err != nil {
		return "", err
	}
	for i := range s.Links {
		if f := s.Links[i].Facts; f != nil && (f.Name == arg || mihf.EscapeString(f.Name) == arg) {
			return s.Links[i].Link, nil
		}
	}
	return "", linkHint(fmt.Errorf("%w: link %q", mihf.ErrNotFound, arg))
}

// association shows a link's attachment, with what carries it where that is known.
func association(l *mihf.LinkStatus) string {
	if l.Technology == "" {
		return l.Association.String()
	}
	return l.Association.String() + ", " + show.Text(l.Technology)
}

func (a *app) linkLines(l *mihf.LinkStatus) []string {
	state := linkState(l)
	if !l.Since.IsZero() {
		state += " for " + show.Span(a.ago(l.Since))
	}
	rows := [][]string{
		{"link", show.Name(l.Link)},
		{"state", state},
		{"association", association(l)},
		{"poa", show.Name(l.PoA)},
		{"ssid", show.SSID(l.SSID)},
		{"path", paths(l)},
	}
	rows = append(rows, factRows(l.Facts)...)
	l.Values.All(func(p mihf.Parameter, v float64) bool {
		rows = append(rows, []string{p.String(), show.Value(p, v)})
		return true
	})
	if !l.ValuesAt.IsZero() {
		rows = append(rows, []string{"values from", show.Span(a.ago(l.ValuesAt)) + " ago"})
	}
	if l.Forecast != nil {
		rows = append(rows, []string{"P(loss in 2 s)", lossWithin(l)}, []string{"time to loss", quantiles(&l.Forecast.Loss)})
	}
	if p, ok := l.Prediction.Get(); ok {
		rows = append(rows, []string{"prediction", fmt.Sprintf("%s rev %d: %s", p.ID, p.Revision, show.Text(conv.ReasonText(&p)))})
	}
	if l.LCI != nil {
		rows = append(rows, []string{"characteristics", strings.TrimPrefix(show.LCI(l.LCI), "characteristics ")})
	}
	return show.Table(rows)
}

func factRows(f *mihf.LinkFacts) [][]string {
	if f == nil {
		return nil
	}
	rows := [][]string{
		{"interface", fmt.Sprintf("%s, index %d", show.Name(f.Name), f.Index)},
		{"hardware", show.Name(f.HardwareAddr)},
		{"oper state", f.Oper.String()},
		{"mtu", strconv.Itoa(f.MTUBytes) + " bytes"},
	}
	for i := range f.Addresses {
		rows = append(rows, []string{"address", show.LinkAddress(&f.Addresses[i])})
	}
	for _, r := range f.Defaults {
		rows = append(rows, []string{"default route", fmt.Sprintf("%s by %s metric %d table %d", show.Family(r.IPv6), show.Address(r.Gateway), r.Metric, r.Table)})
	}
	return rows
}

// quantiles shows the times within which a cause comes, given that it comes.
func quantiles(c *mihf.Incidence) string {
	var s []string
	for _, q := range []struct {
		p    float64
		name string
	}{{0.1, "p10"}, {0.5, "p50"}, {0.9, "p90"}} {
		d, ok := c.Quantile(q.p)
		if !ok {
			return "none expected within 10 s"
		}
		s = append(s, q.name+" "+show.Span(d))
	}
	return strings.Join(s, ", ")
}
