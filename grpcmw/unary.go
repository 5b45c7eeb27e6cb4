package grpcmw

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// unary is the interceptor of unary calls.
func (c *Client) unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	t, err := c.targets.enter(targetOf(cc))
	if err != nil {
		err = refusal(err)
		finish(opts, err)
		return err
	}
	defer t.leave()
	r := c.unaryRoute(t, method)
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	u := unaryCall{client: c, method: method, request: request, reply: reply, cc: cc, invoker: invoker, options: opts}
	if r.hedger != nil {
		u.messages = c.messagesOf(opts)
		if u.copyable() {
			return (&hedgedCall{unaryCall: u}).run(apart(ctx, cc, method), r.hedger)
		}
		c.unhedgeable.Add(1)
	}
	return u.once(ctx, t, r.hedger)
}

// unaryCall is one unary call. It is immutable.
type unaryCall struct {
	client         *Client
	method         string
	request, reply any // the caller's
	cc             *grpc.ClientConn
	invoker        grpc.UnaryInvoker
	options        []grpc.CallOption // the caller's
	messages       messages          // of a call that may be hedged
}

// copyable reports whether each attempt can have messages of its own.
func (u *unaryCall) copyable() bool {
	fresh, _ := u.messages.fresh(u.reply)
	return fresh != nil && u.messages.cloneable(u.request)
}

// once sends a call that is not hedged, in the caller's goroutine, with the caller's own
// messages and options.
func (u *unaryCall) once(ctx context.Context, t *target, h *hedger) error {
	p, err := t.limiter.Acquire(ctx, limiter.Primary)
	if err != nil {
		err = refusal(err)
		finish(u.options, err)
		return err
	}
	learnt := permit.Ignored // stays so if something panics
	defer func() { p.Release(learnt) }()
	attempt, cancel := u.client.attempt(ctx, u.cc, u.method, 0)
	defer cancel()
	options, seen := u.options, (*cells)(nil)
	if t.throttle != nil {
		seen = new(cells)
		options = seen.besides(options)
	}
	err = u.invoker(attempt, u.method, u.request, u.reply, u.cc, options...)
	var told error
	if err != nil {
		told = &attemptError{err: err, outcome: outcome(ctx, codeOf(err), attempt.local())}
	}
	learnt = t.limiter.Classify(told)
	if !byContext(ctx, err) {
		t.ended(err, seen, h)
	}
	if err != nil && late(attempt, err) {
		return because(err, context.DeadlineExceeded)
	}
	return explained(ctx, err)
}

// hedgedCall is a unary call of which more attempts than one may be sent.
type hedgedCall struct {
	unaryCall

	mu sync.Mutex // a leaf but for the user's Messages
	// Guarded by mu.

	returned bool // Do has returned, and what is the caller's is the caller's again
	failures int
}

// unaryAnswer is what an attempt has got.
type unaryAnswer struct {
	reply any
	users bool // the reply is of WithMessages
	cells cells
}

// run sends the attempts and gives the caller what the winner has got.
func (u *hedgedCall) run(ctx context.Context, h *hedger) error {
	a, err := u.do(ctx, h)
	if err != nil {
		err, seen := decide(ctx, err)
		seen.publish(u.options)
		finish(u.options, err)
		return err
	}
	end := error(errNoEnd) // of a call whose Messages panic
	defer func() { finish(u.options, end) }()
	u.messages.deliver(u.reply, a.reply, a.users)
	a.cells.publish(u.options)
	end = nil
	return nil
}

// do sends the attempts. When it has returned, none of them looks at what is the caller's.
func (u *hedgedCall) do(ctx context.Context, h *hedger) (*unaryAnswer, error) {
	defer u.finish()
	return hedgedlimit.Do(ctx, h.Hedger, u.attempt, hedgedlimit.Key[*unaryAnswer](u.method))
}

// attempt runs one attempt: it is the function of hedgedlimit.Do.
func (u *hedgedCall) attempt(ctx context.Context, a hedgedlimit.Attempt) (*unaryAnswer, error) {
	request, got, options, err := u.prepare()
	if err != nil {
		return nil, err
	}
	attempt, cancel := u.client.attempt(ctx, u.cc, u.method, a.Number())
	defer cancel()
	err = u.invoker(attempt, u.method, request, got.reply, u.cc, options...)
	if err == nil {
		return got, nil
	}
	e := &attemptError{
		err: err, cells: &got.cells, late: late(attempt, err),
		outcome: outcome(ctx, codeOf(err), attempt.local()),
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failures++
	e.order = u.failures
	return nil, e
}

// prepare makes what an attempt has of its own, from what the caller has lent to the call
// until it returns. A loser may still send its request then.
func (u *hedgedCall) prepare() (request any, got *unaryAnswer, options []grpc.CallOption, err error) {
	got = new(unaryAnswer)
	u.mu.Lock()
	defer u.mu.Unlock() // also if the user's Messages panic
	if u.returned {
		return nil, nil, nil, errReturned
	}
	got.reply, got.users = u.messages.fresh(u.reply)
	return u.messages.clone(u.request), got, got.cells.options(u.options), nil
}

// finish hands what is the caller's back: no attempt looks at it from here on. That is before
// the reply is written.
func (u *hedgedCall) finish() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.returned = true
}
