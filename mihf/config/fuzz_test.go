package config_test

import (
	"errors"
	"strings"
	"testing"

	"mihf.dev/mihf/config"
)

// FuzzParse: no text makes the parser panic; an error always says where, what and why; and
// what is taken holds the relations that the core relies on.
func FuzzParse(f *testing.F) {
	f.Add(config.Sample())
	f.Add(switchedOff.ReplaceAllString(config.Sample(), "$1"))
	f.Add("[link]\nsettle = 3\nx.y = [[{a = 1}]]\n")
	f.Add("link = { settle = \"1ms\", threshold = 1 }\n[[grpc]]\n")
	f.Add("[hint]\nlease = \"1ns\"\nlease = \"1ns\"\n\"\".\"\" = nan")
	f.Add(grant + "certificates = [\"a\"]\nas_uid = 7\n")
	f.Add("access.grants = [{uids = [1], roles = [\"see\"]}, 1, {}]\n[[access]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := config.Parse("file", []byte(text), known)
		if err != nil {
			errs, ok := errors.AsType[config.Errors](err)
			if !ok || len(errs) == 0 {
				t.Fatalf("error %v is not of type Errors", err)
			}
			for _, e := range errs {
				if e.File != "file" || e.Reason == "" || e.Line < 0 || e.Line > 1+strings.Count(text, "\n") {
					t.Errorf("error %+v", *e)
				}
			}
			return
		}
		l, h := cfg.Link, cfg.Hint
		if !(l.RollbackBelow < l.Threshold && l.Threshold <= l.GuardThreshold && l.GuardThreshold <= 1 && l.Horizon <= l.MaxOpen) {
			t.Errorf("link %+v", l)
		}
		if h.Lease <= 0 || h.Lease > h.MaxFreeze || h.MinMargin > h.MaxMargin || h.Backoff > h.MaxBackoff {
			t.Errorf("hint %+v", h)
		}
		if g := cfg.GRPC; g.Listen != "" && (g.Cert == "" || g.Key == "" || g.ClientCA == "") {
			t.Errorf("grpc %+v", g)
		}
	})
}
