package dccp

import (
	"encoding/binary"
	"net/netip"
)

// Protocol is DCCP's number in IP headers.
const Protocol = 33

// VerifyChecksum checks the header checksum of a packet between two addresses of one
// family (RFC 4340, section 9.1). It returns ErrChecksum where it is wrong. The packet
// must have passed [Packet.Parse].
func VerifyChecksum(b []byte, src, dst netip.Addr) error {
	if fold(sum(pseudo(len(b), src, dst), b[:covered(b)])) != 0xffff {
		return ErrChecksum
	}
	return nil
}

// SetChecksum writes the header checksum of a packet. The checksum field must be 0.
func SetChecksum(b []byte, src, dst netip.Addr) {
	binary.BigEndian.PutUint16(b[6:], ^fold(sum(pseudo(len(b), src, dst), b[:covered(b)])))
}

// covered returns how many bytes of the packet its checksum covers (section 9.2).
func covered(b []byte) int {
	if cov := int(b[5] & 15); cov > 0 {
		return min(int(b[4])*4+(cov-1)*4, len(b))
	}
	return len(b)
}

// pseudo returns the sum of the pseudo-header.
func pseudo(length int, src, dst netip.Addr) uint64 {
	s := uint64(Protocol) + uint64(length)
	if src.Unmap().Is4() {
		a, b := src.Unmap().As4(), dst.Unmap().As4()
		return sum(sum(s, a[:]), b[:])
	}
	a, b := src.As16(), dst.As16()
	return sum(sum(s, a[:]), b[:])
}

// sum adds b to s, as 16-bit words.
func sum(s uint64, b []byte) uint64 {
	for len(b) >= 4 {
		s += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	switch len(b) {
	case 3:
		s += uint64(binary.BigEndian.Uint16(b)) + uint64(b[2])<<8
	case 2:
		s += uint64(binary.BigEndian.Uint16(b))
	case 1:
		s += uint64(b[0]) << 8
	}
	return s
}

// fold makes a one's complement sum of 16 bits.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
