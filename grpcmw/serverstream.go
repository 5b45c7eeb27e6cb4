package grpcmw

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// serverStream is a stream of a server of which more attempts than one may be sent. Its
// request, of which there is one, is kept, and the call begins when it is there. The call
// is decided by the response headers of an attempt, and the caller gets what that one
// receives, and nothing of the others.
//
//	NewStream ──▶ request ──▶ attempts ──▶ decided ──▶ winner's messages ──▶ ended
//
// The goroutine of run lives from the request to the decision. A request that cannot be
// copied goes out within SendMsg, on a stream that is sent once.
type serverStream struct {
	// Immutable.
	client  *Client
	caller  context.Context
	ctx     context.Context // the caller's, with the timeout of the method; ends with the stream
	cancel  context.CancelFunc
	name    string // of the target
	opener  opener
	options []grpc.CallOption // a copy of the caller's
	idle    context.Context   // ends when the call begins, or never will
	wake    context.CancelFunc
	forget  func() bool // no longer waits for the end of ctx; not for who is told of that

	// Owned by the goroutine of the caller that sends; request, empty, target and hedger
	// do not change once the call has begun.

	sent    bool
	request any  // a copy of the caller's
	empty   bool // CloseSend came without a request
	target  *target
	hedger  *hedger

	// begun becomes true once, by whoever then sees to it that the call is decided.
	begun atomic.Bool

	// Written before decided is closed, and read by others after.
	decided  chan struct{}
	plain    grpc.ClientStream // the call is sent once, by this stream
	winner   *streamAttempt    // nil otherwise, or if the call failed with err or panicked
	err      error
	failed   *cells // of the attempt that decided a call that failed; may be nil
	panicked bool   // with value
	value    any

	mu sync.Mutex // a leaf
	// Guarded by mu.

	failures int
}

// newServerStream returns a stream that has not begun. It holds no permit and no goroutine.
func newServerStream(ctx, caller context.Context, cancel context.CancelFunc, c *Client, name string, o opener, opts []grpc.CallOption) *serverStream {
	s := &serverStream{
		client: c, caller: caller, name: name, opener: o,
		options: slices.Clone(opts), decided: make(chan struct{}), err: errNoEnd,
	}
	ctx, stop := context.WithCancel(ctx)
	s.ctx, s.cancel = ctx, func() { stop(); cancel() }
	s.idle, s.wake = context.WithCancel(ctx)
	s.forget = context.AfterFunc(ctx, func() { s.abandon(refusal(ctx.Err())) })
	return s
}

// SendMsg takes the request and begins the call. It does not wait for an answer.
func (s *serverStream) SendMsg(m any) error {
	if s.sent {
		return status.Error(codes.Internal, "grpcmw: SendMsg called after CloseSend")
	}
	s.sent = true
	if s.begun.Swap(true) {
		return nil // It has ended, and RecvMsg tells why.
	}
	messages := s.client.messagesOf(s.options)
	if !messages.cloneable(m) {
		return s.sendOnce(m)
	}
	s.request = messages.clone(m)
	s.begin()
	return nil
}

// CloseSend begins a call without a request, and does nothing after SendMsg.
func (s *serverStream) CloseSend() error {
	switch {
	case !s.sent:
		s.sent, s.empty = true, true
		if !s.begun.Swap(true) {
			s.begin()
		}
	case s.plain != nil: // written by this goroutine
		return s.plain.CloseSend()
	}
	return nil
}

// begin enters the target only now, since a stream that never begins must not keep it.
func (s *serverStream) begin() {
	s.awake()
	t, err := s.client.targets.enter(s.name)
	if err != nil {
		defer close(s.decided)
		s.err = refusal(err)
		s.settle(true)
		return
	}
	s.target, s.hedger = t, s.client.streamHedger(t, s.opener.method)
	go s.run()
}

// awake ends the wait for a request.
func (s *serverStream) awake() {
	s.forget()
	s.wake()
}

// sendOnce sends a request of a type that is not known while the caller still lends it.
func (s *serverStream) sendOnce(m any) error {
	s.client.unhedgeable.Add(1)
	if !s.openOnce() {
		return nil // RecvMsg tells why.
	}
	return s.plain.SendMsg(m)
}

// openOnce decides the call for a stream that is sent once, and reports whether there is one.
func (s *serverStream) openOnce() bool {
	defer close(s.decided)
	s.awake()
	t, err := s.client.targets.enter(s.name)
	if err != nil {
		s.err = refusal(err)
		s.settle(true)
		return false
	}
	defer t.leave()
	s.plain, s.err = s.opener.openPlain(s.ctx, s.cancel, s.client, t, s.client.streamHedger(t, s.opener.method), s.options)
	return s.err == nil
}

// abandon ends a call that has not begun.
func (s *serverStream) abandon(err error) {
	if s.begun.Swap(true) {
		return
	}
	// Not forget: this may be what newServerStream gave to AfterFunc, at once and so before
	// that has returned it. Otherwise cancel has it called, and it finds the call begun.
	s.wake()
	s.err = err
	close(s.decided)
	s.cancel()
	finish(s.options, err)
}

// run sends the attempts until one is answered, or none can be. A panic, also of the
// caller's OnFinish, is raised again in the goroutine that receives.
func (s *serverStream) run() {
	defer s.target.leave()
	defer close(s.decided)
	defer func() {
		if v := recover(); v != nil {
			s.panicked, s.value = true, v
		}
	}()
	returned := false
	defer func() { s.settle(returned) }()
	winner, err := hedgedlimit.Do(s.ctx, s.hedger.Hedger, s.attempt,
		hedgedlimit.Key[*streamAttempt](s.opener.method), hedgedlimit.Discard((*streamAttempt).discard))
	s.winner, s.err = winner, nil
	if err != nil {
		s.err, s.failed = decide(s.ctx, err)
	}
	returned = true
}

// settle tells the caller of the end of a call that failed, if Do has returned, and lets the
// end of the winner tell it otherwise: here, if that came first.
func (s *serverStream) settle(returned bool) {
	w := s.winner
	if w == nil {
		s.failed.publish(s.options)
		s.cancel()
		if returned {
			finish(s.options, s.err)
		}
		return
	}
	w.mu.Lock()
	w.won = true
	ended := w.ended
	w.mu.Unlock()
	if ended {
		w.publish()()
	}
}

// wait returns when the call is decided, with its error if it failed. It panics if an
// attempt did. A call that gets no request ends with its context or the channel.
func (s *serverStream) wait() error {
	s.awaitRequest()
	<-s.decided // soon after the end of the context: Do looks at it, too
	if s.panicked {
		panic(s.value)
	}
	return s.err
}

// awaitRequest returns when the call has begun, or never will.
func (s *serverStream) awaitRequest() {
	for !s.begun.Load() {
		if closing(s.opener.cc) {
			s.abandon(errClosing)
			return
		}
		if !changes(s.idle, s.opener.cc) && s.ctx.Err() != nil {
			s.abandon(refusal(s.ctx.Err()))
		}
	}
}

// changes waits until a channel that is not closed is in another state, and returns false if
// ctx ends before.
func changes(ctx context.Context, cc *grpc.ClientConn) bool {
	if cc == nil {
		<-ctx.Done()
		return false
	}
	state := cc.GetState()
	return state == connectivity.Shutdown || cc.WaitForStateChange(ctx, state)
}

// RecvMsg receives what the winner does.
func (s *serverStream) RecvMsg(m any) error {
	if err := s.wait(); err != nil {
		return err
	}
	if s.plain != nil {
		return s.plain.RecvMsg(m)
	}
	w := s.winner
	err := w.ClientStream.RecvMsg(m)
	if err == nil {
		return nil
	}
	explained := s.explained(w, err) // before the end cancels the contexts
	w.over(err)
	return explained
}

// explained returns an error of the winner, with that of the context that has ended it.
func (s *serverStream) explained(w *streamAttempt, err error) error {
	switch {
	case late(w.ctx, err):
		return because(err, context.DeadlineExceeded)
	case s.ctx.Err() == context.DeadlineExceeded: //nolint:errorlint // the bare sentinel
		return explained(s.ctx, err)
	}
	// Its cancellation may be our own, after the end.
	return explained(s.caller, err)
}

// Header waits for the response headers. As in gRPC, RecvMsg tells the error if there are
// none.
func (s *serverStream) Header() (metadata.MD, error) {
	switch err := s.wait(); {
	case err != nil:
		return nil, nil
	case s.plain != nil:
		return s.plain.Header()
	}
	return s.winner.Header()
}

// Trailer returns the trailers of the winner, or of the attempt that decided a failed
// call. It must be called after RecvMsg has returned an error.
func (s *serverStream) Trailer() metadata.MD {
	switch stream := s.decidedStream(); {
	case stream != nil:
		return stream.Trailer()
	case s.isDecided() && s.failed != nil:
		return copied(s.failed.trailer)
	}
	return nil
}

// Context returns the context of the winner, and that of the call before there is one. If
// the call has failed, it has the peer of the attempt that decided it.
func (s *serverStream) Context() context.Context {
	switch stream := s.decidedStream(); {
	case stream != nil:
		return stream.Context()
	case s.isDecided() && s.failed != nil && s.failed.peer.Addr != nil:
		return peer.NewContext(s.ctx, &s.failed.peer)
	}
	return s.ctx
}

// decidedStream returns the stream that the caller receives from, or nil before the decision
// and after a failure.
func (s *serverStream) decidedStream() grpc.ClientStream {
	switch {
	case !s.isDecided():
	case s.plain != nil:
		return s.plain
	case s.winner != nil:
		return s.winner.ClientStream
	}
	return nil
}

func (s *serverStream) isDecided() bool {
	select {
	case <-s.decided:
		return true
	default:
		return false
	}
}
