package httpmw

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// maxAttempt is the highest number of an attempt that is believed.
const maxAttempt = 1000

// attempt is the number of the attempt that a request is by its header, and 1 if the
// header is anything but one number from 1 to maxAttempt. Who sends nonsense is treated
// like who sends nothing.
func attempt(r *http.Request) int64 {
	if n, ok := number(r.Header[AttemptHeader]); ok && n >= 1 && n <= maxAttempt {
		return n
	}
	return 1
}

// timeout is what the request's header asks for, or the most that is allowed if that is
// less. It is false if the header is anything but one number, or is not read.
func (h *Handler) timeout(r *http.Request) (time.Duration, bool) {
	if h.maxTimeout == 0 {
		return 0, false
	}
	n, ok := number(r.Header[TimeoutHeader])
	return min(time.Duration(n)*time.Millisecond, h.maxTimeout), ok
}

// number reads a header that has one value, of 1 to 12 ASCII digits: so many milliseconds
// are 31 years, and still a Duration.
func number(values []string) (n int64, ok bool) {
	if len(values) != 1 || len(values[0]) < 1 || len(values[0]) > 12 {
		return 0, false
	}
	for _, digit := range []byte(values[0]) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = 10*n + int64(digit-'0')
	}
	return n, true
}

// isTunnel reports whether a request asks for one, so that the time until its handler
// returns is no latency: by CONNECT, which over HTTP/2 a WebSocket is too, or by the
// handshake of a WebSocket. Whatever else a client would like to upgrade to, as some say
// in each request, gets an ordinary answer: its time is a latency like any other, or who
// says so could keep the limit from learning.
func isTunnel(r *http.Request) bool {
	return r.Method == http.MethodConnect ||
		r.Method == http.MethodGet && hasToken(r.Header["Upgrade"], "websocket") && hasToken(r.Header["Connection"], "upgrade")
}

// hasToken reports whether a header that is a list holds the token, in any case.
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(one), token) {
				return true
			}
		}
	}
	return false
}

// kind is what a request is by its headers. Only a word of its client's tells a retry from
// a hedge.
func kind(r *http.Request) limiter.Kind {
	if attempt(r) == 1 {
		return limiter.Primary
	}
	if words := r.Header[KindHeader]; len(words) == 1 && words[0] == kindRetry {
		return limiter.Retry
	}
	return limiter.Hedge
}

// withContext returns a copy of the request with another context. Trailers that were
// announced are in a map that both share. Those that were not, net/http sets in its own
// request when it has read the body to its end, and the copy's body brings them over: the
// request itself is not written to, since others may read it.
func withContext(ctx context.Context, r *http.Request) *http.Request {
	inner := r.WithContext(ctx)
	if r.Trailer == nil && r.Body != nil && slices.Contains(r.TransferEncoding, "chunked") {
		inner.Body = &trailingBody{ReadCloser: r.Body, from: r, to: inner}
	}
	return inner
}

// trailingBody is the body of a copied request. It has the one reader that any body has,
// which is who may look at the trailers when it has met the end.
type trailingBody struct {
	io.ReadCloser
	from, to *http.Request
}

func (b *trailingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && b.to.Trailer == nil { //nolint:errorlint // net/http returns it bare
		b.to.Trailer = b.from.Trailer
	}
	return n, err
}

// handBack writes to the request what net/http has written to its copy: the forms, whose
// files the server removes, and the pattern, which middleware outside reads. The next
// handler has returned, and would have had it written there itself. Nothing else is
// written, so that who reads the request outside meanwhile may do so as ever.
func handBack(r, inner *http.Request) {
	if r.Form == nil && inner.Form != nil {
		r.Form, r.PostForm = inner.Form, inner.PostForm
	}
	if r.MultipartForm != inner.MultipartForm {
		r.MultipartForm = inner.MultipartForm
	}
	if r.Pattern != inner.Pattern {
		r.Pattern = inner.Pattern
	}
}
