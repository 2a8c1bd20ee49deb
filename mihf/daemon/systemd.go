package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// Notify tells the service manager a state, in the form of sd_notify(3).
type Notify func(state string) error

// States, as sd_notify(3) has them.
const (
	Ready    = systemd.SdNotifyReady
	Stopping = systemd.SdNotifyStopping
	Alive    = systemd.SdNotifyWatchdog
)

// Systemd tells systemd, if it started the process and wants to know ($NOTIFY_SOCKET).
func Systemd(state string) error {
	_, err := systemd.SdNotify(false, state)
	return err
}

// reloading is the state while the configuration is read: with the moment, which systemd
// needs to tell it from an earlier READY=1.
func reloading() string { return systemd.SdNotifyReloading + "\n" + systemd.SdNotifyMonotonicUsec() }

func (n Notify) tell(log *slog.Logger, state string) {
	if n == nil {
		return
	}
	if err := n(state); err != nil {
		log.Warn("service manager not told", "state", state, "error", err)
	}
}

// WatchdogInterval returns how long the service manager waits for a sign of life before it
// kills the process ($WATCHDOG_USEC); 0: it doesn't.
func WatchdogInterval() (time.Duration, error) {
	d, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		return 0, fmt.Errorf("watchdog interval: %w", err)
	}
	return d, nil
}

// Watchdog returns the task that feeds the service manager's watchdog twice in each
// interval, as long as probe returns nil within half an interval.
func Watchdog(interval time.Duration, log *slog.Logger, notify Notify, probe func(context.Context) error) Task {
	return NewTask("watchdog", func(ctx context.Context, ready func()) error {
		ready()
		tick := time.NewTicker(interval / 2)
		defer tick.Stop()
		failing := false
		for {
			err := tryWithin(ctx, interval/2, probe)
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				notify.tell(log, Alive)
			case !failing:
				log.Error("watchdog not fed", "error", err)
			}
			failing = err != nil
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
}

func tryWithin(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}
