// Command mihsim runs the experiments of the papers on the simulation bed.
//
// docs/mihsim.md describes it. It needs no daemon and no privileges.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mihf.dev/cmd/mihsim/internal/cli"
	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/cmd/mihsim/internal/freeze"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that has enough shows as an error of a write
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(cli.Main(ctx, experiments(), os.Args[1:], os.Stdout, os.Stderr))
}

// experiments lists all that there are, by paper.
func experiments() []experiment.Experiment {
	return freeze.Experiments()
}
