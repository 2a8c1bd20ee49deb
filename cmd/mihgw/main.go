// Command mihgw acts for programs that know nothing of a mobility event broker.
//
// docs/mihgw.md describes it. "mihgw tcp" makes the TCP connections of this host survive
// the changes of its links; it needs CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/cmd/mihgw/internal/live"
	"mihf.dev/mihf/clock"
	"mihf.dev/transports/tcpadjust/kernel"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	started := false
	root := &cobra.Command{
		Use: "mihgw", Short: "Act for programs that know nothing of a mobility event broker",
		Version: wiring.Version(), SilenceErrors: true, SilenceUsage: true,
	}
	root.SetVersionTemplate("mihgw {{.Version}}\n")
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetArgs(args)
	root.AddCommand(tcpCommand(&started, out, errOut)) //nolint:contextcheck // each command gets it from ExecuteContext
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case !started:
		_, _ = fmt.Fprintf(errOut, "mihgw: %v\nRun \"mihgw --help\" for usage.\n", err)
		return exitUsage
	}
	_, _ = fmt.Fprintf(errOut, "mihgw: %v\n", err)
	if errors.Is(err, kernel.ErrUnsupported) {
		_, _ = fmt.Fprintln(errOut, "Run it as root or with CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW, on Linux 6.1 or newer with BTF.")
	}
	return exitFailed
}

// options are the flags of "mihgw tcp".
type options struct {
	broker, journal string
	uids            []uint
	cfg             live.Config
	json            bool
}

func tcpCommand(started *bool, out, errOut io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "tcp", Short: "Make this host's TCP connections survive the changes of its links",
		Long: "tcp follows a broker. When a path is usable again the connections over it go on at once;\n" +
			"with --adjust their windows fit the new path, where its characteristics are known;\n" +
			"with --freeze downloads are held before a loss that is forecast. It prints what it does.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, u := range o.uids {
				if u > math.MaxUint32 {
					return fmt.Errorf("--uid %d: there is no such user", u)
				}
			}
			*started = true
			return o.run(cmd.Context(), out, errOut)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.broker, "broker", clients.DefaultAddress(), "address of the broker's gRPC front")
	f.StringSliceVar(&o.cfg.Links, "link", nil, "only links with this name (may be given again)")
	f.UintSliceVar(&o.uids, "uid", nil, "only sockets of this user (may be given again)")
	f.BoolVar(&o.cfg.Adjust, "adjust", false, "fit windows to the new path")
	f.BoolVar(&o.cfg.Freeze, "freeze", false, "hold downloads before a loss that is forecast")
	f.BoolVar(&o.cfg.DryRun, "dry-run", false, "change nothing, and say what would be done")
	f.StringVar(&o.journal, "journal", "", "file that tells a later start what to put back; none where empty")
	f.BoolVar(&o.json, "json", false, "print an object a line")
	return cmd
}

func (o *options) run(ctx context.Context, out, errOut io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(errOut, nil))
	for _, u := range o.uids {
		o.cfg.UIDs = append(o.cfg.UIDs, uint32(u)) //nolint:gosec // checked
	}
	act, err := kernel.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, act.Close()) }()
	journal, err := live.OpenJournal(o.journal)
	if journal == nil {
		return err
	}
	if err != nil {
		log.Warn("a journal was left out", "error", err)
	}
	client, err := mihgrpc.Dial(o.broker, mihgrpc.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	o.cfg.Clock, o.cfg.Logger, o.cfg.Report = clock.Boot(), log, o.printer(out)
	return live.New(o.cfg, client, act, journal).Run(ctx)
}

// printer prints actions. One that can't be printed is not worth stopping for.
func (o *options) printer(out io.Writer) func(live.Action) {
	enc := json.NewEncoder(out)
	return func(a live.Action) {
		if o.json {
			_ = enc.Encode(a)
			return
		}
		var b strings.Builder
		if a.Dry {
			b.WriteString("would ")
		}
		fmt.Fprintf(&b, "%s", a.What)
		if a.Local.IsValid() {
			fmt.Fprintf(&b, " %v > %v", a.Local, a.Remote)
		}
		if a.Cwnd > 0 {
			fmt.Fprintf(&b, " window %d", a.Cwnd)
		}
		if a.Link != "" {
			fmt.Fprintf(&b, " on %s", a.Link)
		}
		if a.Why != "" {
			fmt.Fprintf(&b, ": nothing, %s", a.Why)
		}
		_, _ = fmt.Fprintln(out, b.String())
	}
}
