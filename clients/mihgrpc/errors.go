package mihgrpc

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// kinds maps the protocol's codes to the vocabulary's errors.
var kinds = map[codes.Code]error{
	codes.PermissionDenied:  mihf.ErrPermission,
	codes.Unauthenticated:   mihf.ErrPermission,
	codes.NotFound:          mihf.ErrNotFound,
	codes.InvalidArgument:   mihf.ErrInvalid,
	codes.ResourceExhausted: mihf.ErrLimit,
	codes.AlreadyExists:     mihf.ErrExists,
	codes.Unavailable:       mihf.ErrClosed,
	codes.Aborted:           mihf.ErrSlow,
	codes.Canceled:          context.Canceled,
	codes.DeadlineExceeded:  context.DeadlineExceeded,
}

// errorOf turns an error of a call or stream into one of the vocabulary; nil stays nil.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return mihf.ErrClosed
	}
	s := status.Convert(err)
	if kind := kinds[s.Code()]; kind != nil {
		return &conv.RefusedError{Kind: kind, Text: plain(s.Message())}
	}
	return err
}

// plain leaves out what gRPC says around the reason why a connection failed.
func plain(message string) string {
	quoted, ok := strings.CutPrefix(message, "connection error: desc = ")
	if !ok {
		return message
	}
	reason, err := strconv.Unquote(quoted)
	if err != nil {
		return message
	}
	reason = strings.TrimPrefix(reason, "transport: ")
	return strings.TrimPrefix(reason, "Error while dialing: ")
}

// reasons maps the protocol's reasons to the vocabulary's errors.
var reasons = map[mihv1.FailedReason]error{
	mihv1.FailedReason_FAILED_REASON_PERMISSION: mihf.ErrPermission,
	mihv1.FailedReason_FAILED_REASON_NOT_FOUND:  mihf.ErrNotFound,
	mihv1.FailedReason_FAILED_REASON_INVALID:    mihf.ErrInvalid,
	mihv1.FailedReason_FAILED_REASON_LIMIT:      mihf.ErrLimit,
	mihv1.FailedReason_FAILED_REASON_EXISTS:     mihf.ErrExists,
	mihv1.FailedReason_FAILED_REASON_CLOSED:     mihf.ErrClosed,
}

// failedError turns a refused request on an attachment into an error.
func failedError(f *mihv1.Failed) error {
	if kind := reasons[f.GetReason()]; kind != nil {
		return &conv.RefusedError{Kind: kind, Text: f.GetText()}
	}
	return errors.New(f.GetText())
}
