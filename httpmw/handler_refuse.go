package httpmw

import (
	"net/http"
	"strconv"
	"time"
)

// The answer to all that is refused. It tells nothing of the server but that it is busy.
var (
	refusalBody   = []byte("overloaded, try again later\n")
	refusalLength = strconv.Itoa(len(refusalBody))
)

// seconds is the value of a Retry-After header: whole seconds, rounded up.
func seconds(d time.Duration) string {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return strconv.FormatInt(n, 10)
}

// refuse answers with 503 and leaves the request's body unread. A client that is gone is
// answered as well: what logs outside sees how it ended. What was set outside for the
// answer that is not given, for how long it keeps and how it is coded, is taken away.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for _, key := range []string{"Cache-Control", "Etag", "Last-Modified", "Content-Encoding"} {
		delete(header, key)
	}
	// The values are of this answer alone: what is outside may change them in place.
	values := []string{"text/plain; charset=utf-8", refusalLength, h.retryAfter}
	header["Content-Type"] = values[0:1:1]
	header["Content-Length"] = values[1:2:2]
	header["Retry-After"] = values[2:3:3]
	w.WriteHeader(http.StatusServiceUnavailable)
	if r.Method != http.MethodHead {
		_, _ = w.Write(refusalBody) // a client that cannot be reached is no concern here
	}
}
