package natsfront

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// serverLog is the embedded server's logger. What peers can provoke is written at most
// [maxLines] times in a second; how much was left out is said with the next line.
type serverLog struct {
	log   *slog.Logger
	now   func() time.Time
	fatal chan string // why the server does not start; room for one

	mu      sync.Mutex // guards the following
	began   time.Time
	lines   int
	omitted uint64
}

// maxLines bounds the server's lines in a second.
const maxLines = 5

// admit reports whether a line may be written now, and how many were left out before it.
func (l *serverLog) admit() (omitted uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.began) >= time.Second {
		l.began, l.lines = now, 0
	}
	if l.lines++; l.lines > maxLines {
		l.omitted++
		return 0, false
	}
	omitted, l.omitted = l.omitted, 0
	return omitted, true
}

func (l *serverLog) write(level func(string, ...any), format string, args []any) {
	if omitted, ok := l.admit(); ok {
		level("NATS server", "text", fmt.Sprintf(format, args...), "omitted_before", omitted)
	}
}

// Noticef is what the server does. Where nobody reads it, it does not count.
func (l *serverLog) Noticef(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.write(l.log.Debug, format, args)
	}
}

// Warnf is what is not as it should be.
func (l *serverLog) Warnf(format string, args ...any) { l.write(l.log.Warn, format, args) }

// Errorf is mostly what a peer did: it is warned of.
func (l *serverLog) Errorf(format string, args ...any) { l.write(l.log.Warn, format, args) }

// Fatalf says why the server does not start; it does not end the process.
func (l *serverLog) Fatalf(format string, args ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, args...):
	default:
	}
}

// Debugf is not written: the server is asked for none.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef is not written: it would hold what passes.
func (l *serverLog) Tracef(string, ...any) {}
