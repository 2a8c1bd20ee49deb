package sensors

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// Malformed counts messages that could not be read, and logs each that is not the one before
// again. Any goroutine may use it.
type Malformed struct {
	log   *slog.Logger
	count atomic.Uint64
	mu    sync.Mutex // guards last
	last  string
}

// NewMalformed returns a Malformed that writes to log; nil discards.
func NewMalformed(log *slog.Logger) *Malformed {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Malformed{log: log}
}

// Note takes note of a message that could not be read, and why.
func (m *Malformed) Note(err error) {
	m.count.Add(1)
	text := err.Error()
	m.mu.Lock()
	again := m.last == text
	m.last = text
	m.mu.Unlock()
	if !again {
		m.log.Warn("malformed message", "error", text)
	}
}

// Count returns how many were noted.
func (m *Malformed) Count() uint64 { return m.count.Load() }
