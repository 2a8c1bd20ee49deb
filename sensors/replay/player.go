package replay

import (
	"errors"
	"io"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// Player gives the observations of a recording one by one, on a time line of the
// caller's: for virtual time, scoring and the [Sensor]. It is pure.
type Player struct {
	src   recording.Source
	start mihf.Time
	due   mihf.Time
	err   error
}

// NewPlayer returns a player for which the recording starts at a moment, which is not
// zero.
func NewPlayer(src recording.Source, start mihf.Time) *Player {
	return &Player{src: src, start: start, due: start}
}

// Next fills o with the next observation, truth included, and returns when it is due:
// never before the one before it, nor before the start. At and Truth.Until are moved to
// the caller's time line. It returns false at the end and at the first line that cannot
// be read (see [Player.Err]).
func (p *Player) Next(o *mihf.Observation) (due mihf.Time, ok bool) {
	if p.err != nil {
		return p.due, false
	}
	if p.err = p.src.Read(o); p.err != nil {
		return p.due, false
	}
	o.At = p.move(o.At)
	if o.Truth != nil && !o.Truth.Until.IsZero() {
		moved := *o.Truth
		moved.Until = p.move(moved.Until)
		o.Truth = &moved
	}
	p.due = max(p.due, o.At)
	return p.due, true
}

// move shifts a moment; what was before the start of the time line is at its first
// nanosecond.
func (p *Player) move(t mihf.Time) mihf.Time {
	return max(p.start.Add(time.Duration(t-recording.Base)), 1)
}

// Refused returns how many values were left out because they lie outside the range of their
// parameter.
func (p *Player) Refused() uint64 {
	if c, ok := p.src.(interface{ Refused() uint64 }); ok {
		return c.Refused()
	}
	return 0
}

// Err returns why the recording ended before its end, or nil.
func (p *Player) Err() error {
	if errors.Is(p.err, io.EOF) {
		return nil
	}
	return p.err
}
