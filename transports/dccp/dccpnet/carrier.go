package dccpnet

import (
	"errors"
	"net/netip"
	"syscall"
)

// checker is a carrier that drops packets with a wrong checksum itself.
type checker interface{ BadChecksums() uint64 }

// badChecksums is what a carrier dropped, for all its connections.
func badChecksums(c Carrier) uint64 {
	if c, ok := c.(checker); ok {
		return c.BadChecksums()
	}
	return 0
}

// Carrier sends and receives DCCP packets. Its methods may be called from several
// goroutines, Read from one.
type Carrier interface {
	// Read waits for packets and hands each to take, which must not keep b, and calls
	// pause whenever none is left to be read at once. It returns when the carrier is
	// closed, with net.ErrClosed, or cannot go on.
	Read(take func(from netip.AddrPort, b []byte), pause func()) error
	// Write sends packets that lie one behind the other in b, with the lengths given. It
	// returns how many were sent; the others were not, for the reason in err.
	Write(to netip.AddrPort, b []byte, lengths []int) (sent int, err error)
	// LocalAddr is the address that peers see, as far as it is known here.
	LocalAddr() netip.AddrPort
	// Network names the kind, such as "dccp+udp".
	Network() string
	// Overhead is how many bytes the carrier and IP put before a packet to a peer.
	Overhead(to netip.AddrPort) int
	Close() error
}

// Transient reports whether an error of a carrier's socket is of one packet or of a moment,
// so that its Read goes on.
func Transient(err error) bool {
	for _, t := range []error{
		syscall.EINTR, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.ENETDOWN, syscall.EHOSTDOWN, syscall.ENOBUFS, syscall.ENOMEM, syscall.EMSGSIZE, syscall.EPROTO,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
