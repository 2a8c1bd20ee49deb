package cli

import (
	"fmt"
	"io"
	"time"
)

// progress tells people how far an experiment is: on a terminal in a line that is written again,
// elsewhere in a line for each tenth.
type progress struct {
	w        io.Writer
	name     string
	begin    time.Time
	terminal bool
	told     int  // tenths, or hundredths on a terminal
	open     bool // the terminal's line isn't ended
}

func (p *progress) tell(done, total int) {
	steps := 10
	if p.terminal {
		steps = 100
	}
	step := done * steps / total
	if step == p.told && done != total {
		return
	}
	p.told = step
	line := fmt.Sprintf("%s: %d of %d parts, %v", p.name, done, total, time.Since(p.begin).Round(time.Second))
	if p.terminal {
		p.open = true
		_, _ = fmt.Fprint(p.w, "\r"+line) // only tells people
		return
	}
	_, _ = fmt.Fprintln(p.w, line)
}

func (p *progress) end() {
	if p.open {
		_, _ = fmt.Fprintln(p.w)
	}
}
