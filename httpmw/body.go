package httpmw

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
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
type responseBody struct {
	*body
	base     *http.Response // the one that the base has returned
	caller   *http.Response // the copy that the caller has
	trailers sync.Once      // copies them; a second Read at the end waits for it
}

func (r *responseBody) Read(p []byte) (int, error) {
	n, err := r.inner.Read(p)
	if err != nil {
		if err == io.EOF {
			// net/http puts the trailers there before it returns the end.
			r.trailers.Do(func() { r.caller.Trailer = r.base.Trailer })
		}
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

// wrapResponse returns r with a body that ends a part in the place of r.Body, if there
// is anything to wait for. It must be called before the round trip's part ends.
//
// It returns a copy and leaves r alone. The bodies of net/http refer to the response
// that they came with, for its trailers; if the wrapper stood in that one, the body
// inside would keep it from becoming garbage, and its loss would never be seen.
func wrapResponse(ctx context.Context, r *http.Response, method string, w *work, lost *lostBodies) *http.Response {
	if r.Body == nil || bodiless(method, r) {
		return r
	}
	w.begin() // cannot fail: the round trip has not ended
	b := &body{inner: r.Body, work: w, lost: lost, ctx: ctx}
	wrapped := new(http.Response)
	*wrapped = *r
	if writer, ok := r.Body.(io.Writer); ok && r.StatusCode == http.StatusSwitchingProtocols {
		t := &tunnel{body: b, writer: writer}
		runtime.AddCleanup(t, (*body).report, b)
		wrapped.Body = t
		return wrapped
	}
	rb := &responseBody{body: b, base: r, caller: wrapped}
	runtime.AddCleanup(rb, (*body).report, b)
	wrapped.Body = rb
	return wrapped
}

// bodiless reports whether there is nothing to wait for in the body of an answer: it
// has none whatever its headers say, or the one it has is empty.
func bodiless(method string, r *http.Response) bool {
	switch {
	case method == http.MethodHead, r.StatusCode == http.StatusNoContent, r.StatusCode == http.StatusNotModified:
		return true
	case r.Body == http.NoBody:
		return true
	}
	// Over HTTP/2 net/http has an empty body of its own, without a name here. Like
	// NoBody it is a type without state, which can hold neither bytes nor a stream.
	return r.ContentLength == 0 && reflect.TypeOf(r.Body).Size() == 0
}

// requestBody is the body of one attempt's request as the base sees it. The part
// ends when it has been closed; the body inside is closed once.
type requestBody struct {
	*body
	close func() error
}

// newRequestBody wraps inner, and begins a part for it. If the work has ended,
// nobody counts the body any more, and inner itself is returned.
func newRequestBody(inner io.ReadCloser, w *work, lost *lostBodies) io.ReadCloser {
	if !w.begin() {
		return inner
	}
	b := &body{inner: inner, work: w, lost: lost}
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

// lostBodies collects bodies whose wrapper became garbage before the part had
// ended. They wait here for the next use of the Transport, which closes them.
//
// The cleanup does not do that itself: it runs in a goroutine of the runtime's,
// which must not block, and which is outside any testing/synctest bubble, where a
// touch of the bubble's channels would end the process.
type lostBodies struct {
	count   atomic.Uint64
	pending atomic.Bool // Invariant: true if list is not empty and mu is free.
	mu      sync.Mutex  // a leaf
	list    []*body     // guarded by mu
}

// report is the cleanup of a wrapper.
func (b *body) report() {
	if b.ended.Load() {
		return
	}
	l := b.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, b)
	l.pending.Store(true)
	l.count.Add(1)
}

// sweep closes the bodies that were lost. It costs one load if there are none,
// and never waits for a Close.
func (l *lostBodies) sweep() {
	if !l.pending.Load() {
		return
	}
	l.mu.Lock()
	list := l.list
	l.list = nil
	l.pending.Store(false)
	l.mu.Unlock()
	for _, b := range list {
		go b.reclaim()
	}
}

// reclaim is the goroutine of an attempt's that ends a lost part.
func (b *body) reclaim() {
	defer func() {
		if v := recover(); v != nil {
			slog.Error("httpmw: panic in the Close of a lost body", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	defer b.end()
	_ = b.inner.Close() // nobody is left to tell
}
