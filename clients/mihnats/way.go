package mihnats

import (
	"sync"
	"time"

	"mihf.dev/mihf"
)

// way measures how long messages are on their way, more than the quickest of late: no
// message comes before it was sent, so that each says by how much the daemon's clock is
// ahead of ours at least. The best that was said in the last two windows counts. The zero
// way knows nothing.
type way struct {
	mu    sync.Mutex // guards the following
	known bool
	began mihf.Time // of the present window
	best  [2]time.Duration
}

// window is how long what was said counts, at least: clocks drift.
const window = 30 * time.Second

// late returns how long a message that was sent at a moment of the daemon's clock, and is
// here now, was held up. It may not be known: 0.
func (w *way) late(now, at mihf.Time) time.Duration {
	if at == 0 {
		return 0
	}
	ahead := at.Sub(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.known:
		w.known, w.began, w.best = true, now, [2]time.Duration{ahead, ahead}
	case now.Sub(w.began) >= window:
		w.began, w.best = now, [2]time.Duration{ahead, w.best[0]}
	default:
		w.best[0] = max(w.best[0], ahead)
	}
	return max(w.best[0], w.best[1]) - ahead
}
