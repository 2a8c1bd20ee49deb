package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pace calls f for 0 to n-1, one every interval, until ctx ends. It waits for a timer of
// the kernel as a sensor waits for its socket: a sleep of less than a millisecond may take
// a whole one in Go, and events would come in bursts. What became due while it was held up
// is done at once.
func pace(ctx context.Context, n int, every time.Duration, f func(i int)) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make a timer: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd") // non-blocking, so Go's poller waits for it
	defer func() { _ = timer.Close() }()        // nothing was written
	period := unix.NsecToTimespec(every.Nanoseconds())
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: period, Value: period}, nil); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	var expired [8]byte
	for i := 0; i < n && ctx.Err() == nil; {
		if _, err := timer.Read(expired[:]); err != nil {
			return fmt.Errorf("wait for a timer: %w", err)
		}
		for due := binary.NativeEndian.Uint64(expired[:]); due > 0 && i < n; due-- {
			f(i)
			i++
		}
	}
	return ctx.Err()
}
