package httpmw

import (
	"context"
	"io"
	"log/slog"
	"net/http"
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

	// response is the body of the answer, if that is a part. It is here, and not an
	// allocation of its own, since every attempt that is answered has one.
	response body
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
func (b *body) wrapped() wrapper { return wrapper{b, b.lost.watch(b)} }

func (w *wrapper) end() {
	if w.body.end() {
		w.lost.unwatch(w.watch)
		w.watch = nil // another body's from here on
	}
}

// responseBody is the body of a response as its caller sees it. The part ends at
// the first of io.EOF, another error, and the return of Close; it passes bytes
// and errors on unchanged. It is as safe for concurrent use as the body inside.
//
// It has no WriteTo: one that hid the end of the body would keep the permit.
type responseBody struct{ wrapper }

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

// wrapResponse puts a body that ends a part in the place of r.Body, if there is
// anything to wait for. It must be called before the round trip's part ends.
//
// The response is changed in place and not copied: net/http writes the trailers
// into the one that it returned.
func wrapResponse(ctx context.Context, r *http.Response, method string, w *work, lost *lostBodies) {
	if r.Body == nil || r.Body == http.NoBody || bodiless(method, r.StatusCode) {
		return
	}
	w.begin() // cannot fail: the round trip has not ended
	b := &w.response
	b.inner, b.work, b.lost, b.ctx = r.Body, w, lost, ctx
	if writer, ok := r.Body.(io.Writer); ok && r.StatusCode == http.StatusSwitchingProtocols {
		r.Body = &tunnel{b.wrapped(), writer}
		return
	}
	r.Body = &responseBody{b.wrapped()}
}

// bodiless reports whether an answer has no body whatever its headers say.
func bodiless(method string, status int) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
}

// requestBody is the body of one attempt's request as the base sees it. The part
// ends when it has been closed; the body inside is closed once.
type requestBody struct {
	wrapper
	close func() error
}

// newRequestBody wraps inner, and begins a part for it. If the work has ended,
// nobody counts the body any more, and inner itself is returned.
func newRequestBody(inner io.ReadCloser, w *work, lost *lostBodies) io.ReadCloser {
	if !w.begin() {
		return inner
	}
	b := &body{inner: inner, work: w, lost: lost}
	// A base that forgets to close the body, as test doubles do, would keep the
	// permit for ever. What nobody refers to, nobody reads.
	r := &requestBody{wrapper: b.wrapped()}
	r.close = sync.OnceValue(func() error {
		defer r.end()
		return r.inner.Close()
	})
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
	watches sync.Pool // of *watch
	count   atomic.Uint64
	pending atomic.Bool // Invariant: true if list is not empty and mu is free.
	mu      sync.Mutex  // a leaf
	list    []*body     // guarded by mu
}

// watch is referred to by one wrapper, or by the pool, and by nobody else. So when it
// is garbage, its wrapper is too, and its cleanup tells so. It serves one wrapper after
// the other: to register a cleanup for each, and to run it when the wrapper has become
// garbage as it should, was a fifth of a call over a transport that answers at once
// (BenchmarkHTTP in bench/).
type watch struct{ watched *watched }

// watched is what the cleanup of a watch sees: the body that is inside the wrapper, or
// nil. It does not refer to the watch.
type watched struct{ body atomic.Pointer[body] }

// watch returns a watch for the wrapper of b.
func (l *lostBodies) watch(b *body) *watch {
	w, ok := l.watches.Get().(*watch)
	if !ok {
		w = &watch{new(watched)}
		runtime.AddCleanup(w, (*watched).report, w.watched)
	}
	w.watched.body.Store(b)
	return w
}

// unwatch gives back the watch of a body that has ended.
func (l *lostBodies) unwatch(w *watch) {
	w.watched.body.Store(nil)
	l.watches.Put(w)
}

// report is the cleanup of a watch. It finds nil if the pool has let go of it.
func (w *watched) report() {
	if b := w.body.Load(); b != nil && !b.ended.Load() {
		b.report()
	}
}

// report tells that the wrapper of a body was lost before its part had ended.
func (b *body) report() {
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
