package dbusapi

import (
	"context"
	"errors"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

// Names of errors. Those of D-Bus itself are used where they say it.
const (
	ErrorFailed           = "org.freedesktop.DBus.Error.Failed"
	ErrorUnknownObject    = "org.freedesktop.DBus.Error.UnknownObject"
	ErrorUnknownInterface = "org.freedesktop.DBus.Error.UnknownInterface"
	ErrorUnknownMethod    = "org.freedesktop.DBus.Error.UnknownMethod"
	ErrorUnknownProperty  = "org.freedesktop.DBus.Error.UnknownProperty"
	ErrorReadOnly         = "org.freedesktop.DBus.Error.PropertyReadOnly"
	ErrorInvalidArgs      = "org.freedesktop.DBus.Error.InvalidArgs"
	ErrorLimitsExceeded   = "org.freedesktop.DBus.Error.LimitsExceeded"
	ErrorAccessDenied     = "org.freedesktop.DBus.Error.AccessDenied"
	ErrorTimeout          = "org.freedesktop.DBus.Error.Timeout"

	ErrorNotFound = Name + ".Error.NotFound"
	ErrorExists   = Name + ".Error.Exists"
	ErrorSlow     = Name + ".Error.Slow"
	ErrorClosed   = Name + ".Error.Closed"
)

// errorNames gives each error of the vocabulary its name.
var errorNames = []struct {
	err  error
	name string
}{
	{mihf.ErrPermission, ErrorAccessDenied},
	{mihf.ErrNotFound, ErrorNotFound},
	{mihf.ErrInvalid, ErrorInvalidArgs},
	{mihf.ErrLimit, ErrorLimitsExceeded},
	{mihf.ErrExists, ErrorExists},
	{mihf.ErrSlow, ErrorSlow},
	{mihf.ErrClosed, ErrorClosed},
	{context.DeadlineExceeded, ErrorTimeout},
	{context.Canceled, ErrorClosed},
}

// others are names that a bus or an older broker gives.
var others = map[string]error{
	ErrorUnknownObject:    mihf.ErrNotFound, // that object is gone, and nothing else
	ErrorUnknownInterface: mihf.ErrNotFound,
	ErrorUnknownMethod:    mihf.ErrNotFound,

	"org.freedesktop.DBus.Error.ServiceUnknown":  mihf.ErrClosed,
	"org.freedesktop.DBus.Error.NameHasNoOwner":  mihf.ErrClosed,
	"org.freedesktop.DBus.Error.NoReply":         mihf.ErrClosed,
	"org.freedesktop.DBus.Error.Disconnected":    mihf.ErrClosed,
	"org.freedesktop.DBus.Error.AuthFailed":      mihf.ErrPermission,
	"org.freedesktop.DBus.Error.UnknownProperty": mihf.ErrNotFound,
}

// ErrorName returns the name of an error on the bus.
func ErrorName(err error) string {
	for _, e := range errorNames {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return ErrorFailed
}

// NewError returns the error that a name and text stand for. Where the name says nothing to
// the vocabulary, it wraps none of its errors.
func NewError(name, text string) error {
	if text == "" {
		text = name
	}
	for _, e := range errorNames {
		if e.name == name {
			return &conv.RefusedError{Kind: e.err, Text: text}
		}
	}
	if kind := others[name]; kind != nil {
		return &conv.RefusedError{Kind: kind, Text: text}
	}
	return errors.New(text)
}

// FromReply turns the error of a call into one of the vocabulary; any other error stays as
// it is.
func FromReply(err error) error {
	e, ok := errors.AsType[dbus.Error](err)
	if !ok {
		return err
	}
	text := ""
	if len(e.Body) > 0 {
		text, _ = e.Body[0].(string)
	}
	return NewError(e.Name, text)
}
