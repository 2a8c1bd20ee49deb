package sim

import (
	"fmt"
	"io"
	"strconv"
)

// A Trace writes a line for each thing that happens to a packet or a link:
//
//	0.010042560 - down 1 data 17 532
//
// the time in seconds; "+" for queued, "-" for the begin of the transmission, "r" for arrived,
// "d" for dropped (its reason ends the line), "v" and "^" for a link that goes down and comes
// back; the link; then of the packet its flow, kind, number and size in bytes.
type Trace struct {
	w    io.Writer
	line []byte
	err  error
}

const (
	opQueued   = '+'
	opTransmit = '-'
	opArrive   = 'r'
	opDropped  = 'd'
	opDown     = 'v'
	opUp       = '^'
)

// TraceTo writes the rest of the run to w. The writer should be buffered.
func (s *Sim) TraceTo(w io.Writer) *Trace {
	s.trace = &Trace{w: w}
	return s.trace
}

// Err returns the first error of the writer; nothing was written after it.
func (t *Trace) Err() error { return t.err }

func (s *Sim) record(op byte, l *Link, p *Packet) {
	if s.trace != nil {
		s.trace.begin(s, op, l)
		s.trace.packet(p)
		s.trace.end()
	}
}

func (s *Sim) recordDrop(l *Link, p *Packet, why Reason) {
	if t := s.trace; t != nil {
		t.begin(s, opDropped, l)
		t.packet(p)
		t.line = append(append(t.line, ' '), why.String()...)
		t.end()
	}
}

func (s *Sim) recordLink(op byte, l *Link) {
	if s.trace != nil {
		s.trace.begin(s, op, l)
		s.trace.end()
	}
}

func (t *Trace) begin(s *Sim, op byte, l *Link) {
	d := s.Elapsed()
	t.line = fmt.Appendf(t.line[:0], "%d.%09d %c %s", d/1e9, d%1e9, op, l.config.Name)
}

func (t *Trace) packet(p *Packet) {
	b := append(t.line, ' ')
	b = strconv.AppendInt(b, int64(p.Flow), 10)
	b = append(append(append(b, ' '), p.Kind.String()...), ' ')
	b = strconv.AppendUint(b, p.Seq, 10)
	b = append(b, ' ')
	t.line = strconv.AppendInt(b, int64(p.SizeBytes), 10)
}

func (t *Trace) end() {
	if t.err == nil {
		_, t.err = t.w.Write(append(t.line, '\n'))
	}
}
