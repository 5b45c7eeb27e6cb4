package limiter

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/permit"
)

// DefaultClassify is what a nil Config.Classify means, first match wins:
//
//   - nil is a Success;
//   - an error with a method Outcome() permit.Outcome anywhere in its chain says
//     so itself, which is how a protocol tells an overload from other errors;
//   - context.DeadlineExceeded is Expired and context.Canceled is Canceled;
//   - anything else is Ignored: a call that fails at once would look like an
//     excellent latency, and a call that fails late like a slow service.
func DefaultClassify(err error) permit.Outcome {
	if err == nil {
		return permit.Success
	}
	var teller interface{ Outcome() permit.Outcome }
	switch {
	case errors.As(err, &teller):
		return teller.Outcome()
	case errors.Is(err, context.DeadlineExceeded):
		return permit.Expired
	case errors.Is(err, context.Canceled):
		return permit.Canceled
	}
	return permit.Ignored
}
