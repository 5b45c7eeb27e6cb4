package httpmw

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// refusal is why a request was not served.
type refusal uint8

const (
	notRefused refusal = iota
	refusedFull
	refusedExtraFull
	refusedExtraShare
	refusedExpired
	refusedGone
	refusedClosed
	numRefusals
)

// reason says what the error of the limiter means; full is for the limit itself.
func reason(err error, full refusal) refusal {
	switch {
	case err == nil:
		return notRefused
	case errors.Is(err, limiter.ErrLimitExceeded):
		return full
	case errors.Is(err, limiter.ErrClosed):
		return refusedClosed
	case errors.Is(err, context.DeadlineExceeded):
		return refusedExpired
	}
	return refusedGone
}

// The answer to all that is refused. It tells nothing of the server but that it is busy.
// The slices are shared by all refusals, so that one allocates nothing; their values
// must not be changed in place, as net/http does not, and appending makes a copy.
var (
	refusalBody   = []byte("overloaded, try again later\n")
	refusalLength = []string{strconv.Itoa(len(refusalBody))}
	refusalType   = []string{"text/plain; charset=utf-8"}
)

// seconds is the value of a Retry-After header: whole seconds, rounded up.
func seconds(d time.Duration) []string {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return []string{strconv.FormatInt(n, 10)}
}

// refuse answers with 503 and leaves the request's body unread. A client that is gone is
// answered as well: what logs outside sees how it ended.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, why refusal) {
	h.refused[why].Add(1)
	header := w.Header()
	header["Content-Type"] = refusalType
	header["Content-Length"] = refusalLength
	header["Retry-After"] = h.retryAfter
	w.WriteHeader(http.StatusServiceUnavailable)
	if r.Method != http.MethodHead {
		_, _ = w.Write(refusalBody) // a client that cannot be reached is no concern here
	}
}
