package sensors

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"syscall"

	"mihf.dev/mihf"
)

// ErrUnavailable is wrapped by an error that means: the hardware, kernel family or
// service is not there.
var ErrUnavailable = errors.New("not available")

// Classify returns the condition that a failed session means: denied where a permission
// is missing, unavailable where what the sensor reads is not there, degraded for the rest.
func Classify(err error) mihf.Condition {
	switch {
	case errors.Is(err, fs.ErrPermission): // EPERM, EACCES
		return mihf.ConditionDenied
	case errors.Is(err, ErrUnavailable), errors.Is(err, fs.ErrNotExist), isOneOf(err,
		syscall.ENODEV, syscall.ENXIO, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT,
		syscall.ESOCKTNOSUPPORT, syscall.EOPNOTSUPP):
		return mihf.ConditionUnavailable
	default:
		return mihf.ConditionDegraded
	}
}

// describe is the text for people: what failed and, where it is known, what would help.
func describe(err error) string {
	switch {
	case errors.Is(err, syscall.EAFNOSUPPORT):
		return err.Error() + " (a sandbox may forbid it: RestrictAddressFamilies needs AF_NETLINK, AF_UNIX, AF_INET and AF_INET6)"
	case errors.Is(err, fs.ErrPermission):
		return err.Error() + " (a permission is missing)"
	default:
		return err.Error()
	}
}

func isOneOf(err error, list ...syscall.Errno) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	return slices.Contains(list, errno)
}

// PanicError is a panic that was caught.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Guard calls f and turns a panic in it into a [*PanicError]. Decoders run under it, one
// message at a time.
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
