package httpmw

import (
	"net/http"
	"strconv"
	"time"
)

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
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["Content-Type"] = refusalType
	header["Content-Length"] = refusalLength
	header["Retry-After"] = h.retryAfter
	w.WriteHeader(http.StatusServiceUnavailable)
	if r.Method != http.MethodHead {
		_, _ = w.Write(refusalBody) // a client that cannot be reached is no concern here
	}
}
