package cli

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"mihf.dev/cmd/internal/wiring"
)

// version is what version prints.
type version struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v version) String() string {
	return "mihctl " + v.Version + " " + v.Go + " " + v.Platform
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
	return version{Version: wiring.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}
