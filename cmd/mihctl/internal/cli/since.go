package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"mihf.dev/clients"
	"mihf.dev/clients/mihnats"
	"mihf.dev/mihf"
)

// sinceWhen reads --since.
func (f *filter) sinceWhen(front string, now time.Time) (time.Time, error) {
	switch {
	case front != viaNATS:
		return time.Time{}, hinted{
			usagef("--since %s: only NATS keeps a history", f.since),
			"add --via nats; over any front --after SEQUENCE gives what the daemon still remembers",
		}
	case f.after != 0:
		return time.Time{}, usagef("--since and --after: give one of them")
	}
	t, ok := parseSince(f.since, now)
	if !ok {
		return t, hinted{usagef("--since %q is neither a length of time nor a time", f.since), `for example 15m, 2h, 7d, 14:30, 2026-02-03, "2026-02-03 14:30:05" or 2026-02-03T14:30:05Z`}
	}
	if t.After(now) {
		return t, usagef("--since %s: is still to come", f.since)
	}
	return t, nil
}

// parseSince reads a length of time before now, or a time; a time of day is the newest one
// that is past.
func parseSince(s string, now time.Time) (time.Time, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return now.AddDate(0, 0, -int(n)), err == nil //nolint:gosec // 16 bits
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), d >= 0
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t, true
		}
	}
	for _, form := range []string{"15:04:05", "15:04"} {
		t, err := time.Parse(form, s)
		if err != nil {
			continue
		}
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if at.After(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()-1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		}
		return at, true
	}
	return time.Time{}, false
}

// past prints what was kept since a moment, and lets the request resume behind it.
func (p *printer) past(ctx context.Context, c clients.Client, since time.Time, req *mihf.SubscribeRequest) error {
	over, ok := c.(*mihnats.Client)
	if !ok {
		return errors.New("--since: only NATS keeps a history") // sinceWhen has refused it
	}
	p.changes.Time = p.a.wallDate
	previous := uint64(0)
	for e, err := range over.History(ctx, since) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return notFoundHint(p.a.explained(ctx, err), "set nats.history in the daemon's configuration; until then leave out --since")
		}
		req.After, req.Boot = e.Event.Sequence, e.Event.Boot
		if !asked(req, &e.Event) {
			continue
		}
		d := mihf.Delivery{Kind: mihf.DeliverEvent, Previous: previous, Event: e.Event}
		previous = e.Event.Sequence
		if err := p.print(&d); err != nil || p.enough() {
			return err
		}
	}
	return nil
}

// asked reports whether a subscription would give an event.
func asked(req *mihf.SubscribeRequest, e *mihf.Event) bool {
	return (req.Kinds == 0 || req.Kinds.Has(e.Kind)) && (len(req.Links) == 0 || e.Link == "" || slices.Contains(req.Links, e.Link))
}

// wallDate shows a moment with its day.
func (a *app) wallDate(t mihf.Time) string {
	return a.clock.Wall(t).Format("2006-01-02 15:04:05.000")
}
