package hedgedlimit

import (
	"context"
	"time"
)

// newContext makes the context of the attempt. Its deadline is the caller's, and
// it ends with the caller's context. Where a loser may drain it must be able to outlive a
// cancellation by the caller after the decision, so it is no child, but is told, unless
// there is nothing to be told of. That takes three allocations more than a child.
func (t *attempt) newContext() {
	c := t.call
	if !c.hedger.config.Losers.mayDrain() {
		t.ctx, t.cancel = context.WithCancelCause(c.layer.of(t.number, c.layer))
		return
	}
	parent := c.ctx
	ctx, cancel := context.WithCancelCause(c.layer.of(t.number, (*detached)(c.layer)))
	t.ctx, t.cancel = ctx, cancel
	if deadline, ok := parent.Deadline(); ok {
		timed, stop := context.WithDeadline(ctx, deadline)
		t.ctx = timed
		t.cancel = func(cause error) { cancel(cause); stop() }
	}
	if parent.Done() == nil {
		return
	}
	t.detach = context.AfterFunc(parent, func() {
		deadline, ok := parent.Deadline()
		if ok && parent.Err() == context.DeadlineExceeded && !time.Now().Before(deadline) { //nolint:errorlint // the sentinel itself
			return // The attempt's own timer says so, and says it as a deadline.
		}
		cancel(context.Cause(parent))
	})
}

// detached is a layer whose context does not end. It is what context.WithoutCancel would
// return, without its allocation.
type detached layer

// Deadline returns none.
func (d *detached) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil.
func (d *detached) Done() <-chan struct{} { return nil }

// Err returns nil.
func (d *detached) Err() error { return nil }

// Value returns what the layer does. The keys of package context, which find the context
// that ends, are answered by the context of the attempt, the only child of d.
func (d *detached) Value(key any) any { return (*layer)(d).Value(key) }

// dropContext frees what hangs on the context. Both steps may reach into the caller's
// context, which may be the user's code: a panic there must not keep the permit.
func (t *attempt) dropContext() {
	h := t.call.hedger
	if t.detach != nil {
		h.guard(func() { t.detach() })
	}
	h.guard(func() { t.cancel(nil) })
}
