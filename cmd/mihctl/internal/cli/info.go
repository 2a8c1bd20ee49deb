package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

func (a *app) infoCommand() *cobra.Command {
	var ssids, poas []string
	cmd := &cobra.Command{
		Use: "info [LINK]", Short: "The points of attachment that links have heard or been attached to (MIH_Get_Information)",
		Long: "info shows what each link has learned of points of attachment since the daemon was started: the\n" +
			"network, the newest signal, when it was last and first heard, and how often the link was attached.",
		Example: "  mihctl info wlan0\n  mihctl info --ssid campus --json",
		Args:    mayTake(1), ValidArgsFunction: a.completeLinks,
	}
	s := cmd.Flags()
	s.StringArrayVar(&ssids, "ssid", nil, `only of this network, written as it is shown (\xNN for an octet); may be given more than once`)
	s.StringArrayVar(&poas, "poa", nil, "only this point of attachment; may be given more than once")
	cmd.RunE = a.with(func(ctx context.Context, c clients.Client, args []string) error {
		req, err := informationRequest(ssids, poas)
		if err != nil {
			return err
		}
		for _, arg := range args {
			id, err := a.resolve(ctx, c, arg)
			if err != nil {
				return err
			}
			req.Links = append(req.Links, id)
		}
		return a.information(ctx, c, req)
	})
	return cmd
}

func informationRequest(ssids, poas []string) (req mihf.InformationRequest, err error) {
	for _, s := range ssids {
		name, err := mihf.Unescape(s)
		if err != nil {
			return req, usagef("--ssid: %w; write a backslash as \\x5c", err)
		}
		req.SSIDs = append(req.SSIDs, name)
	}
	for _, p := range poas {
		req.PoAs = append(req.PoAs, mihf.PoA(p))
	}
	if err := req.Check(); err != nil {
		return req, usageError{err}
	}
	return req, nil
}

func (a *app) information(ctx context.Context, c clients.Client, req mihf.InformationRequest) error {
	i, err := ask(ctx, a, func(ctx context.Context) (*mihf.Information, error) { return c.Information(ctx, req) })
	if err != nil {
		return err
	}
	if !a.json {
		return a.print(a.informationTable(i)...)
	}
	for k := range i.PoAs {
		if err := a.printJSON(a.encoder("").PoAInformation(&i.PoAs[k])); err != nil {
			return err
		}
	}
	return nil
}

// informationTable has the links one below the other, each with its own point of attachment
// first.
func (a *app) informationTable(i *mihf.Information) []string {
	slices.SortStableFunc(i.PoAs, func(x, y mihf.PoAInformation) int {
		byLink := cmp.Compare(x.Link, y.Link)
		if byLink == 0 && x.Attached != y.Attached {
			return map[bool]int{true: -1, false: 1}[x.Attached]
		}
		return byLink
	})
	rows := [][]string{{"LINK", "POA", "SSID", "SIGNAL", "HEARD", "FIRST", "ATTACHED"}}
	for k := range i.PoAs {
		p := &i.PoAs[k]
		rows = append(rows, []string{
			show.Name(p.Link), show.Name(p.PoA), network(p.SSID), a.signalThere(p), show.Span(a.ago(p.LastHeard)) + " ago",
			show.Span(a.ago(p.FirstHeard)) + " ago", attached(p),
		})
	}
	lines := show.Table(rows)
	if i.Forgotten > 0 {
		lines = append(lines, fmt.Sprintf("%d more were heard before and forgotten", i.Forgotten))
	}
	return lines
}

// network tells a name that is hidden from one that is not known.
func network(ssid []byte) string {
	if ssid != nil && len(ssid) == 0 {
		return "(hidden)"
	}
	return show.SSID(ssid)
}

// signalThere shows the signal, with its age where something newer was heard without one.
func (a *app) signalThere(p *mihf.PoAInformation) string {
	var vs mihf.Values
	at := map[mihf.Parameter]mihf.Time{}
	for _, r := range p.Readings {
		vs.Set(r.Parameter, r.Value)
		at[r.Parameter] = r.At
	}
	param, v, ok := show.SignalOf(&vs)
	if !ok {
		return show.Unknown
	}
	text := show.Value(param, v)
	if t := at[param]; t.Before(p.LastHeard.Add(-staleSignal)) {
		text += ", " + show.Span(a.ago(t)) + " ago"
	}
	return text
}

// staleSignal is how much older than the newest news of a point of attachment a signal may
// be without a word about it.
const staleSignal = 2 * time.Second

func attached(p *mihf.PoAInformation) string {
	switch {
	case p.Attached && p.Attachments == 1:
		return "now"
	case p.Attached:
		return fmt.Sprintf("now, %d times in all", p.Attachments)
	case p.Attachments == 1:
		return "once"
	case p.Attachments > 1:
		return fmt.Sprintf("%d times", p.Attachments)
	}
	return show.Unknown
}
