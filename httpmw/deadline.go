package httpmw

import (
	"context"
	"math"
	"time"
)

// TimeoutHeader is the header that DeadlineFraction sends and DeadlineFromHeader reads: how
// many whole milliseconds the server has for its answer.
const TimeoutHeader = "X-Request-Timeout-Ms"

// tighten returns the context of an attempt with an earlier deadline, if the options say
// so and there is a deadline at all, and for how long it is, which is negative otherwise.
// Unless it is nil, cut must be called when the work of the attempt has ended.
func (o *options) tighten(ctx context.Context) (tight context.Context, left time.Duration, cut context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if o.fraction == 0 || !ok {
		return ctx, -1, nil
	}
	now := time.Now()
	left = time.Duration(o.fraction * float64(max(deadline.Sub(now), 0)))
	at := now.Add(left)
	if !at.Before(deadline) {
		return ctx, left, nil // The whole; a float may have rounded it up.
	}
	tight, cut = context.WithDeadline(ctx, at)
	return tight, left, cut
}

// expired reports whether a context has ended by a deadline of its own, and not by that
// of its parent.
func expired(tight, parent context.Context) bool {
	return tight != parent && tight.Err() == context.DeadlineExceeded && parent.Err() == nil //nolint:errorlint // bare in a Context
}

// validFraction reports whether f makes sense as a share of the time that is left.
func validFraction(f float64) bool { return !math.IsNaN(f) && f >= 0 && f <= 1 }
