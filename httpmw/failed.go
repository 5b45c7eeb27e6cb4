package httpmw

import (
	"context"
	"io"
	"net/http"
)

// rank orders failed answers by what they tell the caller.
type rank uint8

const (
	noAnswer     rank = iota
	cutShort          // its body broke off
	ofTheWay          // a gateway has failed to reach the service, or a part of it was shut
	ofTheService      // the service itself has failed
)

func rankOf(status int) rank {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ofTheWay
	}
	return ofTheService
}

// progress counts the attempts of a call, to tell whether another one may still do
// better than a failed answer. It is guarded by call.mu.
//
// An attempt counts as running from before it sends anything until its failure is
// counted, which is before its function returns. One that succeeds, or whose failed
// answer is passed through, is never counted as failed: so at most one attempt of a call
// finds that all others have failed, and what they have kept is kept by then, since it
// is noted under the same lock. And at least one does, of those whose answers cannot be
// kept, unless a better one was kept or another attempt runs: each is counted in the step
// in which it is given up, so the last of them finds no other. An attempt of which the
// goroutine has not come as far as beginLocked yet may be overlooked: those with lower numbers are not, since attempts are
// launched in the order of their numbers, and one with a higher number has not been sent
// anywhere when the answer came. It loses, like a hedge that is sent in the instant of
// the answer.
type progress struct {
	begun  int8           // the highest number of an attempt that has begun
	failed int8           // attempts that have failed
	best   rank           // of the answers that were kept
	kept   *http.Response // the latest of that rank; nil if there is none
}

// beginLocked counts an attempt that begins. c.mu must be held.
func (c *call) beginLocked(number int) {
	c.progress.begun = max(c.progress.begun, int8(number)) // MaxAttempts is small
}

// fail counts an attempt that has failed, and keeps its answer, of which r is the rank,
// for the caller to have if nothing better comes.
func (c *call) fail(r rank, answer *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.progress
	p.failed++
	if answer != nil && r >= p.best {
		p.best, p.kept = r, answer
	}
}

// kept returns the answer to return for a call that failed with err: one of the service
// itself if there is one, else one of the way to it, else one that broke off, and of those
// the latest. It returns nil if there is none, and if the caller has cancelled the call.
func (c *call) kept(err error) *http.Response {
	if err == c.ctx.Err() && err != context.DeadlineExceeded { //nolint:errorlint // Do returns it as it is
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress.kept
}

// isLast reports whether the answer of an attempt that has not been counted as failed is
// the best that the caller can get: all other attempts that the call may have, have
// failed, and none of them kept a better one.
func (c *call) isLast(status int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.progress.failed) == c.attempts-1 && rankOf(status) >= c.progress.best
}

// giveUp counts an attempt as failed whose answer cannot be kept, unless it is the best
// that the caller can get from the attempts that have begun: it returns false then. To
// decide and to count is one step: of two that meet here, the later one finds itself alone.
func (c *call) giveUp(status int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.progress
	if p.begun-p.failed == 1 && rankOf(status) >= p.best {
		return false
	}
	p.failed++
	return true
}

// failure decides what becomes of a failed answer, whose body is read then and closed, so
// that the attempt can end, unless the answer is passed through: it returns nil then.
// That is so if nothing better can follow, or if it is too long or too slow to keep while no
// other attempt runs. The attempt is counted as failed otherwise.
func (c *call) failure(r answer, w *work) *StatusError {
	if c.isLast(r.StatusCode) {
		return nil
	}
	e := &StatusError{StatusCode: r.StatusCode, Status: r.Status}
	e.after, e.pushed = retryAfter(r.Header)
	if r.Body == nil || r.Body == http.NoBody {
		c.fail(rankOf(r.StatusCode), r.Response)
		return e
	}
	inner := r.Body
	passed := false
	defer func() {
		if !passed {
			_ = inner.Close() // also if Read panics; its error has no place
		}
	}()
	data, err := readKept(r.Response, w)
	e.err = err
	switch err {
	case nil:
		r.takeTrailers()
		r.Body = &refilled{ReadCloser: spent{inner}, head: data, err: io.EOF}
		c.fail(rankOf(r.StatusCode), r.Response)
	case errTooLong, errTooSlow: // the sentinels themselves
		if passed = !c.giveUp(r.StatusCode); passed {
			return nil
		}
	default:
		// The caller would have had as much without us.
		r.takeTrailers()
		r.Body = &refilled{ReadCloser: spent{inner}, head: data, err: err}
		c.fail(cutShort, r.Response)
	}
	return e
}

// readKept reads the body of a failed answer. On an error of the body it returns what was
// read before. On errTooLong and errTooSlow, nothing of the body of r is lost.
func readKept(r *http.Response, w *work) ([]byte, error) {
	if r.ContentLength > maxKept {
		return nil, errTooLong
	}
	k := keep(r.Body, w)
	r.Body = k
	return k.wait()
}

// spent is the body of an answer that was kept: it is closed already, and what it says to
// Read from there on is what the caller is told after Close.
type spent struct{ io.ReadCloser }

func (spent) Close() error { return nil }

// dispose disposes of the answer of a loser. While its context lives, reading the
// body to its end may save the connection; after that, closing it is all there is
// to do.
func (t *Transport) dispose(r *http.Response) {
	if r.Body == nil {
		return
	}
	defer func() { _ = r.Body.Close() }() // nobody is left to tell
	if b, ok := r.Body.(*responseBody); ok && b.ctx.Err() == nil {
		_, _ = io.CopyN(io.Discard, b, t.options.drainBytes) // as above
	}
}
