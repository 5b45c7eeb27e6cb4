package hedgedlimit

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrGoexit is the error of an attempt whose function called runtime.Goexit
	// instead of returning. It is Fatal.
	ErrGoexit = errors.New("hedgedlimit: the attempt's function called runtime.Goexit")

	// ErrLost is the cause (see context.Cause) with which the context of a loser
	// is cancelled. It is for the attempt to see: no call ever returns it.
	ErrLost = errors.New("hedgedlimit: the call was decided without this attempt")
)

// AttemptsError is the error of a call in which more than one attempt failed.
// It wraps the errors of all of them, so errors.Is and errors.As find each.
// Losers that were cancelled have no part in it.
type AttemptsError struct {
	errs []error
}

// Unwrap returns the errors of the failed attempts in the order of their
// numbers, unchanged. The slice must not be modified.
func (e *AttemptsError) Unwrap() []error { return e.errs }

// Error lists the errors of the attempts.
func (e *AttemptsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hedgedlimit: all %d attempts failed", len(e.errs))
	for _, err := range e.errs {
		b.WriteString("; ")
		b.WriteString(err.Error())
	}
	return b.String()
}

// Timeout reports whether every attempt failed by a time-out, so that net.Error and
// url.Error can tell.
func (e *AttemptsError) Timeout() bool {
	return e.all(func(err error) bool {
		var t interface{ Timeout() bool }
		return errors.As(err, &t) && t.Timeout()
	})
}

// Temporary reports whether every attempt failed by what calls itself temporary, for
// the callers of url.Error who still ask.
func (e *AttemptsError) Temporary() bool {
	return e.all(func(err error) bool {
		var t interface{ Temporary() bool }
		return errors.As(err, &t) && t.Temporary()
	})
}

func (e *AttemptsError) all(is func(error) bool) bool {
	for _, err := range e.errs {
		if !is(err) {
			return false
		}
	}
	return len(e.errs) > 0
}

// Verdict says what the failure of one attempt means for the call.
type Verdict uint8

const (
	// NonFatal: the next attempt, if any is left, may start now. It is the zero
	// value.
	NonFatal Verdict = iota
	// Fatal: no attempt can do better. The call ends with this error, and with those
	// of the attempts that had failed before it.
	Fatal
)

// String returns the lower-case name of v. Every value but NonFatal is Fatal.
func (v Verdict) String() string {
	if v == NonFatal {
		return "nonfatal"
	}
	return "fatal"
}
