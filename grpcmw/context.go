package grpcmw

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"
)

// numbered tells the server by the metadata how many attempts have preceded this one, from
// the second on; number is 0 for a call that is sent once. The number of another, which a
// proxy may have passed on, is taken out.
func numbered(ctx context.Context, number int) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	switch {
	case number > 1:
		if !ok {
			md = metadata.MD{}
		}
		md.Set(attemptsKey, strconv.Itoa(number-1))
	case len(md[attemptsKey]) > 0:
		md.Delete(attemptsKey)
	default:
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// shortened returns ctx with this share of the time that is left.
func shortened(ctx context.Context, fraction float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, time.Duration(fraction*float64(left)))
}
