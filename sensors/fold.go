package sensors

import (
	"errors"
	"log/slog"
	"time"

	"mihf.dev/mihf"
)

// foldEvery is how often an error that goes on is named again.
const foldEvery = 10 * time.Minute

// Fold logs an error once and counts its repetitions; they are summed up when another
// error comes, when it is over, and every ten minutes. It is used by one goroutine.
type Fold struct {
	log         *slog.Logger
	text        string
	count       uint64    // not yet logged
	first, last mihf.Time // of those
	logged      mihf.Time
}

// NewFold returns a Fold that writes to log; nil discards.
func NewFold(log *slog.Logger) *Fold {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Fold{log: log}
}

// Failed takes note of err, and logs it unless it is the one before again.
func (f *Fold) Failed(now mihf.Time, err error) {
	text := err.Error()
	if text != f.text || f.logged.IsZero() {
		f.flush()
		f.text, f.logged = text, now
		if p := (*PanicError)(nil); errors.As(err, &p) {
			f.log.Error("sensor failed", "error", text, "stack", string(p.Stack))
			return
		}
		write := f.log.Warn
		if Classify(err) == mihf.ConditionUnavailable { // what a machine does not have is no fault of it
			write = f.log.Info
		}
		write("sensor failed", "error", text)
		return
	}
	if f.count == 0 {
		f.first = now
	}
	f.count++
	f.last = now
	if now.Sub(f.logged) >= foldEvery {
		f.flush()
		f.logged = now
	}
}

// Recovered says that the error is over.
func (f *Fold) Recovered() {
	if f.logged.IsZero() {
		return
	}
	f.flush()
	f.log.Info("sensor recovered", "error", f.text)
	f.text, f.logged = "", 0
}

func (f *Fold) flush() {
	if f.count == 0 {
		return
	}
	f.log.Warn("sensor failed again", "error", f.text, "count", f.count,
		"first_s", f.first.Seconds(), "last_s", f.last.Seconds())
	f.count = 0
}
