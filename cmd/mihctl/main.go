// Command mihctl shows and steers a mobility event broker from the command line.
//
// docs/mihctl.md describes its commands. It speaks to the daemon over gRPC and keeps no
// state of its own; "replay", "demo" and "bench" need no daemon.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mihf.dev/cmd/mihctl/internal/cli"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that has enough shows as an error of a write
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
