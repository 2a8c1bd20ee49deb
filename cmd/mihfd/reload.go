package main

import (
	"log/slog"

	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/config"
)

// reloader reads the configuration again. It is used by one goroutine.
type reloader struct {
	log     *slog.Logger
	level   *slog.LevelVar
	current config.Config // in force
	load    func() (config.Config, error)
	access  func(*access.Table) // puts another in force
}

// reload applies what can be changed while the daemon runs and names the keys that need a
// restart. A configuration with a mistake changes nothing.
func (r *reloader) reload() {
	next, err := r.load()
	if err != nil {
		r.log.Error("configuration refused, the one in force stays", "error", err)
		return
	}
	applied, restart := []string{}, []string{}
	for _, key := range config.Changed(&r.current, &next) {
		if config.Live(key) {
			applied = append(applied, key)
		} else {
			restart = append(restart, key)
		}
	}
	r.current.Log.Level, r.current.Access = next.Log.Level, next.Access
	r.level.Set(next.Log.Level)
	r.access(wiring.Access(&next.Access))
	r.log.Info("configuration read", "applied", applied, "needs_restart", restart)
	if len(restart) > 0 {
		r.log.Warn("changed keys need a restart", "keys", restart)
	}
}
