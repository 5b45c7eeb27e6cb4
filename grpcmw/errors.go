package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A statusError is an error of our own that is a status too.
type statusError struct {
	status *status.Status
	text   string
	causes []error
}

func newStatusError(code codes.Code, message string, causes ...error) *statusError {
	return withStatus(status.New(code, message), causes...)
}

func withStatus(s *status.Status, causes ...error) *statusError {
	return &statusError{status: s, text: s.Err().Error(), causes: causes}
}

func (e *statusError) Error() string              { return e.text }
func (e *statusError) GRPCStatus() *status.Status { return e.status }
func (e *statusError) Unwrap() []error            { return e.causes }

// They are made once: a refusal allocates nothing.
var (
	errLimitExceeded = newStatusError(codes.ResourceExhausted, "grpcmw: limit exceeded", limiter.ErrLimitExceeded)
	errClosed        = newStatusError(codes.Unavailable, "grpcmw: client closed", limiter.ErrClosed)
	errCanceled      = newStatusError(codes.Canceled, "grpcmw: context canceled", context.Canceled)
	errDeadline      = newStatusError(codes.DeadlineExceeded, "grpcmw: context deadline exceeded", context.DeadlineExceeded)
	errNilStream     = newStatusError(codes.Internal, "grpcmw: the streamer returned neither a stream nor an error")
	errClosing       = newStatusError(codes.Canceled, "grpcmw: the channel is closing")
	errNoEnd         = newStatusError(codes.Internal, "grpcmw: the call did not end", hedgedlimit.ErrGoexit)
)

// errReturned is the error of an attempt that was to begin when its call had returned
// already. Nobody is left to see it.
var errReturned = errors.New("grpcmw: the call has returned")

// refusal is the error of a call that ended by no answer: what the limiter or the context
// says, as a status.
func refusal(err error) error {
	switch {
	case err == limiter.ErrLimitExceeded: //nolint:errorlint // the bare sentinel; the path of overload
		return errLimitExceeded
	case errors.Is(err, limiter.ErrClosed):
		return errClosed
	case errors.Is(err, context.DeadlineExceeded):
		return errDeadline
	case errors.Is(err, context.Canceled):
		return errCanceled
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return newStatusError(codes.Unknown, err.Error(), err)
}

// explained is the error of an attempt whose caller's context has ended. If that is what
// its code says, the context's error is found in it too.
func explained(ctx context.Context, err error) error {
	if !byContext(ctx, err) {
		return err
	}
	return because(err, contextErr(ctx))
}

// because returns err, with cause found in it.
func because(err, cause error) error {
	if errors.Is(err, cause) {
		return err
	}
	return withStatus(status.Convert(err), err, cause)
}

// contextErr is the error of ctx. One whose deadline has passed counts as ended, as in
// hedgedlimit: its own timer may be about to fire, and gRPC and the server have others.
func contextErr(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// byContext reports whether err says no more than that the context has ended.
func byContext(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	ended := contextErr(ctx)
	return ended != nil && status.FromContextError(ended).Code() == codeOf(err)
}

// codeOf returns the code of an error of an RPC. An interceptor inside may return the bare
// error of a context, which is no status.
func codeOf(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}

// AttemptsError is the error of a call of which more than one attempt failed. Its status
// is that of the attempt that decided the call: one that failed fatally, or the last one
// to fail. It wraps the errors of all of them. Losers that were cancelled have no part in
// it.
type AttemptsError struct {
	status *status.Status
	errs   []error
}

// GRPCStatus returns the status of the attempt that decided the call, details included.
func (e *AttemptsError) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the errors of the failed attempts in the order of their numbers,
// unchanged. The slice must not be modified.
func (e *AttemptsError) Unwrap() []error { return e.errs }

// Error lists the errors of the attempts.
func (e *AttemptsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "grpcmw: all %d attempts failed", len(e.errs))
	for _, err := range e.errs {
		b.WriteString("; ")
		b.WriteString(err.Error())
	}
	return b.String()
}

// attemptError is the error of an attempt on its way through hedgedlimit. No caller sees
// it, but Classify of a hedgedlimit.Config and of a limiter.Config do.
type attemptError struct {
	err     error // of the invoker or the stream, unchanged
	cells   *cells
	outcome permit.Outcome
	late    bool // it has ended by its own deadline; see DeadlineFraction
	order   int  // among the failures of its call, from 1
	fatal   bool // set by classify, in the attempt's goroutine before it reports
}

func (e *attemptError) Error() string              { return e.err.Error() }
func (e *attemptError) Unwrap() error              { return e.err }
func (e *attemptError) GRPCStatus() *status.Status { return status.Convert(e.err) }

// Outcome says what the answer teaches the limit; limiter.DefaultClassify asks.
func (e *attemptError) Outcome() permit.Outcome { return e.outcome }

// outcome is what the status of a unary attempt teaches the limit. Local tells that no
// answer of the server has come.
func outcome(ctx context.Context, code codes.Code, local bool) permit.Outcome {
	switch code {
	case codes.Unavailable:
		return permit.Overload
	case codes.ResourceExhausted:
		if local {
			return permit.Ignored // A message longer than this side allows.
		}
		return permit.Overload
	case codes.DeadlineExceeded:
		return permit.Expired
	case codes.Canceled:
		if ctx.Err() != nil {
			return permit.Canceled
		}
	}
	return permit.Success
}

// streamOutcome is what the final status of a stream teaches the limit: how long it ran
// says nothing about the server.
func streamOutcome(code codes.Code, local bool) permit.Outcome {
	if code == codes.Unavailable || code == codes.ResourceExhausted && !local {
		return permit.Overload
	}
	return permit.Ignored
}

// decide returns the error of a call whose attempts have failed with err, and the cells of
// the attempt that decided it, if one did.
func decide(ctx context.Context, err error) (error, *cells) { //nolint:revive // the error is what is asked for
	switch e := err.(type) { //nolint:errorlint // Do returns these two as they are
	case *attemptError:
		return e.explained(ctx, e.err), e.cells
	case *hedgedlimit.AttemptsError:
		return decideAll(ctx, e.Unwrap())
	}
	return refusal(err), nil
}

func decideAll(ctx context.Context, failed []error) (error, *cells) { //nolint:revive // as above
	var last *attemptError
	errs := make([]error, len(failed))
	for i, err := range failed {
		errs[i] = err
		e, ok := err.(*attemptError) //nolint:errorlint // as they were made; others are ErrGoexit
		if !ok {
			continue
		}
		errs[i] = e.err
		if last == nil || !last.fatal && (e.fatal || e.order > last.order) {
			last = e
		}
	}
	if last == nil {
		return &AttemptsError{errNoEnd.status, errs}, nil
	}
	return last.explained(ctx, &AttemptsError{status.Convert(last.err), errs}), last.cells
}

// explained returns err, which is that of a call that e has decided, with the error of the
// context that ended it.
func (e *attemptError) explained(ctx context.Context, err error) error {
	if e.late {
		return because(err, context.DeadlineExceeded)
	}
	return explained(ctx, err)
}

// late reports whether err says that an attempt has ended by its deadline.
func late(ctx *attemptContext, err error) bool {
	return codeOf(err) == codes.DeadlineExceeded && byContext(ctx, err)
}
