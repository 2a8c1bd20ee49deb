package dccp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Type is the type of a packet (RFC 4340, section 5.1).
type Type uint8

// Packet types.
const (
	TypeRequest Type = iota
	TypeResponse
	TypeData
	TypeAck
	TypeDataAck
	TypeCloseReq
	TypeClose
	TypeReset
	TypeSync
	TypeSyncAck
	numTypes
)

var typeNames = [numTypes]string{
	"Request", "Response", "Data", "Ack", "DataAck",
	"CloseReq", "Close", "Reset", "Sync", "SyncAck",
}

func (t Type) String() string {
	if t < numTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// HasAck reports whether packets of the type carry an acknowledgement number.
func (t Type) HasAck() bool { return t != TypeRequest && t != TypeData }

// CarriesData reports whether packets of the type can carry data of the application.
func (t Type) CarriesData() bool { return t <= TypeData || t == TypeDataAck }

// mayBeShort reports whether packets of the type may have numbers of 24 bits.
func (t Type) mayBeShort() bool { return t == TypeData || t == TypeAck || t == TypeDataAck }

// Lengths in bytes.
const (
	shortHeader = 12 // generic header with a number of 24 bits
	longHeader  = 16
	// MaxHeaderBytes is the longest header with options that a packet can have.
	MaxHeaderBytes = 255 * 4
)

// headerBytes returns the length of the header before its options.
func headerBytes(t Type, extended bool) int {
	n, ack := shortHeader, 4
	if extended {
		n, ack = longHeader, 8
	}
	if t.HasAck() {
		n += ack
	}
	if t == TypeRequest || t == TypeResponse || t == TypeReset {
		n += 4
	}
	return n
}

// Reasons to drop a packet without an answer (RFC 4340, section 8.5, step 1).
var (
	ErrShort    = errors.New("dccp: packet shorter than its header")
	ErrType     = errors.New("dccp: packet of a reserved type")
	ErrOffset   = errors.New("dccp: data offset outside of the packet")
	ErrShortSeq = errors.New("dccp: short sequence number on a type that must have a long one")
	ErrCoverage = errors.New("dccp: checksum covers more than the packet has")
	ErrChecksum = errors.New("dccp: wrong checksum")
)

// Packet is a packet in parts. Its slices lie in the bytes that it was parsed from.
type Packet struct {
	SrcPort, DstPort uint16
	Type             Type
	CCVal            uint8 // 0 to 15, for the congestion control of the sender
	CsCov            uint8 // 0 to 15: what of the data the checksum covers
	Extended         bool  // numbers of 48 bits; else Seq and Ack hold the low 24 only
	Seq              Seq
	Ack              Seq         // where Type.HasAck
	Service          ServiceCode // of Request and Response
	Code             ResetCode   // of Reset
	CodeData         [3]byte     // of Reset
	Options          []byte      // with padding
	Data             []byte      // application data area
}

// Parse takes a packet apart, as far as that can be done without knowing its
// connection: an error is one of those above, and the packet is to be dropped. The
// checksum is [VerifyChecksum]'s to check. Reserved fields are ignored.
func (p *Packet) Parse(b []byte) error {
	if len(b) < shortHeader {
		return ErrShort
	}
	t, extended := Type(b[8]>>1&15), b[8]&1 != 0
	if t >= numTypes {
		return ErrType
	}
	n, offset := headerBytes(t, extended), int(b[4])*4
	if offset < n || offset > len(b) {
		return ErrOffset
	}
	if !extended && !t.mayBeShort() {
		return ErrShortSeq
	}
	cov := b[5] & 15
	if cov > 0 && int(cov-1)*4 > len(b)-offset {
		return ErrCoverage
	}
	*p = Packet{
		SrcPort: binary.BigEndian.Uint16(b), DstPort: binary.BigEndian.Uint16(b[2:]),
		Type: t, CCVal: b[5] >> 4, CsCov: cov, Extended: extended,
		Options: b[n:offset:offset], Data: b[offset:],
	}
	p.parseNumbers(b)
	return nil
}

// TypeOf returns the type that a packet of at least 9 bytes has.
func TypeOf(b []byte) Type { return Type(b[8] >> 1 & 15) }

// parseNumbers reads what differs by type; the header is known to be long enough.
func (p *Packet) parseNumbers(b []byte) {
	rest := b[shortHeader:]
	if p.Extended {
		p.Seq = Seq(uint48(b[10:]))
		rest = b[longHeader:]
	} else {
		p.Seq = Seq(binary.BigEndian.Uint32(b[8:]) & 0xffffff)
	}
	if p.Type.HasAck() {
		if p.Extended {
			p.Ack = Seq(uint48(rest[2:]))
			rest = rest[8:]
		} else {
			p.Ack = Seq(binary.BigEndian.Uint32(rest) & 0xffffff)
			rest = rest[4:]
		}
	}
	switch p.Type {
	case TypeRequest, TypeResponse:
		p.Service = ServiceCode(binary.BigEndian.Uint32(rest))
	case TypeReset:
		p.Code = ResetCode(rest[0])
		p.CodeData = [3]byte(rest[1:4])
	default:
	}
}

// Append appends the packet to dst, with a checksum of 0. Options are padded to whole
// words; those that do not fit into a header are a programmer's error.
func (p *Packet) Append(dst []byte) []byte {
	start := len(dst)
	dst = p.appendHeader(dst)
	dst = append(dst, p.Options...)
	dst = finishHeader(dst, start)
	return append(dst, p.Data...)
}

// appendHeader appends everything before the options.
func (p *Packet) appendHeader(dst []byte) []byte {
	first := byte(p.Type) << 1
	dst = binary.BigEndian.AppendUint16(dst, p.SrcPort)
	dst = binary.BigEndian.AppendUint16(dst, p.DstPort)
	dst = append(dst, 0, p.CCVal<<4|p.CsCov&15, 0, 0)
	if p.Extended {
		dst = append(dst, first|1, 0)
		dst = appendUint48(dst, uint64(p.Seq))
	} else {
		dst = binary.BigEndian.AppendUint32(dst, uint32(first)<<24|uint32(p.Seq&0xffffff))
	}
	if p.Type.HasAck() {
		if p.Extended {
			dst = append(dst, 0, 0)
			dst = appendUint48(dst, uint64(p.Ack))
		} else {
			dst = binary.BigEndian.AppendUint32(dst, uint32(p.Ack&0xffffff))
		}
	}
	switch p.Type {
	case TypeRequest, TypeResponse:
		dst = binary.BigEndian.AppendUint32(dst, uint32(p.Service))
	case TypeReset:
		dst = append(dst, byte(p.Code), p.CodeData[0], p.CodeData[1], p.CodeData[2])
	default:
	}
	return dst
}

// finishHeader pads the options and writes the data offset of a header at start.
func finishHeader(dst []byte, start int) []byte {
	for (len(dst)-start)%4 != 0 {
		dst = append(dst, optPadding)
	}
	words := (len(dst) - start) / 4
	if words > 255 {
		panic(fmt.Sprintf("dccp: header of %d bytes", words*4))
	}
	dst[start+4] = byte(words)
	return dst
}

func uint48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

func appendUint48(b []byte, v uint64) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(v>>32))
	return binary.BigEndian.AppendUint32(b, uint32(v))
}
