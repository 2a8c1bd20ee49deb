package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"mihf.dev/mihf/config"
)

// newLogger returns a logger of the format, whose level can be changed.
func newLogger(c *config.Log, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), level
	}
	return slog.New(slog.NewTextHandler(w, o)), level
}

// logFile opens the log of a live view, whose terminal belongs to the view: a file in the
// state directory. Where standard error is not a terminal, nil: the log may go there.
func logFile(state string) (*os.File, error) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, nil
	}
	return openLog(filepath.Join(state, "live.log"))
}

// maxLog is the size from which a start begins the log anew.
const maxLog = 1 << 20

// openLog opens a log to append to. One that is begun anew is kept beside it: a second
// daemon, which will not start, must not take from the first what it has written.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() >= maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
}
