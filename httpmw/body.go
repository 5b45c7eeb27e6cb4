package httpmw

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
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
	if w.parts.Add(-1) == 0 {
		w.release(w.outcome)
	}
}

// body is one part of an attempt: what a request or response body wraps. It knows
// nothing of the wrapper, so that the garbage collector can tell that the wrapper
// was lost.
type body struct {
	inner io.ReadCloser
	work  *work
	lost  *lostBodies
	about LostBody
	ctx   context.Context // of the attempt; nil for a request body
	ended atomic.Bool     // Invariant: it becomes true once, and then the part has ended.
}

func (b *body) end() {
	if b.ended.CompareAndSwap(false, true) {
		b.work.end()
	}
}

// responseBody is the body of a response as its caller sees it. The part ends at
// the first of io.EOF, another error, and the return of Close; it passes bytes
// and errors on unchanged. It is as safe for concurrent use as the body inside.
//
// It has no WriteTo: one that hid the end of the body would keep the permit.
type responseBody struct{ *body }

func (r *responseBody) Read(p []byte) (int, error) {
	n, err := r.inner.Read(p)
	if err != nil {
		r.end()
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
	*body
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

// wrapResponse puts a body that ends a part in the place of r.Body, if there is
// anything to wait for. It must be called before the round trip's part ends.
//
// The response is changed in place and not copied: net/http writes the trailers
// into the one that it returned.
func (c *call) wrapResponse(ctx context.Context, r *http.Response, w *work) {
	if bodiless(r, c.method) {
		return
	}
	if b, ok := r.Body.(*refilled); ok && b.err != nil {
		return // Its end, or its error, has been seen: the rest is in memory.
	}
	w.begin() // cannot fail: the round trip has not ended
	b := &body{inner: r.Body, work: w, lost: &c.transport.lost, ctx: ctx}
	b.about = LostBody{Host: c.key, Method: c.method, StatusCode: r.StatusCode}
	if writer, ok := r.Body.(io.Writer); ok && r.StatusCode == http.StatusSwitchingProtocols {
		t := &tunnel{body: b, writer: writer}
		runtime.AddCleanup(t, (*body).report, b)
		r.Body = t
		return
	}
	rb := &responseBody{body: b}
	runtime.AddCleanup(rb, (*body).report, b)
	r.Body = rb
}

// bodiless reports whether an answer has no body to wait for, whatever its headers say.
func bodiless(r *http.Response, method string) bool {
	return r.Body == nil || r.Body == http.NoBody ||
		method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified
}

// requestBody is the body of one attempt's request as the base sees it. The part
// ends when it has been closed; the body inside is closed once.
type requestBody struct {
	*body
	close func() error
}

// newRequestBody wraps inner, and begins a part for it. If the work has ended,
// nobody counts the body any more, and inner itself is returned.
func (c *call) newRequestBody(inner io.ReadCloser, w *work) io.ReadCloser {
	if !w.begin() {
		return inner
	}
	b := &body{inner: inner, work: w, lost: &c.transport.lost}
	b.about = LostBody{Host: c.key, Method: c.method, Request: true}
	r := &requestBody{body: b, close: sync.OnceValue(func() error {
		defer b.end()
		return b.inner.Close()
	})}
	// A base that forgets to close the body, as test doubles do, would keep the
	// permit for ever. What nobody refers to, nobody reads.
	runtime.AddCleanup(r, (*body).report, b)
	return r
}

func (r *requestBody) Read(p []byte) (int, error) {
	defer runtime.KeepAlive(r)
	return r.inner.Read(p)
}

func (r *requestBody) Close() error {
	defer runtime.KeepAlive(r)
	return r.close()
}
