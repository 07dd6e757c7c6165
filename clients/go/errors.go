package facets

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is a failed call.
type Error struct {
	// Code such as codes.InvalidArgument.
	Code codes.Code
	// Message of the server: what, expected, got.
	Message string
	// Field of the request, such as texts[1]; empty: none.
	Field string
	// Reason is a stable word; empty: unknown.
	Reason string
	// RetryAfter is when to come back; 0: the server did not say.
	RetryAfter time.Duration
}

// Error is the code and the server's sentence.
func (failed *Error) Error() string { return fmt.Sprintf("%s: %s", failed.Code, failed.Message) }

// CodeOf is the code of a failed call; Unknown for other errors, OK for none.
func CodeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Code
	}
	return codes.Unknown
}

// errorOf reads what a status of gRPC says; nil stays nil.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	said, ok := status.FromError(err)
	if !ok {
		return err
	}
	failed := &Error{Code: said.Code(), Message: said.Message()}
	for _, detail := range said.Details() {
		switch one := detail.(type) {
		case *errdetails.BadRequest:
			if violations := one.GetFieldViolations(); len(violations) > 0 {
				failed.Field = violations[0].GetField()
			}
		case *errdetails.ErrorInfo:
			failed.Reason = one.GetReason()
		case *errdetails.RetryInfo:
			delay := one.GetRetryDelay()
			failed.RetryAfter = time.Duration(delay.GetSeconds())*time.Second + time.Duration(delay.GetNanos())
		}
	}
	return failed
}
