package httpmw

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/permit"
)

// work counts the parts of one attempt that have not ended. The hold on the
// permit is released when the last one does.
type work struct {
	release func(permit.Outcome)

	// outcome is written by the goroutine of the round trip before it ends that
	// part, and read after the last part has ended: parts orders the two.
	outcome permit.Outcome

	// parts is atomic. Invariant: it starts at 1, never rises from 0, and the
	// hold is released exactly when it becomes 0.
	parts atomic.Int32

	// response is the body of the answer, if that is a part. It is here, and not an
	// allocation of its own, since every attempt that is answered has one.
	response body

	requests *requestBodies // those that the base was given; nil without a body
}

// begin starts one more part. It returns false, and starts none, if the work has
// ended already.
func (w *work) begin() bool {
	for {
		n := w.parts.Load()
		if n == 0 {
			return false
		}
		if w.parts.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// end ends one part.
func (w *work) end() {
	switch n := w.parts.Add(-1); {
	case n == 0:
		w.release(w.outcome)
	case n > 0 && w.requests != nil:
		w.requests.closeForgotten(n)
	}
}

// body is one part of an attempt: what a request or response body wraps. It knows
// nothing of the wrapper, so that the garbage collector can tell that the wrapper
// was lost.
type body struct {
	inner  io.ReadCloser
	work   *work
	call   *call
	ctx    context.Context // of the attempt; nil for a request body
	close  func() error    // of a request body: closes inner once; nil for others
	status int32           // of the response; 0 for a request body
	read   atomic.Bool     // of a request body: its Read has been called
	ended  atomic.Bool     // Invariant: it becomes true once, and then the part has ended.
}

// lost is where it is told that the wrapper was lost.
func (b *body) lost() *lostBodies { return &b.call.transport.lost }

// about is what is told of it.
func (b *body) about() LostBody {
	return LostBody{Host: b.call.key, Method: b.call.method, Request: b.close != nil, StatusCode: int(b.status)}
}

// end ends the part, and reports whether it had not ended before.
func (b *body) end() bool {
	first := b.ended.CompareAndSwap(false, true)
	if first {
		b.work.end()
	}
	return first
}

// wrapper is what the wrappers of all bodies have in common.
type wrapper struct {
	*body
	watch *watch // written by whoever ends the part, once; nobody reads it besides
}

// wrapped returns a wrapper of b that is not to be lost unseen.
func (b *body) wrapped() wrapper { return wrapper{b, b.lost().watch(b)} }

func (w *wrapper) end() bool {
	first := w.body.end()
	if first {
		w.unwatch()
	}
	return first
}

// unwatch gives the watch back. It is called once.
func (w *wrapper) unwatch() {
	w.lost().unwatch(w.watch)
	w.watch = nil // another body's from here on
}

// responseBody is the body of a response as its caller sees it. The part ends at
// the first of io.EOF, another error, and the return of Close; it passes bytes
// and errors on unchanged. It is as safe for concurrent use as the body inside.
//
// It has no WriteTo: one that hid the end of the body would keep the permit.
type responseBody struct {
	wrapper
	answer answer // not the work's: what it refers to would never be lost
}

func (r *responseBody) Read(p []byte) (int, error) {
	n, err := r.inner.Read(p)
	if err != nil && r.end() {
		r.answer.takeTrailers()
	}
	runtime.KeepAlive(r) // not lost while it is being read
	return n, err
}

func (r *responseBody) Close() error {
	defer runtime.KeepAlive(r)
	defer r.end() // A Close that blocks is work; one that panics is over.
	return r.inner.Close()
}

// tunnel is the body of a 101 answer: a connection in both directions. Only Close
// ends it, since the end of one direction is not the end of the other.
type tunnel struct {
	wrapper
	writer io.Writer
}

func (t *tunnel) Read(p []byte) (int, error) {
	defer runtime.KeepAlive(t)
	return t.inner.Read(p)
}

func (t *tunnel) Write(p []byte) (int, error) {
	defer runtime.KeepAlive(t)
	return t.writer.Write(p)
}

func (t *tunnel) Close() error {
	defer runtime.KeepAlive(t)
	defer t.end()
	return t.inner.Close()
}

// closeWriter is a connection that can end its half.
type closeWriter interface{ CloseWrite() error }

// halfTunnel is a tunnel whose writing half can be closed alone, as httputil.ReverseProxy
// does when its client has. It has a type of its own, since who finds the method expects
// it to work.
type halfTunnel struct {
	*tunnel
	half closeWriter
}

func (t *halfTunnel) CloseWrite() error {
	defer runtime.KeepAlive(t.tunnel)
	return t.half.CloseWrite()
}

// wrapResponse gives a response a body that ends a part, if there is anything to wait for.
// It must be called before the round trip's part ends.
func (c *call) wrapResponse(ctx context.Context, r answer, w *work) *http.Response {
	if bodiless(r.Response, c.method) {
		return r.Response
	}
	if b, ok := r.Body.(*refilled); ok && b.err != nil {
		return r.Response // Its end, or its error, has been seen: the rest is in memory.
	}
	w.begin() // cannot fail: the round trip has not ended
	b := &w.response
	b.inner, b.work, b.call, b.ctx, b.status = r.Body, w, c, ctx, int32(r.StatusCode)
	if writer, ok := r.Body.(io.Writer); ok && r.StatusCode == http.StatusSwitchingProtocols {
		t := &tunnel{b.wrapped(), writer}
		r.Body = t
		if half, ok := b.inner.(closeWriter); ok {
			r.Body = &halfTunnel{t, half}
		}
		return r.Response
	}
	r.Body = &responseBody{wrapper: b.wrapped(), answer: r}
	return r.Response
}

// bodiless reports whether there is nothing to wait for in the body of an answer: net/http
// has said so by a body without state, or the request was one for the headers. What the
// status says is not enough: over HTTP/2 the stream of a 204 or 304 stays open until its
// handler has returned, and its trailers come then.
func bodiless(r *http.Response, method string) bool {
	if method == http.MethodHead || r.Body == nil || r.Body == http.NoBody {
		return true
	}
	switch {
	case r.ContentLength == 0, r.StatusCode == http.StatusNoContent, r.StatusCode == http.StatusNotModified:
		// Over HTTP/2 net/http has empty bodies of its own, without a name here. Like
		// NoBody they are types without state, which can hold neither bytes nor a stream.
		return reflect.TypeOf(r.Body).Size() == 0
	}
	return false
}
