package cli

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// watchReader calls gone when nobody reads standard output any more, which an idle stream
// would find out at its next line only. The result ends the watch and waits for it.
func (a *app) watchReader(gone func()) (stop func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {} // the next write tells, too
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { _ = r.Close() }()                                   // only ever woke us
		fds := []unix.PollFd{{Fd: int32(a.out.Fd())}, {Fd: int32(r.Fd())}} // of interest: errors and hang-ups
		for {
			if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
				return
			}
			if fds[1].Revents != 0 {
				return
			}
			if fds[0].Revents != 0 {
				gone()
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		_ = w.Close() // hangs up on the watch
		wg.Wait()
	})
}
