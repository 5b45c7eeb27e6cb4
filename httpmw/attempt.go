package httpmw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// maxKept is how long the body of a failed answer may be to be kept.
const maxKept = 64 << 10

// errReturned is the error of an attempt that was to begin when its call had
// returned already. Nobody is left to see it.
var errReturned = errors.New("httpmw: the call has returned")

// call is one call of RoundTrip with its attempts.
type call struct {
	// Immutable.
	transport *Transport
	request   *http.Request // the caller's; read only under mu while !returned
	method    string
	retries   bool // a failure may be followed by another attempt

	mu sync.Mutex // a leaf
	// Guarded by mu.

	returned bool // RoundTrip has returned, and the request is the caller's again
	sent     bool // the first attempt has taken charge of the request's body

	picking sync.Mutex // held while the user's function picks a target
	// Guarded by picking.

	tried []*url.URL
}

// attempt runs one attempt: it is the function of hedgedlimit.Do. It returns when
// the headers are there, and that is when the latency ends; the permit is held
// until all parts of the work have ended.
func (c *call) attempt(ctx context.Context, a hedgedlimit.Attempt) (*http.Response, error) {
	w := &work{release: a.Hold(), outcome: permit.Success}
	w.parts.Store(1)
	var sent io.Closer // the request body, once the base is to close it
	finished := false
	defer func() {
		if !finished {
			// A panic or Goexit of user code goes through. The base has let go of
			// the request, or will not complain of a body that is closed twice.
			w.outcome = permit.Ignored
			if sent != nil {
				_ = sent.Close() // the panic says more
			}
		}
		w.end()
	}()
	out, err := c.prepare(ctx, a.Number(), w)
	if err != nil {
		finished = true
		return nil, err
	}
	if out.Body != nil {
		sent = out.Body
	}
	r, err := c.transport.base.RoundTrip(out)
	finished = true
	switch {
	case err != nil:
		if r != nil && r.Body != nil {
			_ = r.Body.Close() // against the contract, but not to be leaked
		}
		return nil, err // unchanged; hedgedlimit knows whether the context explains it
	case r == nil:
		return nil, errNilResponse
	}
	if r.Request == out {
		// As net/http does, the answer refers to the request that was asked for.
		// Its context, unlike the attempt's, is not ended by us.
		r.Request = c.request
	}
	if c.retries && failure(r.StatusCode) {
		return nil, keep(ctx, r)
	}
	w.outcome = outcome(r.StatusCode)
	return wrapResponse(ctx, r, c.method, w, &c.transport.lost), nil
}

// prepare makes the request of attempt number n. On error the base must not be
// called, and no part of the work has been begun; the caller's body, if it was
// not taken, is closed by finish.
func (c *call) prepare(ctx context.Context, n int, w *work) (*http.Request, error) {
	if n > 1 && httptrace.ContextClientTrace(ctx) != nil {
		ctx = traceless{ctx}
	}
	c.mu.Lock()
	if c.returned {
		c.mu.Unlock()
		return nil, errReturned
	}
	out := c.request.Clone(ctx)
	if !c.retries {
		// The caller may fill in the trailers while the only body is being read.
		out.Trailer = c.request.Trailer
	}
	c.mu.Unlock()

	if c.transport.options.header {
		if out.Header == nil {
			out.Header = make(http.Header)
		}
		out.Header.Set(AttemptHeader, strconv.Itoa(n))
	}
	c.pickTarget(out)
	return out, c.prepareBody(out, n, w)
}

// pickTarget sends the attempt to the target that the user's function picks.
func (c *call) pickTarget(out *http.Request) {
	pick := c.transport.options.pick
	if pick == nil {
		return
	}
	if out.Host == "" {
		out.Host = out.URL.Host
	}
	c.picking.Lock()
	defer c.picking.Unlock()
	target := pick(out, c.tried[:len(c.tried):len(c.tried)])
	if target == nil {
		target = out.URL
	}
	out.URL.Scheme, out.URL.Host = target.Scheme, target.Host
	c.tried = append(c.tried, &url.URL{Scheme: target.Scheme, Host: target.Host})
}

// prepareBody gives the attempt a body of its own: the caller's to the first one,
// a copy by GetBody to the others. It is the last thing that can fail, so that a
// body that was opened is always handed to the base.
func (c *call) prepareBody(out *http.Request, n int, w *work) error {
	if out.Body == nil || out.Body == http.NoBody {
		return nil
	}
	original := out.GetBody
	if original != nil {
		// The base may want the body once more, to repeat a request on another
		// connection. That is the work of this attempt too.
		out.GetBody = func() (io.ReadCloser, error) {
			b, err := original()
			if err != nil || b == nil || b == http.NoBody {
				return b, err
			}
			return newRequestBody(b, w, &c.transport.lost), nil
		}
	}
	if n == 1 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.returned {
			return errReturned
		}
		c.sent = true
		out.Body = newRequestBody(out.Body, w, &c.transport.lost)
		return nil
	}
	b, err := original()
	switch {
	case err != nil:
		return fmt.Errorf("httpmw: attempt %d has no body: %w", n, err)
	case b == nil:
		return fmt.Errorf("httpmw: attempt %d has no body: GetBody returned nil", n)
	}
	c.mu.Lock()
	returned := c.returned
	c.mu.Unlock()
	if returned {
		// The caller may use the bytes for something else from here on.
		_ = b.Close()
		return errReturned
	}
	out.Body = newRequestBody(b, w, &c.transport.lost)
	return nil
}

// finish hands the request back to the caller: no attempt looks at it from here
// on. A body that no attempt has taken charge of is closed.
func (c *call) finish() {
	c.mu.Lock()
	c.returned = true
	sent := c.sent
	c.mu.Unlock()
	if b := c.request.Body; !sent && b != nil {
		_ = b.Close() // RoundTrip must close it; the call has its own error
	}
}

// keep reads the body of a failed answer and closes it, so that the answer can be
// returned later and the attempt can end now.
func keep(ctx context.Context, r *http.Response) *StatusError {
	e := &StatusError{StatusCode: r.StatusCode, Status: r.Status}
	if r.Body == nil || r.Body == http.NoBody {
		e.response = r
		return e
	}
	inner := r.Body
	defer func() { _ = inner.Close() }() // also if Read panics; its error has no place
	if ctx.Err() != nil {
		e.err = ctx.Err()
		return e
	}
	if r.ContentLength > maxKept {
		e.err = errTooLong
		return e
	}
	data, err := io.ReadAll(io.LimitReader(inner, maxKept+1))
	switch {
	case err != nil:
		e.err = err
	case len(data) > maxKept:
		e.err = errTooLong
	default:
		r.Body = io.NopCloser(bytes.NewReader(data))
		e.response = r
	}
	return e
}

// discard disposes of the answer of a loser. While its context lives, reading the
// body to its end may save the connection; after that, closing it is all there is
// to do.
func (c *call) discard(r *http.Response) {
	if r.Body == nil {
		return
	}
	defer func() { _ = r.Body.Close() }() // nobody is left to tell
	if b, ok := r.Body.(*responseBody); ok && b.ctx.Err() == nil {
		_, _ = io.CopyN(io.Discard, b, c.transport.options.drainBytes) // as above
	}
}

// traceless is a context without the caller's httptrace.ClientTrace. A trace in a
// derived context would not do: WithClientTrace calls the hooks of the outer one
// as well.
type traceless struct{ context.Context }

func (c traceless) Value(key any) any {
	v := c.Context.Value(key)
	switch v.(type) {
	case nil, *httptrace.ClientTrace:
		return nil
	}
	// The part of a trace that package net calls has a type of its own, which has
	// no name here.
	if t := reflect.TypeOf(v); t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "internal/nettrace" {
		return nil
	}
	return v
}
