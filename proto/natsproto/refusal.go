package natsproto

import (
	"context"
	"encoding/json"
	"errors"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

// codes are the refusals, by the error of the vocabulary. The first that fits counts.
var codes = []struct {
	code string
	err  error
}{
	{"PERMISSION", mihf.ErrPermission},
	{"NOT_FOUND", mihf.ErrNotFound},
	{"INVALID", mihf.ErrInvalid},
	{"LIMIT", mihf.ErrLimit},
	{"EXISTS", mihf.ErrExists},
	{"SLOW", mihf.ErrSlow},
	{"CLOSED", mihf.ErrClosed},
	{"CANCELED", context.Canceled},
	{"DEADLINE", context.DeadlineExceeded},
}

// internal is the code of what is none of them.
const internal = "INTERNAL"

// Code returns the code of a refusal.
func Code(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return internal
}

// Refused returns the error that a message says, or nil.
func Refused(h Header, data []byte) error {
	v := h[HeaderError]
	if len(v) == 0 {
		return nil
	}
	text := string(data)
	var j struct {
		Error string `json:"error"`
	}
	if types := h[HeaderContentType]; len(types) == 1 && types[0] == JSON && json.Unmarshal(data, &j) == nil {
		text = j.Error
	}
	for _, c := range codes {
		if c.code == v[0] {
			if text == "" {
				text = c.err.Error()
			}
			return &conv.RefusedError{Kind: c.err, Text: text}
		}
	}
	return &conv.RefusedError{Text: v[0] + ": " + text}
}
