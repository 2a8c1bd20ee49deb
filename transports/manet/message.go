package manet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
)

// Flow names an association on the air: its source and its destination, of one family.
type Flow struct{ Src, Dst netip.Addr }

// The datagram of the path density protocol, in network byte order:
//
//	0  version (1)         1  flags (1: a 16-octet HMAC-SHA-256 follows the elements)
//	2  length of all       4  node
//	8  sequence (64 bit)   16 level of the sender's region (32 bit fraction)
//	20 elements: type, length of the value, value; unknown types are skipped
//
// A flow is element 1 (IPv4) or 2 (IPv6):
//
//	source, destination, next hop (all zero: there is none)
//	stamp, age (100 ms), hops from the source, hops to the destination (255: unknown)
//	share (32 bit fraction) and the node whose region bounds it (0: none)
//	the least level from here to the destination, and the node whose region has it
//	the slowest rate from here to the destination, in kbit/s (0: unknown)
const (
	version    = 1
	flagSigned = 1
	headerLen  = 20
	signature  = 16
	flowIPv4   = 1
	flowIPv6   = 2
	flowTail   = 24   // of a flow's element, after its addresses
	maxMessage = 1200 // octets; below any link's MTU with headers
	hopsNone   = 255
)

// message is one datagram, decoded.
type message struct {
	node     uint32
	sequence uint64
	level    float64
	flows    []listing
}

// listing is a flow as one of its nodes tells of it.
type listing struct {
	flow    Flow
	next    netip.Addr // invalid: none
	stamp   uint8
	age     uint8 // 100 ms since the source gave the stamp
	fromSrc uint8 // hops
	toDst   uint8 // hops; hopsNone: the destination hasn't answered
	share   bound
	ahead   bound // the least of the way to the destination
	rateDst uint32
}

// bound is a fraction of the load, and the node in whose region it is the most.
type bound struct {
	load float64
	node uint32 // 0: nobody's
}

var (
	errShort     = errors.New("shorter than it says")
	errVersion   = errors.New("of another version")
	errSignature = errors.New("not signed with the key")
	errFlow      = errors.New("a flow's element is malformed")
)

func fraction(f float64) uint32 { return uint32(math.Round(min(max(f, 0), 1) * math.MaxUint32)) }
func load(u uint32) float64     { return float64(u) / math.MaxUint32 }

// encode appends the datagram to b; with a key it is signed. The flows must fit: see split.
func (m *message) encode(b, key []byte) []byte {
	start := len(b)
	flags := byte(0)
	if key != nil {
		flags = flagSigned
	}
	b = append(b, version, flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, m.node)
	b = binary.BigEndian.AppendUint64(b, m.sequence)
	b = binary.BigEndian.AppendUint32(b, fraction(m.level))
	for i := range m.flows {
		b = m.flows[i].encode(b)
	}
	if key != nil {
		binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start+signature)) //nolint:gosec // at most maxMessage
		return append(b, sign(b[start:], key)...)
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start)) //nolint:gosec // at most maxMessage
	return b
}

func (l *listing) encode(b []byte) []byte {
	kind, size := byte(flowIPv4), byte(12)
	zero := netip.IPv4Unspecified()
	if l.flow.Src.Is6() {
		kind, size, zero = flowIPv6, 48, netip.IPv6Unspecified()
	}
	next := l.next
	if !next.IsValid() {
		next = zero
	}
	b = append(b, kind, size+flowTail)
	for _, a := range []netip.Addr{l.flow.Src, l.flow.Dst, next} {
		b = append(b, a.AsSlice()...)
	}
	b = append(b, l.stamp, l.age, l.fromSrc, l.toDst)
	for _, u := range []uint32{fraction(l.share.load), l.share.node, fraction(l.ahead.load), l.ahead.node, l.rateDst} {
		b = binary.BigEndian.AppendUint32(b, u)
	}
	return b
}

// size is the length of the element in octets.
func (l *listing) size() int {
	if l.flow.Src.Is6() {
		return 2 + 48 + flowTail
	}
	return 2 + 12 + flowTail
}

func sign(b, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)[:signature]
}

// decode reads a datagram. With a key only what is signed with it is read; without one a
// signature is not looked at. Nothing of b is kept.
func decode(b, key []byte) (message, error) {
	if len(b) < headerLen || len(b) != int(binary.BigEndian.Uint16(b[2:])) {
		return message{}, errShort
	}
	if b[0] != version {
		return message{}, errVersion
	}
	end := len(b)
	if b[1]&flagSigned != 0 {
		if end -= signature; end < headerLen {
			return message{}, errShort
		}
	}
	if key != nil && (b[1]&flagSigned == 0 || !hmac.Equal(b[end:], sign(b[:end], key))) {
		return message{}, errSignature
	}
	m := message{
		node:     binary.BigEndian.Uint32(b[4:]),
		sequence: binary.BigEndian.Uint64(b[8:]),
		level:    load(binary.BigEndian.Uint32(b[16:])),
	}
	for b = b[headerLen:end]; len(b) > 0; {
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return message{}, errShort
		}
		kind, value := b[0], b[2:2+int(b[1])]
		b = b[2+len(value):]
		if kind != flowIPv4 && kind != flowIPv6 {
			continue
		}
		l, err := decodeListing(kind, value)
		if err != nil {
			return message{}, err
		}
		m.flows = append(m.flows, l)
	}
	return m, nil
}

func decodeListing(kind byte, v []byte) (listing, error) {
	size := 4
	if kind == flowIPv6 {
		size = 16
	}
	if len(v) != 3*size+flowTail {
		return listing{}, errFlow
	}
	src, _ := netip.AddrFromSlice(v[:size])
	dst, _ := netip.AddrFromSlice(v[size : 2*size])
	next, _ := netip.AddrFromSlice(v[2*size : 3*size])
	if !routable(src) || !routable(dst) || src == dst {
		return listing{}, errFlow
	}
	if next.IsUnspecified() {
		next = netip.Addr{}
	}
	v = v[3*size:]
	u := func(i int) uint32 { return binary.BigEndian.Uint32(v[4+4*i:]) }
	return listing{
		flow: Flow{src, dst}, next: next, stamp: v[0], age: v[1], fromSrc: v[2], toDst: v[3],
		share: bound{load(u(0)), u(1)}, ahead: bound{load(u(2)), u(3)}, rateDst: u(4),
	}, nil
}

// routable reports whether a flow can begin or end at the address. An IPv4 address inside
// an IPv6 one is two names for one node, and refused.
func routable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.Is4In6() && a.Zone() == ""
}
