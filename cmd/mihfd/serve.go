package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/cmd/internal/liveview"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/front/grpcfront"
)

// gcPercent keeps what many subscribers cost resident near what they hold: gRPC allocates
// for each message sent, and the default lets that garbage double the heap. GOGC overrides
// it.
const gcPercent = 50

// serve runs the daemon until it is told to end, and returns the exit status.
func serve(caught *daemon.Caught, o options, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	p := paths()
	over := caught.Meanwhile(func(s os.Signal) { // a configuration may be a pipe that nobody writes to
		say(stderr, "mihfd:", s, "while starting")
		os.Exit(exitOK) // nothing was begun that would have to be ended
	})
	cfg, file, err := load(o.config, p)
	over()
	if err != nil {
		say(stderr, err)
		return exitUsage
	}
	stateErr := os.MkdirAll(p.State, 0o750)
	apart := false // the log is not where the user looks
	if o.live {
		f, err := logFile(p.State)
		if err != nil {
			say(stderr, "mihfd: log of the live view:", err)
			return exitFailed
		}
		if f != nil {
			defer func() { _ = f.Close() }() // every line was written when it was logged
			stderr, apart = f, true
		}
	}
	log, level := newLogger(&cfg.Log, stderr)
	if stateErr != nil {
		log.Warn("no state directory", "error", stateErr)
	}
	log.Info("starting", "version", wiring.Version(), "config", cmp.Or(file, "none"))
	r := &reloader{log: log, level: level, current: cfg, load: func() (config.Config, error) {
		cfg, _, err := load(o.config, p)
		return cfg, err
	}}
	if err := start(caught, &cfg, o, p, r, log); err != nil {
		failed(log, err)
		if apart {
			say(os.Stderr, "mihfd:", err)
			if errors.Is(err, grpcfront.ErrRunning) {
				say(os.Stderr, `"mihctl watch" shows what that one sees; to run this one, stop it or set grpc.socket`)
			}
		}
		return exitFailed
	}
	log.Info("stopped")
	return exitOK
}

// failed logs why the daemon ended.
func failed(log *slog.Logger, err error) {
	args := []any{"error", err}
	if p, ok := errors.AsType[*daemon.PanicError](err); ok {
		args = append(args, "stack", string(p.Stack))
	}
	log.Error("failed", args...)
}

// start assembles the daemon and serves its tasks.
func start(caught *daemon.Caught, cfg *config.Config, o options, p config.Paths, r *reloader, log *slog.Logger) error {
	a, err := wiring.Assemble(cfg, wiring.Options{Socket: p.Socket, State: p.State, Logger: log, Version: wiring.Version()})
	if err != nil {
		return err
	}
	r.access = a.SetAccess
	log.Info("assembled", "node", a.Broker.Node(), "boot_id", a.Broker.Boot().String(), "address", "unix://"+a.Socket)
	if cfg.GRPC.Listen != "" {
		log.Info("TCP served", "address", cfg.GRPC.Listen)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tasks := append([]daemon.Task{caught.Obey(stop, r.reload, log, daemon.Systemd)}, a.Tasks...)
	interval, err := daemon.WatchdogInterval()
	if err != nil {
		log.Warn("no watchdog", "error", err)
	}
	if interval > 0 {
		tasks = append(tasks, daemon.Watchdog(interval, log, daemon.Systemd, wiring.Probe(a.Broker.Broker)))
	}
	if cfg.Metrics.Listen != "" {
		var failures atomic.Uint64
		a.Broker.Add(func() []mihf.CounterValue {
			return []mihf.CounterValue{{Name: "mihf_metrics_accept_errors_total", Value: failures.Load()}}
		})
		tasks = append(tasks, metricsTask(cfg.Metrics.Listen, a.Broker.Status, &failures, log))
	}
	if o.live {
		tasks = append(tasks, liveTask("unix://"+a.Socket, stop))
	}
	return daemon.Serve(ctx, log, daemon.Systemd, tasks...)
}

// liveTask returns the task that shows the live view. The user ends it, and with it the
// daemon.
func liveTask(address string, stop context.CancelFunc) daemon.Task {
	return daemon.NewTask("live view", func(ctx context.Context, ready func()) error {
		defer stop()
		client, err := mihgrpc.Dial(address, mihgrpc.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }() // nothing is under way
		ready()
		return liveview.Run(ctx, client, os.Stdout)
	})
}
