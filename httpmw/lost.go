package httpmw

import (
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// LostBody tells of a body that the garbage collector found unclosed.
type LostBody struct {
	// Host is the lower-case URL.Host, or what LimitBy has returned, cut off if it is long.
	Host string
	// Method is that of the request, as it was given: empty may stand for GET.
	Method string
	// Request tells that it is the body of a request, which the base was to close. Else
	// it is that of a response, which was the caller's to close.
	Request bool
	// StatusCode is that of the response, and 0 for the body of a request.
	StatusCode int
}

// lostBodies collects bodies whose wrapper became garbage before the part had
// ended. They wait here for the next use of the Transport, which closes them.
//
// The cleanup does not do that itself: it runs in a goroutine of the runtime's,
// which must not block, and which is outside any testing/synctest bubble, where a
// touch of the bubble's channels would end the process.
type lostBodies struct {
	tell func(LostBody) // the user's; nil if nobody is told. Immutable

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
	l := b.lost()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, b)
	l.pending.Store(true)
	l.count.Add(1)
}

// sweep closes the bodies that were lost, and tells of them. It costs one load if
// there are none, and never waits for a Close. No lock may be held.
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
	if l.tell == nil {
		return
	}
	for _, b := range list {
		l.report(b.about())
	}
}

// report tells the user of one body. A panic ends here.
func (l *lostBodies) report(b LostBody) {
	defer func() {
		if v := recover(); v != nil {
			slog.Error("httpmw: panic in OnLostBody", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	l.tell(b)
}

// reclaim is the goroutine of an attempt's that ends a lost part.
func (b *body) reclaim() {
	defer func() {
		if v := recover(); v != nil {
			slog.Error("httpmw: panic in the Close of a lost body", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	defer b.end()
	if b.close != nil {
		_ = b.close() // nobody is left to tell
		return
	}
	_ = b.inner.Close() // as above
}
