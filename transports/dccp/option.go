package dccp

import (
	"encoding/binary"
	"time"
)

// Option types (RFC 4340, section 5.8; the extension's own numbers are of the
// experimental range or of CCID 3's).
const (
	optPadding       = 0
	optMandatory     = 1
	optSlowReceiver  = 2
	optChangeL       = 32
	optConfirmL      = 33
	optChangeR       = 34
	optConfirmR      = 35
	optInitCookie    = 36
	optNDPCount      = 37
	optAckVector0    = 38
	optAckVector1    = 39
	optDataDropped   = 40
	optTimestamp     = 41
	optTimestampEcho = 42
	optElapsedTime   = 43
	optDataChecksum  = 44
	optFreeze        = 120
	optUnfreeze      = 121
	optHello         = 122
	// Of CCID 3 from here.
	optRestoring     = 129
	optProbing       = 130
	optLossEventRate = 192
	optLossIntervals = 193
	optReceiveRate   = 194
	optUnfrozen      = 195
)

// maxOptionData is the most that one option can hold.
const maxOptionData = 253

// Option is one option of a packet.
type Option struct {
	Type      uint8
	Mandatory bool   // a Mandatory option stands before it
	Data      []byte // without type and length
}

// OptionReader reads the options of a packet in their order.
type OptionReader struct {
	rest []byte
	// Dangling is set at the end where the last Mandatory has no option behind it, or
	// another Mandatory: the connection is to be reset with [ResetOptionError].
	Dangling bool
	// BadLength is set at the end where an option's length was nonsense; it and all
	// behind it are ignored. MandatoryLost tells that a Mandatory stood before it, and
	// Lost which type it had.
	BadLength, MandatoryLost bool
	Lost                     uint8
}

// ReadOptions starts to read the options of a packet.
func ReadOptions(b []byte) OptionReader { return OptionReader{rest: b} }

// Next reads the next option and reports whether there was one. Padding is passed over.
func (r *OptionReader) Next(o *Option) bool {
	mandatory := false
	for len(r.rest) > 0 {
		t := r.rest[0]
		switch {
		case t == optPadding:
			mandatory = false // "Mandatory Padding" is two bytes of padding
			r.rest = r.rest[1:]
		case t == optMandatory:
			if mandatory {
				r.Dangling, r.rest = true, nil
				return false
			}
			mandatory, r.rest = true, r.rest[1:]
		case t < 32:
			*o = Option{Type: t, Mandatory: mandatory}
			r.rest = r.rest[1:]
			return true
		default:
			return r.long(o, t, mandatory)
		}
	}
	r.Dangling = mandatory
	return false
}

// long reads an option that has a length.
func (r *OptionReader) long(o *Option, t uint8, mandatory bool) bool {
	if len(r.rest) < 2 || r.rest[1] < 2 || int(r.rest[1]) > len(r.rest) {
		r.BadLength, r.MandatoryLost, r.Lost, r.rest = true, mandatory, t, nil
		return false
	}
	n := int(r.rest[1])
	*o = Option{Type: t, Mandatory: mandatory, Data: r.rest[2:n:n]}
	r.rest = r.rest[n:]
	return true
}

// onData reports whether an option of the type means something on a Data packet
// (section 5.8). What could reset a connection, or speaks of acknowledgements, doesn't.
func onData(t uint8) bool {
	switch t {
	case optSlowReceiver, optNDPCount, optTimestamp, optTimestampEcho, optDataChecksum, optRestoring, optProbing:
		return true
	default:
		return false
	}
}

func appendOption(b []byte, t uint8, data ...byte) []byte {
	return append(append(b, t, byte(2+len(data))), data...)
}

func appendOption32(b []byte, t uint8, v uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, t, 6), v)
}

// hundredths is the unit of the timing options.
const hundredths = 10 * time.Microsecond

// toHundredths rounds down, and ends at the largest value (section 13.2).
func toHundredths(d time.Duration) uint32 {
	return uint32(min(max(d, 0)/hundredths, 1<<32-1))
}

// appendElapsed appends an Elapsed Time option in its shortest form (section 13.2).
func appendElapsed(b []byte, d time.Duration) []byte {
	v := toHundredths(d)
	if v > 0xffff {
		return appendOption32(b, optElapsedTime, v)
	}
	return binary.BigEndian.AppendUint16(append(b, optElapsedTime, 4), uint16(v))
}

// appendTimestampEcho appends a Timestamp Echo option in its shortest form (section 13.3).
func appendTimestampEcho(b []byte, stamp uint32, held time.Duration) []byte {
	switch v := toHundredths(held); {
	case v == 0:
		return appendOption32(b, optTimestampEcho, stamp)
	case v <= 0xffff:
		b = binary.BigEndian.AppendUint32(append(b, optTimestampEcho, 8), stamp)
		return binary.BigEndian.AppendUint16(b, uint16(v))
	default:
		b = binary.BigEndian.AppendUint32(append(b, optTimestampEcho, 10), stamp)
		return binary.BigEndian.AppendUint32(b, v)
	}
}

// parseElapsed reads the data of an Elapsed Time option.
func parseElapsed(b []byte) (time.Duration, bool) {
	switch len(b) {
	case 2:
		return time.Duration(binary.BigEndian.Uint16(b)) * hundredths, true
	case 4:
		return time.Duration(binary.BigEndian.Uint32(b)) * hundredths, true
	default:
		return 0, false
	}
}

// parseTimestampEcho reads the data of a Timestamp Echo option.
func parseTimestampEcho(b []byte) (stamp uint32, held time.Duration, ok bool) {
	switch len(b) {
	case 4:
	case 6, 8:
		held, _ = parseElapsed(b[4:])
	default:
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(b), held, true
}

// appendNDPCount appends an NDP Count option in its shortest form; none for 0
// (section 7.7).
func appendNDPCount(b []byte, n uint64) []byte {
	if n == 0 {
		return b
	}
	size := 1
	for size < 6 && n>>(8*size) != 0 {
		size++
	}
	b = append(b, optNDPCount, byte(2+size))
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

// parseNDPCount reads the data of an NDP Count option.
func parseNDPCount(b []byte) (n uint64, ok bool) {
	if len(b) < 1 || len(b) > 6 {
		return 0, false
	}
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, true
}
