package wiring

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for _, tc := range []struct {
		main     string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", []debug.BuildSetting{commit}, "v1.2.3"},
		{"(devel)", nil, "devel"},
		{"", []debug.BuildSetting{commit}, "devel-0123456789ab"},
		{"(devel)", []debug.BuildSetting{commit, {Key: "vcs.modified", Value: "true"}}, "devel-0123456789ab+changed"},
	} {
		if got := version(&debug.BuildInfo{Main: debug.Module{Version: tc.main}, Settings: tc.settings}); got != tc.want {
			t.Errorf("version %q, want %q", got, tc.want)
		}
	}
	if Version() == "" {
		t.Error("no version")
	}
}
