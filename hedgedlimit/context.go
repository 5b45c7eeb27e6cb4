package hedgedlimit

import "context"

// newContext makes the context of the attempt. Its deadline is the caller's, and it ends
// with the caller's context, by the same error and cause. Where a loser may drain it must
// be able to outlive a cancellation by the caller after the decision: see relay. A caller's
// context that cannot end needs none.
func (t *attempt) newContext() {
	c := t.call
	parent := c.layer.of(t.number)
	if !c.hedger.config.Losers.mayDrain() || c.ctx.Done() == nil {
		t.ctx, t.cancel = context.WithCancelCause(parent)
		return
	}
	r := &relay{Context: parent}
	t.ctx, t.cancel = context.WithCancelCause(r)
	t.detach = r.stop
}

// relay stands between the context of an attempt and that of its caller. It passes the end
// of the caller's on as any parent does, until it is stopped. A context that is cancelled
// by us instead would have another error than the caller's, or another cause, when the
// caller's deadline has passed: WithDeadlineCause must know it before.
type relay struct {
	context.Context
	stop func() bool // set by the only call of AfterFunc, before that returns
}

// never is a channel that nobody closes.
var never = make(chan struct{})

// Done is not the caller's, so that package context asks for AfterFunc.
func (r *relay) Done() <-chan struct{} { return never }

// AfterFunc is how package context learns of the end of a parent that is not its own.
func (r *relay) AfterFunc(f func()) (stop func() bool) {
	r.stop = context.AfterFunc(r.Context, f)
	return r.stop
}

// dropContext frees what hangs on the context. That may reach into the caller's context,
// which may be the user's code: a panic there must not keep the permit.
func (t *attempt) dropContext() {
	t.call.hedger.guard(func() { t.cancel(nil) })
}
