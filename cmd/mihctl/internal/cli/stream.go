package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/cmd/internal/liveview"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

// filter is what a stream's flags say.
type filter struct {
	after uint64
	boot  string
	kinds []string
	links []string
	count uint

	noFollow bool
	since    string
	from     time.Time // what since says
}

func (f *filter) flags(c *cobra.Command, a *app, kinds bool) {
	s := c.Flags()
	s.Uint64Var(&f.after, "after", 0, "resume behind this sequence instead of beginning with the state")
	s.StringVar(&f.boot, "boot", "", "the run that --after belongs to (default the daemon's own)")
	s.StringSliceVar(&f.links, "link", nil, "only of this link; may be given more than once")
	s.UintVar(&f.count, "count", 0, "end after so many, not counting the state at the beginning (default: go on)")
	s.BoolVar(&f.noFollow, "no-follow", false, "end when all is printed that was published before")
	must(c.RegisterFlagCompletionFunc("link", a.completeLinks))
	if kinds {
		s.StringVar(&f.since, "since", "", "with --via nats: first what happened since then, as far as it was kept; how long ago (15m, 2h, 7d) or\n"+
			"a time (14:30, 2026-02-03, 2026-02-03 14:30:05, RFC 3339)")
		must(c.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions))
		s.StringSliceVar(&f.kinds, "kind", nil, "only of this kind; may be given more than once")
		must(c.RegisterFlagCompletionFunc("kind", completeKinds))
	}
}

// must panics for a programmer's error.
func must(err error) {
	if err != nil {
		panic("mihctl: " + err.Error())
	}
}

// request turns the flags into a subscription.
func (f *filter) request(ctx context.Context, a *app, c clients.Client) (mihf.SubscribeRequest, error) {
	kinds, err := parseKinds(f.kinds)
	if err != nil {
		return mihf.SubscribeRequest{}, err
	}
	req := mihf.SubscribeRequest{After: f.after, Kinds: kinds, Present: f.noFollow}
	if f.since != "" {
		if f.from, err = f.sinceWhen(a.front(), time.Now()); err != nil {
			return req, err
		}
	}
	if f.boot != "" {
		if req.Boot, err = mihf.ParseBootID(f.boot); err != nil {
			return req, usageError{err}
		}
	}
	for _, name := range f.links {
		id, err := a.resolve(ctx, c, name)
		if err != nil {
			return req, err
		}
		req.Links = append(req.Links, id)
	}
	return req, nil
}

func parseKinds(names []string) (mihf.KindSet, error) {
	var set mihf.KindSet
	for _, name := range names {
		k, ok := mihf.ParseKind(name)
		if !ok {
			return 0, usagef("--kind %s: want one of %s", name, strings.Join(kindNames(), ", "))
		}
		set |= mihf.Kinds(k)
	}
	return set, nil
}

func kindNames() []string {
	var s []string
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		s = append(s, k.String())
	}
	return s
}

func (a *app) eventsCommand() *cobra.Command {
	f := &filter{}
	cmd := &cobra.Command{
		Use: "events", Short: "Follow the events, one a line: old → new, link, reason, sequence",
		Long: "events follows the events. It begins with the state, or behind a sequence that --after names;\n" +
			"what is missing then is stated as a gap, before the state. It goes on when the daemon restarts.\n" +
			"With --since it begins with what happened since then, where a history is kept.",
		Args: wants(),
		RunE: a.with(func(ctx context.Context, c clients.Client, _ []string) error {
			req, err := f.request(ctx, a, c)
			if err != nil {
				return err
			}
			return a.stream(ctx, c, req, f)
		}),
	}
	f.flags(cmd, a, true)
	return cmd
}

func (a *app) hintsCommand() *cobra.Command {
	f := &filter{}
	cmd := &cobra.Command{
		Use: "hints", Short: "Follow the hints to the flows that you may see",
		Args: wants(),
		RunE: a.with(func(ctx context.Context, c clients.Client, _ []string) error {
			req, err := f.request(ctx, a, c)
			if err != nil {
				return err
			}
			req.HintsOnly = true
			return a.stream(ctx, c, req, f)
		}),
	}
	f.flags(cmd, a, false)
	return cmd
}

func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Live view of links, forecasts, flows and events",
		Long: "watch shows links with their signal and forecast, flows and the last events in the terminal; q quits.\n" +
			"Where standard output is no terminal, or with --json, it prints changes, one a line.",
		Args: wants(),
		RunE: a.with(func(ctx context.Context, c clients.Client, _ []string) error {
			if _, err := ask(ctx, a, c.Status); err != nil {
				return err
			}
			if a.json {
				err := a.stream(ctx, c, mihf.SubscribeRequest{Hints: true}, &filter{})
				if errors.Is(err, mihf.ErrPermission) { // who may see no hints sees the rest
					err = a.stream(ctx, c, mihf.SubscribeRequest{}, &filter{})
				}
				return err
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stop := a.watchReader(cancel)
			defer stop()
			return liveview.Run(ctx, c, a.out)
		}),
	}
}

// stream prints a subscription until ctx ends, which is no error, or it
// has printed as much as the filter says.
func (a *app) stream(ctx context.Context, c clients.Client, req mihf.SubscribeRequest, f *filter) error {
	s, err := ask(ctx, a, c.Status) // tells whether there is a daemon
	if err != nil {
		return err
	}
	p := &printer{a: a, changes: &show.Changes{Time: a.wallTime}, node: s.Node, count: f.count}
	if !f.from.IsZero() {
		if err := p.past(ctx, c, f.from, &req); err != nil || p.enough() {
			return err
		}
	}
	return p.follow(ctx, c, req)
}

// printer prints a stream.
type printer struct {
	a           *app
	changes     *show.Changes
	node        mihf.NodeID
	count, done uint // of events and hints; a count of 0: no end
}

func (p *printer) enough() bool { return p.count != 0 && p.done >= p.count }

// follow prints a subscription.
func (p *printer) follow(ctx context.Context, c clients.Client, req mihf.SubscribeRequest) error {
	feed, err := c.Follow(ctx, req)
	if err != nil {
		return linkHint(p.a.explained(ctx, err))
	}
	defer feed.Close()
	stop := p.a.watchReader(feed.Close)
	defer stop()
	buf := make([]mihf.Delivery, 64)
	for !p.enough() {
		n, err := feed.Next(buf)
		switch {
		case ctx.Err() != nil, errors.Is(err, mihf.ErrClosed), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.a.explained(ctx, fmt.Errorf("the subscription ended: %w", err))
		}
		for i := range buf[:n] {
			if err := p.print(&buf[i]); err != nil || p.enough() {
				return err
			}
		}
	}
	return nil
}

// print prints a delivery.
func (p *printer) print(d *mihf.Delivery) error {
	if d.Kind == mihf.DeliverEvent || d.Kind == mihf.DeliverHint {
		p.done++
	}
	if p.a.json {
		return p.a.printJSON(delivery(p.a.encoder(p.node), d))
	}
	return p.a.printLine(p.changes.Line(d), p.changes.Indent())
}
