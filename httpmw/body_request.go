package httpmw

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// requestBody is the body of one attempt's request as the base sees it. The part
// ends when it has been closed; the body inside is closed once.
type requestBody struct {
	wrapper
	closed atomic.Bool // Invariant: it becomes true once, and then the watch is another's.
}

// newRequestBody wraps inner, and begins a part for it. If the work has ended,
// nobody counts the body any more, and inner itself is returned.
func (c *call) newRequestBody(inner io.ReadCloser, w *work) io.ReadCloser {
	if !w.begin() {
		return inner
	}
	b := &body{inner: inner, work: w, call: c}
	b.close = sync.OnceValue(func() error {
		defer b.end()
		return inner.Close()
	})
	w.requests.add(b)
	// A base that forgets to close the body, as test doubles do, would keep the
	// permit for ever. What nobody refers to, nobody reads.
	return &requestBody{wrapper: b.wrapped()}
}

func (r *requestBody) Read(p []byte) (int, error) {
	defer runtime.KeepAlive(r)
	if !r.read.Load() { // a store each time would be dear
		r.read.Store(true)
	}
	return r.inner.Read(p)
}

func (r *requestBody) Close() error {
	defer runtime.KeepAlive(r)
	err := r.close()
	if r.closed.CompareAndSwap(false, true) {
		r.unwatch()
	}
	return err
}

// requestBodies are the bodies that the base of one attempt was given: one, and one more
// for each GetBody.
//
// Over HTTP/2 net/http asks for another body when a connection has refused its stream
// before anything was sent, and forgets to close the first. The permit would be held until
// the garbage collector comes by. So a body that was not the last to be given and of which
// nobody has read is closed when it is all that is left of the attempt: the round trip
// has returned, its answer has ended and the last body is closed. A base that begins to
// read it even later is told that it is closed.
type requestBodies struct {
	mu   sync.Mutex // a leaf
	list []*body
}

func (q *requestBodies) add(b *body) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, b)
}

// closeUnread closes every body that nobody has read. It is called when the base has
// returned an error: it will send none of them any more, but net/http forgets to close the
// last one if the context ends while it waits before it repeats a request over HTTP/2.
func (q *requestBodies) closeUnread() {
	if q == nil {
		return // The request has no body.
	}
	q.mu.Lock()
	found := unread(q.list)
	q.mu.Unlock()
	for _, b := range found {
		_ = b.close() // the base has its own error
	}
}

// closeForgotten closes the forgotten bodies if they are all of the parts that have not
// ended.
func (q *requestBodies) closeForgotten(parts int32) {
	for _, b := range q.forgotten(parts) {
		_ = b.close() // nobody is left to tell
	}
}

func (q *requestBodies) forgotten(parts int32) []*body {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) < 2 {
		return nil
	}
	found := unread(q.list[:len(q.list)-1])
	if int32(len(found)) != parts {
		return nil
	}
	return found
}

// unread returns those that have not ended and of which nobody has read.
func unread(list []*body) (found []*body) {
	for _, b := range list {
		if !b.ended.Load() && !b.read.Load() {
			found = append(found, b)
		}
	}
	return found
}
