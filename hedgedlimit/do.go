package hedgedlimit

import (
	"context"
	"errors"
	"io"

	"github.com/holdfast-go/holdfast/limiter"
)

// CallOption changes one call of Do.
type CallOption[T any] struct {
	discard func(T)
	noHedge bool
	key     string
}

// Discard disposes of the results that a call does not return: it is called once
// for each loser that succeeded, before that attempt's permit is released, and
// never in the caller's goroutine. Without it, a result that is an io.Closer is
// closed. A result that comes with an error is not passed to it: fn must not
// leave anything open behind an error.
func Discard[T any](discard func(T)) CallOption[T] { return CallOption[T]{discard: discard} }

// NoHedge keeps a call to its primary: no hedge and no retry is sent. Use it for
// work that must not be done twice.
func NoHedge[T any]() CallOption[T] { return CallOption[T]{noHedge: true} }

// Key says what the call is like: its method, say. A delay made by PerKey learns a
// quantile for each key. Without it, and for other delays, all calls are alike.
func Key[T any](key string) CallOption[T] { return CallOption[T]{key: key} }

// Do runs fn under a permit, and again, side by side, if it takes long, as the
// configuration of h says. It returns the result of the first attempt that
// succeeds. Each attempt runs in a goroutine of its own, so fn must be safe for
// that, and must be work that may be done twice; see NoHedge.
//
// It returns the zero T and
//   - limiter.ErrLimitExceeded or limiter.ErrClosed if the primary got no permit, or
//     the hedger or the limiter was closed; fn has not been run then;
//   - ctx.Err() if ctx ends before the call is decided, in whatever state the
//     attempts are; context.DeadlineExceeded once its deadline has passed, which may
//     be an instant before ctx says so itself;
//   - the error of the attempt if one has failed, unchanged, or an AttemptsError
//     if more have;
//
// and it panics with the value that fn panicked with, if the call was undecided.
//
// A call whose hedge does not fire allocates five times, 384 B (BenchmarkCall).
//
// Do never waits for a loser. Attempts that still run when it returns go on in
// the background, each holding its permit until its work has ended; their
// contexts end as Config.Losers says. The context of the winner ends when fn has
// returned and every Hold is released, so that a result can be read after Do has
// returned.
func Do[T any](ctx context.Context, h *Hedger, fn func(ctx context.Context, a Attempt) (T, error), options ...CallOption[T]) (T, error) {
	var zero T
	switch {
	case ctx == nil:
		return zero, errors.New("hedgedlimit: Do with a nil Context")
	case h == nil:
		return zero, errors.New("hedgedlimit: Do with a nil Hedger")
	case fn == nil:
		return zero, errors.New("hedgedlimit: Do with a nil function")
	}
	if !h.enter() {
		return zero, limiter.ErrClosed
	}
	r := take[T](h)
	r.begin(ctx)
	defer r.unref()
	r.fn, r.maxAttempts = fn, h.config.MaxAttempts
	key := ""
	for _, o := range options {
		if o.discard != nil {
			r.discarded = o.discard
		}
		if o.noHedge {
			r.maxAttempts = 1
		}
		if o.key != "" {
			key = o.key
		}
	}
	winner, err := r.do(key)
	if err != nil {
		return zero, err
	}
	return r.takeResult(winner), nil
}

// closeResult is the default of Discard.
func closeResult[T any](result T) {
	if c, ok := any(result).(io.Closer); ok {
		_ = c.Close() // nobody is left to tell
	}
}
