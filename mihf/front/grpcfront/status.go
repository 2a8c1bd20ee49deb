package grpcfront

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// refusals maps the vocabulary's errors to the protocol's.
var refusals = []struct {
	err    error
	code   codes.Code
	reason mihv1.FailedReason
}{
	{mihf.ErrPermission, codes.PermissionDenied, mihv1.FailedReason_FAILED_REASON_PERMISSION},
	{mihf.ErrNotFound, codes.NotFound, mihv1.FailedReason_FAILED_REASON_NOT_FOUND},
	{mihf.ErrInvalid, codes.InvalidArgument, mihv1.FailedReason_FAILED_REASON_INVALID},
	{mihf.ErrLimit, codes.ResourceExhausted, mihv1.FailedReason_FAILED_REASON_LIMIT},
	{mihf.ErrExists, codes.AlreadyExists, mihv1.FailedReason_FAILED_REASON_EXISTS},
	{mihf.ErrClosed, codes.Unavailable, mihv1.FailedReason_FAILED_REASON_CLOSED},
	{mihf.ErrSlow, codes.Aborted, mihv1.FailedReason_FAILED_REASON_CLOSED},
	{context.Canceled, codes.Canceled, mihv1.FailedReason_FAILED_REASON_CLOSED},
	{context.DeadlineExceeded, codes.DeadlineExceeded, mihv1.FailedReason_FAILED_REASON_CLOSED},
}

// statusOf turns an error of the broker into a status.
func statusOf(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return status.Error(r.code, err.Error())
		}
	}
	return status.Error(codes.Internal, err.Error())
}

// failedOf turns an error of the broker into an answer.
func failedOf(err error) *mihv1.Failed {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return &mihv1.Failed{Reason: r.reason, Text: err.Error()}
		}
	}
	return &mihv1.Failed{Reason: mihv1.FailedReason_FAILED_REASON_INTERNAL, Text: err.Error()}
}
