package cli

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what version prints.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v version) String() string {
	s := "mihctl " + v.Version
	if v.Revision != "" {
		s += " (" + v.Revision + ")"
	}
	return s + " " + v.Go + " " + v.Platform
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "The program's version", Args: wants(),
		RunE: a.run(func(context.Context, []string) error {
			v := thisVersion()
			if a.json {
				return a.printValue(v)
			}
			return a.print(v.String())
		}),
	}
}

func thisVersion() version {
	v := version{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
