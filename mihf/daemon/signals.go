package daemon

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// reloadGrace is how long a reload under way may hold up the end of the daemon.
const reloadGrace = time.Second

// Caught are the signals that came since [Catch].
type Caught struct{ ends, hangups chan os.Signal }

// Catch keeps SIGINT, SIGTERM and SIGHUP, one of each kind, for the task that [Caught.Obey]
// returns: from now on none of them kills the process, however early it comes.
func Catch() *Caught {
	c := &Caught{ends: make(chan os.Signal, 1), hangups: make(chan os.Signal, 1)}
	signal.Notify(c.ends, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(c.hangups, syscall.SIGHUP)
	return c
}

// Release lets signals do again what they do by themselves: for a program that is no daemon
// after all.
func (c *Caught) Release() {
	signal.Stop(c.ends)
	signal.Stop(c.hangups)
}

// Meanwhile calls end, from a goroutine of its own, if a signal that ends the daemon comes
// before over is called: for what must be done before the tasks run, and may take long. Over
// waits for that goroutine.
func (c *Caught) Meanwhile(end func(os.Signal)) (over func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case s := <-c.ends:
			end(s)
		case <-done:
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

// Obey returns the task that does what signals say. SIGINT or SIGTERM calls stop, which
// should end the daemon's context; another one kills the process. SIGHUP calls reload,
// between RELOADING=1 and READY=1; reload reports its own errors, and calls do not overlap.
// One that hangs, on a file that does not answer, keeps nobody from ending the daemon. SIGHUP
// does nothing while the daemon stops.
func (c *Caught) Obey(stop context.CancelFunc, reload func(), log *slog.Logger, notify Notify) Task {
	return NewTask("signals", func(ctx context.Context, ready func()) error {
		defer signal.Ignore(syscall.SIGHUP)
		defer signal.Stop(c.ends)
		ready()
		return obey(ctx, c.ends, c.hangups, func(s os.Signal) {
			signal.Stop(c.ends) // before anybody is told that we stop
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
	var reloaded chan error // of the reload under way; nil: none
	for {
		next := hangups
		if reloaded != nil {
			next = nil
		}
		select {
		case <-ctx.Done():
			return finish(reloaded)
		case s := <-ends:
			stop(s)
			return finish(reloaded)
		case <-next:
			reloaded = make(chan error, 1)
			go func(done chan<- error) { done <- guarded(reload) }(reloaded)
		case err := <-reloaded:
			if err != nil {
				return err
			}
			reloaded = nil
		}
	}
}

// finish waits a while for a reload under way.
func finish(reloaded <-chan error) error {
	if reloaded == nil {
		return nil
	}
	select {
	case err := <-reloaded:
		return err
	case <-time.After(reloadGrace):
		return nil
	}
}

// guarded calls f and returns its panic.
func guarded(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
