package daemon

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns the task that obeys signals. SIGINT or SIGTERM calls stop, which should
// end the daemon's context; another one kills the process. SIGHUP calls reload, between
// RELOADING=1 and READY=1; reload reports its own errors. SIGHUP does nothing while the
// daemon stops.
func Signals(stop context.CancelFunc, reload func(), log *slog.Logger, notify Notify) Task {
	return NewTask("signals", func(ctx context.Context, ready func()) error {
		ends, hangups := make(chan os.Signal, 1), make(chan os.Signal, 1)
		signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Ignore(syscall.SIGHUP)
		defer signal.Stop(ends)
		ready()
		return obey(ctx, ends, hangups, func(s os.Signal) {
			signal.Stop(ends) // before anybody is told that we stop
			log.Info("signal received", "signal", s.String())
			stop()
		}, func() {
			notify.tell(log, reloading())
			reload()
			notify.tell(log, Ready)
		})
	})
}

func obey(ctx context.Context, ends, hangups <-chan os.Signal, stop func(os.Signal), reload func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-ends:
			stop(s)
			return nil
		case <-hangups:
			reload()
		}
	}
}
