package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/mihf"
)

// completeFor bounds the question to the daemon while a shell completes.
const completeFor = 500 * time.Millisecond

// completeLinks gives the ids of the links, described by their interfaces' names.
func (a *app) completeLinks(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	ctx, cancel := context.WithTimeout(cmd.Context(), completeFor)
	defer cancel()
	s, err := c.Snapshot(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for i := range s.Links {
		l := &s.Links[i]
		item := mihf.EscapeString(string(l.Link))
		if l.Facts != nil {
			item += "\t" + mihf.EscapeString(l.Facts.Name)
		}
		out = append(out, item)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func completeKinds(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return kindNames(), cobra.ShellCompDirectiveNoFileComp
}

func parameterNames() []string {
	var s []string
	for p := range mihf.Parameter(mihf.NumParameters) {
		s = append(s, p.String())
	}
	return s
}

// completeThreshold gives links, then parameters.
func (a *app) completeThreshold(cmd *cobra.Command, args []string, to string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return parameterNames(), cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeLinks(cmd, args, to)
}

// notFoundHint adds where to look to an error that says that something does not exist.
func notFoundHint(err error, hint string) error {
	if errors.Is(err, mihf.ErrNotFound) {
		return hinted{err, hint}
	}
	return err
}
