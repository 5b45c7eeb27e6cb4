package grpcmw

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/limiter"
)

// refusals are the errors of the calls that are refused, by their reason. They tell the
// client no more than that the server is busy, or about to go. Interceptors outside find
// in them what the limiter or the context has said.
type refusals [gate.NumReasons]error

// A hedge or retry that is refused as one is UNAVAILABLE whatever code is: most service
// configs go on after that, while RESOURCE_EXHAUSTED, being fatal to them, would end the
// call and cancel the attempt that is being served.
func refusalsWith(code codes.Code) refusals {
	const busy = "overloaded, try again later"
	extra := newStatusError(codes.Unavailable, "busy, no hedges and retries now", limiter.ErrLimitExceeded)
	return refusals{
		gate.Full:       newStatusError(code, busy, limiter.ErrLimitExceeded),
		gate.ExtraFull:  extra,
		gate.ExtraShare: extra,
		// Whoever gets these has left, or a deadline of the server's own has passed.
		gate.Expired: newStatusError(codes.DeadlineExceeded, busy, context.DeadlineExceeded),
		gate.Gone:    newStatusError(codes.Canceled, busy, context.Canceled),
		gate.Closed:  newStatusError(codes.Unavailable, "shutting down, try elsewhere", limiter.ErrClosed),
	}
}

// pushbackTrailer returns the trailer of the refusals but for that of a closed Server, after
// which another one should be tried at once. A time is
// rounded up to whole milliseconds, and below zero it is −1: do not try again.
func pushbackTrailer(d time.Duration) metadata.MD {
	ms := int64(d / time.Millisecond)
	switch {
	case d < 0:
		ms = -1
	case d%time.Millisecond > 0:
		ms++
	}
	return metadata.Pairs(pushbackKey, strconv.FormatInt(ms, 10))
}
