package hedgedlimit

import (
	"context"
	"time"
)

// worker is what a call does, whatever the type of its result.
type worker interface {
	// invoke runs the function of the call, and keeps its result if it succeeds.
	invoke(ctx context.Context, a Attempt) error
	// discard disposes of the result of a loser.
	discard(number int)
	// reserve makes room for the results of further attempts. It is called by the
	// goroutine of the caller before it launches any.
	reserve()
	// recycle gives the record back. Nobody may touch it any more.
	recycle()
}

// record is all the memory of one call but what a user may keep: the contexts, and
// the channel and the timer, which would tie it to one bubble of testing/synctest.
// It is used again when the call is over.
//
// That is safe because call.refs counts everybody who may touch it. The caller has
// one, and gives it back when Do has taken the result. Each attempt has two, taken
// before its goroutine starts: one is given back when its goroutine has nothing
// left to do, one when it has ended, by whoever releases its last hold. Each timer
// has one while it is set, which its function gives back as its last act. Giving
// back is an atomic addition, so everything that any of them did happens before the
// addition that reaches zero, and so before recycle; and a Put into a sync.Pool
// happens before the Get that returns it. An Attempt that a user has kept holds a
// generation, which recycle changes under the lock: its Hold finds that out, under
// the same lock, before it looks at anything else. So does the release of a Hold.
type record[T any] struct {
	call
	fn        func(context.Context, Attempt) (T, error)
	discarded func(T) // nil: closeResult
	result    T       // of the primary
	others    []T     // of attempts 2 and up; empty until there are any
}

// take returns a record that is ready for begin.
func take[T any](h *Hedger) *record[T] {
	if r, ok := h.records.Get().(*record[T]); ok { // one of another type is let go
		return r
	}
	r := &record[T]{}
	c := &r.call
	c.work, c.hedger = r, h
	c.tick, c.main = c.onTick, c.primary.begin
	c.primary.call = c
	return r
}

// begin makes the record ready for do.
func (c *call) begin(ctx context.Context) {
	c.refs.Store(1)
	c.ctx = ctx
	c.attempts = c.slot[:0]
}

// prepare sets what the options of a call and the hedger's configuration make of it.
func (c *call) prepare(key string) {
	h := c.hedger
	if h.config.Observer != nil { // first: what follows may be the user's code
		c.began, c.skips = time.Now(), new(skipLog)
	}
	c.delay = h.config.Delay
	if keys, ok := c.delay.(*perKey); ok {
		c.delay = keys.of(key)
	}
	c.noHedge = h.config.Retry != nil
	if h.config.Holdback > 0 && h.config.Rand() < h.config.Holdback {
		c.heldBack, c.noHedge = true, true
	}
}

// unref gives back the right to touch the record. The last one ends the call: it
// tells the observer and lets the record be used again.
func (c *call) unref() {
	if c.refs.Add(-1) > 0 {
		return
	}
	h := c.hedger
	defer h.leave()
	defer c.work.recycle() // also if the observer calls Goexit
	if h.config.Observer != nil {
		h.guard(func() { h.config.Observer(c.event(time.Now())) })
	}
}

func (r *record[T]) invoke(ctx context.Context, a Attempt) error {
	result, err := r.fn(ctx, a)
	if err == nil {
		// Each attempt writes its own element before it reports, and nobody else
		// touches it before the report: the lock of the call orders the two.
		*r.of(a.number) = result
	}
	return err
}

// of returns where the result of an attempt is kept.
func (r *record[T]) of(number int) *T {
	if number == 1 {
		return &r.result
	}
	return &r.others[number-2]
}

func (r *record[T]) reserve() {
	if len(r.others) == 0 {
		r.others = make([]T, maxMaxAttempts-1)
	}
}

func (r *record[T]) discard(number int) {
	if r.discarded == nil {
		closeResult(r.takeResult(number))
		return
	}
	r.discarded(r.takeResult(number))
}

// takeResult returns a result and forgets it: the record may outlive its use.
func (r *record[T]) takeResult(number int) T {
	var zero T
	result := *r.of(number)
	*r.of(number) = zero
	return result
}

func (r *record[T]) recycle() {
	// A result has been taken or disposed of by now, and is forgotten.
	r.fn, r.discarded, r.others = nil, nil, nil
	r.reset()
	r.hedger.records.Put(r)
}

// reset leaves nothing of the call that is over. Stale copies of an Attempt may ask
// for the generation meanwhile, under the lock.
func (c *call) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.decided, c.ticked, c.first, c.last = false, false, nil, nil
	c.primary.resetLocked()
	c.slot[0] = nil
	c.ctx, c.layer, c.delay, c.wake, c.timer, c.skips, c.attempts = nil, nil, nil, nil, nil, nil, nil
	c.maxAttempts, c.running, c.backoffs = 0, 0, 0
	c.waited.Store(0)
	c.noHedge, c.heldBack, c.hedged, c.frozen, c.passed, c.shut, c.armed = false, false, false, false, false, false, false
	c.began, c.due, c.notBefore, c.why, c.end = time.Time{}, time.Time{}, time.Time{}, 0, decision{}
}
