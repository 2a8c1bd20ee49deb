// Package sockerr tells the errors of a socket apart, for the carriers of DCCP.
package sockerr

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Transient reports whether an error of the socket is of one packet or of a moment, so
// that reading may go on.
func Transient(err error) bool {
	for _, t := range []error{
		unix.EINTR, unix.ECONNREFUSED, unix.ECONNRESET, unix.EHOSTUNREACH, unix.ENETUNREACH,
		unix.ENETDOWN, unix.EHOSTDOWN, unix.ENOBUFS, unix.ENOMEM, unix.EMSGSIZE, unix.EPROTO,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
