// Package recording is the format in which observations are kept and exchanged: JSON
// Lines, a header and then one observation a line, with known outcomes ("truth")
// between them. It also imports traces in CSV. docs/recordings.md describes both for
// people who write such files.
//
// # Guarantees
//
//   - What [Writer] wrote, [Reader] gives back equal, for every kind of observation that
//     could have been made. What could not (an age below 0, an end before its beginning, an
//     address without a prefix) is refused with its line and the reason.
//     Times are exact to the nanosecond within 26 days of the start.
//   - What is absent in a line is unknown, and the other way round. A value that its
//     parameter cannot have stays absent; [Reader.Refused] counts such values.
//   - Fields that are not known are skipped; a newer version of the format is refused.
//   - No input makes a reader panic or hold more than one line of at most [MaxLine]
//     bytes. An error names its line; reading may go on with the next.
//   - Names that are arbitrary octets (interfaces, points of attachment, free text) are
//     written with mihf.Escape, SSIDs in base64: two different names never become equal.
//
// # Limits
//
// Lines are in the order in which the observations came, which need not be the order of
// their times. A Reader or Writer is used by one goroutine.
package recording

import (
	"time"

	"mihf.dev/mihf"
)

// Format and Version are the first two fields of a recording's header.
const (
	Format  = "mihf-recording"
	Version = 1
)

// MaxLine bounds a line, in bytes.
const MaxLine = 1 << 20

// Base is the moment that readers give to the start of a recording. It is not zero,
// because a zero Time means "never".
const Base = mihf.Time(time.Hour)

// Header is the first line: where the recording comes from. Every field may be empty.
type Header struct {
	Node        mihf.NodeID
	Started     time.Time // wall time of the start, for people
	Sensors     []string
	Description string
	Seed        mihf.Opt[uint64] // of a made-up recording
}

// Source gives observations one by one: [Reader], [TraceReader].
type Source interface {
	// Read fills o with the next observation; io.EOF ends it. What o pointed to before
	// is not reused.
	Read(o *mihf.Observation) error
}
