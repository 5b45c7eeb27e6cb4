package httpmw

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxSeconds is what a Retry-After of more seconds is taken for: 30 years or so, which
// fits into a time.Duration.
const maxSeconds = 1e9

// retryAfter reads the header of that name: seconds, or a date, which is relative to
// that of the answer, so that the clocks of both sides need not agree. It returns a
// negative time for what cannot be read, and false if there is nothing to read.
func retryAfter(h http.Header) (after time.Duration, ok bool) {
	values := h.Values("Retry-After")
	switch len(values) {
	case 0:
		return 0, false
	case 1:
	default:
		return -1, true // which of them?
	}
	value := strings.Trim(values[0], " \t")
	if seconds, ok := parseSeconds(value); ok {
		return seconds, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return -1, true
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(date.Sub(now), 0), maxSeconds*time.Second), true
}

// parseSeconds reads digits, and nothing else.
func parseSeconds(s string) (time.Duration, bool) {
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), maxSeconds)
	}
	return time.Duration(n) * time.Second, s != ""
}

// pushback is the default of hedgedlimit.Config.Pushback: the Retry-After of a failed
// answer. One that is longer than MaxRetryAfter, or cannot be read, means that no further
// attempt is sent, and so does an error that another attempt would only have again.
//
// That is no verdict of hedgedlimit.Fatal, which would end an attempt that runs: one of
// which the connection stood before the other side changed may yet answer.
func (o *options) pushback(err error) (time.Duration, bool) {
	if errors.Is(err, errCanceled) || o.pick == nil && hopeless(err) {
		return -1, true
	}
	var e *StatusError
	if !errors.As(err, &e) {
		return 0, false
	}
	after, ok := e.RetryAfter()
	if after > o.maxRetryAfter {
		return -1, true
	}
	return after, ok
}

// hopeless reports whether an error says of a request that it cannot be sent to its target
// at all, as far as types tell: net/http has none for a request that it finds malformed.
func hopeless(err error) bool {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &name) && name.IsNotFound || errors.As(err, &certificate) || errors.As(err, &record)
}
