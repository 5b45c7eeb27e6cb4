package httpmw

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// errNilResponse is the error of an attempt whose base broke the contract of
// http.RoundTripper.
var errNilResponse = errors.New("httpmw: the base RoundTripper returned neither a response nor an error")

// These say that a failed answer was not kept.
var (
	errTooLong = fmt.Errorf("not kept, since its body is longer than %d bytes", maxKept)
	errTooSlow = fmt.Errorf("not kept, since its body takes longer than %v", keepTime)
)

// failure reports whether another attempt may do better than an answer with this
// status. The other 4xx are about the request, which will not change.
func failure(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// outcome is what an answer with this status teaches the limit.
func outcome(status int) permit.Outcome {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return permit.Overload
	case http.StatusGatewayTimeout:
		return permit.Expired
	case http.StatusSwitchingProtocols:
		return permit.Ignored // A tunnel's set-up is no request's latency.
	}
	return permit.Success
}

// StatusError is the error of an attempt that was answered with a failure, while
// another attempt might have done better. The Classify functions of a
// hedgedlimit.Config and a limiter.Config see it, and so does its Pushback. A caller of
// the Transport sees it only if its attempt ran beside others, its answer was longer
// than 64 KiB or took longer than 100 ms to come, and the others then failed without an answer to return.
type StatusError struct {
	// StatusCode and Status are those of the answer.
	StatusCode int
	Status     string

	err    error         // why it was not kept, or what its body broke off with; or nil
	after  time.Duration // Retry-After; see there
	pushed bool          // there was one
}

// RetryAfter returns how long the answer has asked to wait before the next attempt, and
// false if it did not. The time is negative if the header could not be read, and 0 for a
// date of the past; a date is taken relative to the Date of the answer.
func (e *StatusError) RetryAfter() (after time.Duration, ok bool) { return e.after, e.pushed }

// Error tells the status, and what was wrong with the body if something was.
func (e *StatusError) Error() string {
	if e.err != nil {
		return "httpmw: answered with " + e.status() + ": " + e.err.Error()
	}
	return "httpmw: answered with " + e.status()
}

// Unwrap returns the error that cut the body of the answer short, if one did.
func (e *StatusError) Unwrap() error { return e.err }

func (e *StatusError) status() string {
	if e.Status == "" {
		return fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode))
	}
	return e.Status
}

// Outcome says what the answer teaches the limit; limiter.DefaultClassify asks.
func (e *StatusError) Outcome() permit.Outcome { return outcome(e.StatusCode) }

// plainError returns the error that http.Client is to see for a call that failed with
// err.
func plainError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if err == ctx.Err() { //nolint:errorlint // Do returns it as it is
		return context.Cause(ctx)
	}
	var attempts *hedgedlimit.AttemptsError
	if !errors.As(err, &attempts) {
		return err
	}
	// http.Client makes http.ErrSchemeMismatch of this one, but without errors.As.
	var mismatch tls.RecordHeaderError
	for _, one := range attempts.Unwrap() {
		m, ok := one.(tls.RecordHeaderError) //nolint:errorlint // as http.Client does
		if !ok {
			return err
		}
		mismatch = m
	}
	return mismatch
}
