package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

func (a *app) lciCommand() *cobra.Command {
	return &cobra.Command{
		Use: "lci [LINK]", Short: "What is known of the links' capacity, delay, loss and MTU",
		Args: mayTake(1), ValidArgsFunction: a.completeLinks,
		Long: "lci shows the link characteristics that are known, each with its source; with --json also with age\n" +
			"and confidence. A PHY rate is never a capacity.",
		RunE: a.with(func(ctx context.Context, c clients.Client, args []string) error {
			only := mihf.LinkID("")
			if len(args) > 0 {
				var err error
				if only, err = a.resolve(ctx, c, args[0]); err != nil {
					return err
				}
			}
			s, err := ask(ctx, a, c.Snapshot)
			if err != nil {
				return err
			}
			if only != "" && !slices.ContainsFunc(s.Links, func(l mihf.LinkStatus) bool { return l.Link == only }) {
				return fmt.Errorf("%w: link %q", mihf.ErrNotFound, string(only))
			}
			rows := [][]string{{"LINK", "POA", "CHARACTERISTICS"}}
			for i := range s.Links {
				l := s.Links[i].LCI
				if l == nil || (only != "" && l.Link != only) {
					continue
				}
				if !a.json {
					rows = append(rows, []string{show.Name(l.Link), show.Name(l.PoA), strings.TrimPrefix(show.LCI(l), "characteristics ")})
					continue
				}
				if err := a.printJSON(a.encoder(s.Node).LCI(l)); err != nil {
					return err
				}
			}
			if a.json {
				return nil
			}
			return a.print(show.Table(rows)...)
		}),
	}
}
