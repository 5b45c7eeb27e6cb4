package httpmw

import (
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
	"time"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// errReturned is the error of an attempt that was to begin when its call had
// returned already. Nobody is left to see it.
var errReturned = errors.New("httpmw: the call has returned")

// errCanceled is the error of an attempt whose request was cancelled by the channel
// Request.Cancel. It has the words of net/http, which has no name for its own.
var errCanceled = errors.New("net/http: request canceled")

// call is one call of RoundTrip with its attempts.
type call struct {
	// Immutable.
	transport *Transport
	group     *group
	request   *http.Request   // the caller's; read only under mu while !returned
	ctx       context.Context // the caller's
	method    string
	key       string // what its group is found by
	attempts  int    // the most that there may be, if retries
	retries   bool   // a failure may be followed by another attempt
	firstByte bool   // an attempt has answered when the first byte of the body is there

	mu sync.Mutex // a leaf
	// Guarded by mu.

	returned bool // RoundTrip has returned, and the request is the caller's again
	sent     bool // the first attempt has taken charge of the request's body
	progress progress

	picking sync.Mutex // held while the user's function picks a target
	// Guarded by picking.

	tried []*url.URL

	// first and outgoing are the work of the first attempt, which owns them, and its
	// request, if that has no body. They are here, and not allocations of their own, since
	// every call has them. A request that has a body would refer to the wrapper of it, and
	// what the wrapper is found lost by refers to the work: it would never be garbage.
	first    work
	outgoing outgoing
}

// attempt runs one attempt: it is the function of hedgedlimit.Do. It returns when
// the headers are there, or the first byte of the body, and that is when the latency
// ends; the permit is held until all parts of the work have ended.
func (c *call) attempt(parent context.Context, a hedgedlimit.Attempt) (*http.Response, error) {
	ctx, left, cut := c.transport.options.tighten(parent)
	w := &c.first
	if a.Number() > 1 {
		w = new(work)
	}
	w.release, w.outcome = a.Hold(), permit.Success
	w.parts.Store(1)
	if cut != nil {
		release := w.release
		w.release = func(o permit.Outcome) { cut(); release(o) }
	}
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
	out, err := c.prepare(ctx, a, left, w)
	if err != nil {
		finished = true
		c.fail(noAnswer, nil)
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
		w.requests.closeUnread()
		c.fail(noAnswer, nil)
		if expired(ctx, parent) {
			return nil, context.DeadlineExceeded // whatever the base has called it
		}
		if canceled(out.Cancel) && parent.Err() == nil {
			return nil, errCanceled // as above; no attempt does better
		}
		return nil, err // unchanged; hedgedlimit knows whether the context explains it
	case r == nil:
		c.fail(noAnswer, nil)
		return nil, errNilResponse
	}
	c.group.spoke(r.ProtoMajor)
	shown := new(http.Response)
	*shown = *r
	c.nameRequest(shown, out)
	return c.judge(ctx, parent, a, answer{shown, r}, w)
}

// answer is the response that the caller is shown, and the base's, of which it is a copy and
// which nobody writes to.
type answer struct {
	*http.Response
	base *http.Response
}

// takeTrailers gives the caller's response the trailers that the base has written into its
// own by the time its body has ended. If any were announced, both have the same map. It is
// called by who reads the body.
func (a answer) takeTrailers() {
	if a.Trailer == nil {
		a.Trailer = a.base.Trailer
	}
}

// judge decides whether an answer is returned, which it is unless it has failed and
// another attempt may do better. It is called once the base has returned, and gets a copy
// of what that returned: a base may hand out one response again and again, and net/http
// refers to its own until the body has ended. With the wrapper of the body in that one, a
// body that the caller has lost would never be garbage, and its permit never come back.
func (c *call) judge(ctx, parent context.Context, a hedgedlimit.Attempt, r answer, w *work) (*http.Response, error) {
	var broken error
	if c.firstByte {
		broken = awaitFirstByte(r.Response, c.method)
		r.takeTrailers()
	}
	w.outcome = outcome(r.StatusCode)
	switch {
	case failure(r.StatusCode):
		a.Answered() // Reading what may be kept is no latency.
		if c.retries {
			if e := c.failure(r, w); e != nil {
				return nil, e
			}
		}
		a.MarkFailed(w.outcome)
	case broken != nil && c.retries:
		_ = r.Body.Close() // the error of the body says more
		c.fail(noAnswer, nil)
		if expired(ctx, parent) {
			return nil, context.DeadlineExceeded
		}
		return nil, broken
	}
	return c.wrapResponse(ctx, r, w), nil
}

// nameRequest makes the answer refer to the request that was asked for, as it does
// without us. A base that changes a copy of the request, and names that, goes on doing so:
// what is ours is taken out of the copy. In either case its context is not ended by us.
func (c *call) nameRequest(r *http.Response, out *http.Request) {
	switch named := r.Request; named {
	case nil:
	case out:
		r.Request = c.request
	default:
		named = named.WithContext(foreign{c.ctx, named.Context()})
		if _, ours := named.Body.(*requestBody); ours {
			c.mu.Lock()
			if !c.returned { // else this is a loser's, and nobody sees it
				named.Body, named.GetBody = c.request.Body, c.request.GetBody
			}
			c.mu.Unlock()
		}
		r.Request = named
	}
}

// foreign is the caller's context with the values of the base's.
type foreign struct {
	context.Context
	values context.Context
}

func (f foreign) Value(key any) any { return f.values.Value(key) }

// prepare makes the request of an attempt. On error the base must not be
// called, and no part of the work has been begun; the caller's body, if it was
// not taken, is closed by finish.
func (c *call) prepare(ctx context.Context, a hedgedlimit.Attempt, left time.Duration, w *work) (*http.Request, error) {
	n := a.Number()
	if n > 1 && httptrace.ContextClientTrace(ctx) != nil {
		ctx = traceless{ctx}
	}
	c.mu.Lock()
	c.beginLocked(n)
	if c.returned {
		c.mu.Unlock()
		return nil, errReturned
	}
	if canceled(c.request.Cancel) {
		c.mu.Unlock()
		return nil, errCanceled
	}
	o := &c.outgoing
	if b := c.request.Body; n > 1 || b != nil && b != http.NoBody {
		o = new(outgoing)
	}
	out := o.clone(ctx, c.request)
	if !c.retries {
		// The caller may fill in the trailers while the only body is being read.
		out.Trailer = c.request.Trailer
	}
	c.mu.Unlock()

	c.transport.options.mark(out, a, left)
	c.pickTarget(out)
	return out, c.prepareBody(out, n, w)
}

// canceled reports whether Request.Cancel, which is deprecated, has been closed. http.Client
// closes it when its Timeout is over, and sets a deadline besides.
func canceled(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// mark sets the headers that tell the server of the attempt. Left is negative if there
// is no time to tell.
func (o *options) mark(out *http.Request, a hedgedlimit.Attempt, left time.Duration) {
	if (o.header || left >= 0) && out.Header == nil {
		out.Header = make(http.Header)
	}
	if o.header {
		out.Header.Set(AttemptHeader, strconv.Itoa(a.Number()))
		out.Header.Del(KindHeader) // the caller's own attempt is another
		if a.Kind() == limiter.Retry {
			out.Header.Set(KindHeader, kindRetry)
		}
	}
	if left >= 0 {
		out.Header.Set(TimeoutHeader, strconv.FormatInt(max(left.Milliseconds(), 1), 10))
	}
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
	w.requests = new(requestBodies)
	original := out.GetBody
	if original != nil {
		// The base may want the body once more, to repeat a request on another
		// connection. That is the work of this attempt too.
		out.GetBody = func() (io.ReadCloser, error) {
			b, err := original()
			if err != nil || b == nil || b == http.NoBody {
				return b, err
			}
			return c.newRequestBody(b, w), nil
		}
	}
	if n == 1 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.returned {
			return errReturned
		}
		c.sent = true
		out.Body = c.newRequestBody(out.Body, w)
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
	out.Body = c.newRequestBody(b, w)
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
