package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Unreachable tells the sender of a connection that packets did not get through, quoting
// the segment that begins at seq: a sender that waits for a doubled retransmission timer
// takes a doubling back and sends at once, if that time is over (RFC 6069). local is the
// receiver's end, seq what it waits for. It needs CAP_NET_RAW, and acts in the namespace of
// the calling thread.
func Unreachable(local, remote netip.AddrPort, seq uint32) (err error) {
	if local.Addr().Is4() != remote.Addr().Is4() {
		return fmt.Errorf("a connection from %v to %v", remote, local)
	}
	domain, proto, payload := unix.AF_INET, unix.IPPROTO_ICMP, unreachable4(local, remote, seq)
	var to unix.Sockaddr = &unix.SockaddrInet4{Addr: as4(remote.Addr())}
	if local.Addr().Is6() {
		domain, proto, payload = unix.AF_INET6, unix.IPPROTO_ICMPV6, unreachable6(local, remote, seq)
		to = &unix.SockaddrInet6{Addr: remote.Addr().As16()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return fmt.Errorf("open a socket for ICMP (CAP_NET_RAW): %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Sendto(fd, payload, 0, to); err != nil {
		return fmt.Errorf("tell %v that it was not reached: %w", remote.Addr(), err)
	}
	return nil
}

func as4(a netip.Addr) [4]byte {
	if a.Is4() {
		return a.As4()
	}
	return [4]byte{}
}

// quotedTCP is the begin of the segment that didn't come.
func quotedTCP(local, remote netip.AddrPort, seq uint32) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, remote.Port())
	binary.BigEndian.PutUint16(b[2:], local.Port())
	binary.BigEndian.PutUint32(b[4:], seq)
	b[12], b[13] = 5<<4, 0x10
	return b
}

// unreachable4 is a Destination Unreachable, host unreachable (RFC 792).
func unreachable4(local, remote netip.AddrPort, seq uint32) []byte {
	ip := make([]byte, 20)
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(ip[2:], 1500)
	src, dst := as4(remote.Addr()), as4(local.Addr())
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	b := append([]byte{3, 1, 0, 0, 0, 0, 0, 0}, ip...)
	b = append(b, quotedTCP(local, remote, seq)...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}

// unreachable6 is a Destination Unreachable, address unreachable (RFC 4443, 3.1). The
// kernel computes the checksum of a raw ICMPv6 socket.
func unreachable6(local, remote netip.AddrPort, seq uint32) []byte {
	ip := make([]byte, 40)
	ip[0], ip[6], ip[7] = 6<<4, unix.IPPROTO_TCP, 64
	binary.BigEndian.PutUint16(ip[4:], 1460)
	src, dst := remote.Addr().As16(), local.Addr().As16()
	copy(ip[8:], src[:])
	copy(ip[24:], dst[:])
	return append(append([]byte{1, 3, 0, 0, 0, 0, 0, 0}, ip...), quotedTCP(local, remote, seq)...)
}

// checksum is that of RFC 1071, of an even number of octets.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum) //nolint:gosec // folded
}
