package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/show"
)

func (a *app) lciCommand() *cobra.Command {
	return &cobra.Command{
		Use: "lci", Short: "What is known of the links' capacity, delay, loss and MTU", Args: wants(),
		Long: "lci shows the link characteristics that are known, each with its source; with --json also with age\n" +
			"and confidence. A PHY rate is never a capacity.",
		RunE: a.with(func(ctx context.Context, c clients.Client, _ []string) error {
			s, err := ask(ctx, a, c.Snapshot)
			if err != nil {
				return err
			}
			rows := [][]string{{"LINK", "POA", "CHARACTERISTICS"}}
			for i := range s.Links {
				l := s.Links[i].LCI
				if l == nil {
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
