package httpmw

import (
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// maxKept is how long the body of a failed answer may be to be kept.
	maxKept = 64 << 10
	// keepTime is how long the body of a failed answer may take to be kept: as long as a
	// loser may take whose delay is not known. It holds up a caller, for whom a retry that
	// comes later is worth little.
	keepTime = defaultDrain
)

// keeper reads the body of a failed answer to keep it. It does so in a goroutine of its
// own, which is a part of the attempt's work: nobody can interrupt a Read that stalls, but
// the attempt can go on without it. If the answer is passed to the caller after all, the
// keeper is its body, and gives what it has read and is reading before it goes on with
// what is left. So the body inside has one reader at any time: the goroutine, until over.
type keeper struct {
	inner io.ReadCloser
	over  chan struct{} // closed when the goroutine reads no more

	mu   sync.Mutex // a leaf
	more sync.Cond  // of mu: something below has changed
	// Guarded by mu.

	data     []byte // that was read; never longer than maxKept+1. What is there does not change.
	given    int    // how much of it Read has given
	err      error  // with which the body has ended; nil if it goes on beyond data
	ended    bool   // over is closed, or is about to be
	closed   bool
	panicked any  // what a Read has panicked with
	exited   bool // a Read has called runtime.Goexit
}

// keep begins to read inner. The round trip of w must not have ended.
func keep(inner io.ReadCloser, w *work) *keeper {
	k := &keeper{inner: inner, over: make(chan struct{})}
	k.more.L = &k.mu
	w.begin() // cannot fail: the round trip has not ended
	go k.run(w)
	return k
}

// wait returns what was read once that is all of the body, its length is more than may be
// kept, or the time is over, and why it is not all. It panics if a Read has.
func (k *keeper) wait() ([]byte, error) {
	timer := time.NewTimer(keepTime)
	defer timer.Stop()
	select {
	case <-k.over:
	case <-timer.C:
		return nil, errTooSlow
	}
	// What follows does not change any more: the goroutine has left the lock before.
	k.raise()
	switch {
	case k.err == io.EOF: //nolint:errorlint // as io.Reader demands
		return k.data, nil
	case k.err == nil:
		return nil, errTooLong
	}
	return k.data, k.err
}

// run is the goroutine. Its part of the work ends before anybody learns that it is over,
// so that the permit can be had for the next attempt.
func (k *keeper) run(w *work) {
	finished := false
	defer func() {
		v := recover()
		k.mu.Lock()
		k.ended, k.panicked, k.exited = true, v, !finished && v == nil
		k.mu.Unlock()
		w.end()
		close(k.over)
		k.more.Broadcast()
	}()
	for k.step() {
	}
	finished = true
}

// step reads once, and reports whether to go on.
func (k *keeper) step() bool {
	k.mu.Lock()
	k.data = slices.Grow(k.data, 512)
	room := k.data[len(k.data):min(cap(k.data), maxKept+1)] // nobody else looks there
	k.mu.Unlock()
	n, err := k.inner.Read(room)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data, k.err = k.data[:len(k.data)+n], err
	k.more.Broadcast()
	return err == nil && len(k.data) <= maxKept && !k.closed
}

// raise lets what a Read of the goroutine's has done happen here.
func (k *keeper) raise() {
	switch {
	case k.panicked != nil:
		panic(k.panicked)
	case k.exited:
		runtime.Goexit()
	}
}

func (k *keeper) Read(p []byte) (int, error) {
	k.mu.Lock()
	for k.given == len(k.data) && k.err == nil && !k.ended && !k.closed {
		k.more.Wait()
	}
	n, closed, err := 0, k.closed, k.err
	if !closed {
		n = copy(p, k.data[k.given:])
		k.given += n
	}
	left := k.given < len(k.data)
	k.mu.Unlock()
	switch {
	case closed:
		return 0, http.ErrBodyReadAfterClose
	case n > 0 || left:
		return n, nil
	case err != nil:
		return 0, err
	}
	k.raise()
	return k.inner.Read(p) // the goroutine has ended
}

func (k *keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.more.Broadcast()
	return k.inner.Close()
}
