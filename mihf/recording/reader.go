package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"mihf.dev/mihf"
)

// LineError says what is wrong with one line of an input, and which.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// cutError is the reason of a LineError for a last line that does not end.
type cutError struct{ err error }

func (e cutError) Error() string   { return "the input ends within the line: " + e.err.Error() }
func (e cutError) Unwrap() []error { return []error{io.ErrUnexpectedEOF, e.err} }

// ErrLineTooLong is the reason of a LineError for a line of more than [MaxLine] bytes.
var ErrLineTooLong = fmt.Errorf("longer than %d bytes", MaxLine)

// lines reads an input line by line, with a bound.
type lines struct {
	r   *bufio.Reader
	buf []byte
	n   int // of the newest line, from 1
}

func newLines(r io.Reader) lines { return lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line with its end, valid until the next call.
func (l *lines) next() ([]byte, error) {
	l.n++
	l.buf = l.buf[:0]
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if long = long || len(l.buf)+len(part) > MaxLine; !long {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d: %w", l.n, err)
		case long:
			return nil, &LineError{l.n, ErrLineTooLong}
		case err != nil && len(l.buf) == 0:
			return nil, io.EOF
		default:
			return l.buf, nil
		}
	}
}

// Reader reads a recording, line by line.
type Reader struct {
	lines   lines
	header  Header
	refused uint64
}

// NewReader reads the header. The input is plain; see [Decompress].
func NewReader(r io.Reader) (*Reader, error) {
	rd := &Reader{lines: newLines(r)}
	b, err := rd.lines.next()
	if err == nil {
		rd.header, err = decodeHeader(b)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("this is not a recording: it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("read the header of a recording: %w", err)
	}
	return rd, nil
}

// Header returns the header.
func (r *Reader) Header() Header { return r.header }

// Refused returns how many values were left out because they lie outside the range
// of their parameter.
func (r *Reader) Refused() uint64 { return r.refused }

// Read fills o with the next observation; its times count from [Base]. It returns
// io.EOF at the end. After a [*LineError] the next call goes on behind that line; a
// line that the end of the input cut off has io.ErrUnexpectedEOF as its reason.
func (r *Reader) Read(o *mihf.Observation) error {
	for {
		b, err := r.lines.next()
		if err != nil {
			return err
		}
		cut := b[len(b)-1] != '\n'
		if b = bytes.TrimSpace(b); len(b) == 0 {
			continue
		}
		refused, err := decode(b, o)
		if err != nil {
			if cut {
				err = cutError{err}
			}
			return &LineError{r.lines.n, err}
		}
		r.refused += uint64(refused)
		return nil
	}
}

// Decompress returns r decompressed if it is gzip, else as it is.
func Decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	magic, _ := b.Peek(2) // an empty or broken input shows when it is read
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return z, nil
}

// Open returns the source in r, be it a recording or a trace, plain or gzip. A trace's
// observations are given to link; "" makes one up, for which the trace is read whole.
func Open(r io.Reader, link mihf.LinkID) (Source, error) {
	plain, err := Decompress(r)
	if err != nil {
		return nil, err
	}
	b := bufio.NewReader(plain)
	if first, err := b.Peek(1); err == nil && first[0] != '{' {
		if link != "" {
			return NewTraceReader(b, link)
		}
		l, err := importTrace(b, "")
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	return NewReader(b)
}

// list is a source of what was read before.
type list struct {
	rest    []mihf.Observation
	refused uint64
}

// Refused returns how many values were left out when it was read.
func (l *list) Refused() uint64 { return l.refused }

func (l *list) Read(o *mihf.Observation) error {
	if len(l.rest) == 0 {
		return io.EOF
	}
	*o, l.rest = l.rest[0], l.rest[1:]
	return nil
}
