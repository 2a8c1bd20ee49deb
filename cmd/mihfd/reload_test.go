package main

import (
	"errors"
	"log/slog"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/config"
)

// A grant that is added takes effect at the reload, one that is gone ends there; a mistake
// takes nothing from anybody.
func TestReloadOfAccess(t *testing.T) {
	next, mistake := config.Defaults(), error(nil)
	var table *access.Table
	r := &reloader{
		log: slog.New(slog.DiscardHandler), level: new(slog.LevelVar), current: config.Defaults(),
		load:   func() (config.Config, error) { return next, mistake },
		access: func(a *access.Table) { table = a },
	}
	user := mihf.Caller{UID: mihf.Some(uint32(4241))}
	next.Access.Grants = []config.Grant{{UIDs: []uint32{4241}, Roles: []string{"command"}}}
	if r.reload(); !table.May(user, access.Command) || !table.May(user, access.See) || len(r.current.Access.Grants) != 1 {
		t.Errorf("after the grant: %v, in force %+v", table.Roles(user), r.current.Access)
	}
	mistake = errors.New("a mistake")
	if r.reload(); !table.May(user, access.Command) {
		t.Error("a mistake has changed something")
	}
	next, mistake = config.Defaults(), nil
	if r.reload(); table.May(user, access.Command) {
		t.Errorf("after its end: %v", table.Roles(user))
	}
}
