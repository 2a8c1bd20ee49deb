package config

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// KeyError is what is wrong with that which a key names, a file for example, and which shows
// only on the machine.
type KeyError struct {
	Key string // dotted, for example "nats.users"
	Err error
}

// At says of which key an error is; nil stays nil.
func At(key string, err error) error {
	if err == nil {
		return nil
	}
	return &KeyError{key, err}
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *KeyError) Unwrap() error { return e.Err }

// Locate names, with each of the errors, the configuration's file, and the line of the key
// that it is of where the file has that key. nil stays nil.
func Locate(file string, err error) error {
	if err == nil {
		return nil
	}
	lines := map[string]int{}
	if f, e := os.Open(file); e == nil { //nolint:gosec // as Load
		if data, e := io.ReadAll(io.LimitReader(f, maxBytes)); e == nil {
			lines, _ = keyLines(data)
		}
		_ = f.Close() // was only read
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for i, err := range all {
		if of, ok := errors.AsType[*KeyError](err); ok && lines[of.Key] > 0 {
			all[i] = fmt.Errorf("%s:%d: %w", file, lines[of.Key], err)
		} else {
			all[i] = fmt.Errorf("%s: %w", file, err)
		}
	}
	return errors.Join(all...)
}
