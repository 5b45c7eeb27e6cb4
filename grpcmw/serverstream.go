package grpcmw

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// serverStream is a stream of a server of which more attempts than one may be sent. Its
// request, of which there is one, is kept, and the call begins when it is there. The call
// is decided by the response headers of an attempt, and the caller gets what that one
// receives, and nothing of the others.
//
//	NewStream ──▶ request ──▶ attempts ──▶ decided ──▶ winner's messages ──▶ ended
//
// The goroutine of run lives from the request to the decision.
type serverStream struct {
	// Immutable.
	client  *Client
	caller  context.Context
	ctx     context.Context // the caller's, with the timeout of the method
	cancel  context.CancelFunc
	name    string // of the target
	method  string
	open    opener
	options []grpc.CallOption // a copy of the caller's

	// Written by the goroutine of the caller that sends, before the call begins.
	request any  // a copy of the caller's
	empty   bool // CloseSend came without a request
	single  bool // the type of the request is not known
	target  *target
	hedger  *hedger

	begun atomic.Bool

	// Written before decided is closed, and read by others after.
	decided  chan struct{}
	winner   *streamAttempt // nil: the call failed with err or panicked
	err      error
	failed   *cells // of the attempt that decided a call that failed; may be nil
	panicked bool   // with value
	value    any

	mu sync.Mutex // a leaf
	// Guarded by mu.

	failures int
}

// newServerStream returns a stream that has not begun. It holds no permit, and only the
// timeout of ctx would have to be freed if it never does.
func newServerStream(ctx, caller context.Context, cancel context.CancelFunc, c *Client, name, method string, open opener, opts []grpc.CallOption) *serverStream {
	return &serverStream{
		client: c, caller: caller, ctx: ctx, cancel: cancel, name: name, method: method, open: open,
		options: slices.Clone(opts), decided: make(chan struct{}), err: errNoEnd,
	}
}

// SendMsg takes the request and begins the call. It does not wait for an answer.
func (s *serverStream) SendMsg(m any) error {
	if s.begun.Load() {
		return status.Error(codes.Internal, "grpcmw: SendMsg called after CloseSend")
	}
	if messages := s.client.messagesOf(s.options); messages.cloneable(m) {
		s.request = messages.clone(m)
	} else {
		s.request, s.single = m, true
		s.client.unhedgeable.Add(1)
	}
	s.begin()
	return nil
}

// CloseSend begins a call without a request, and does nothing after SendMsg.
func (s *serverStream) CloseSend() error {
	if !s.begun.Load() {
		s.empty = true
		s.begin()
	}
	return nil
}

// begin enters the target only now, since a stream that never begins must not keep it.
func (s *serverStream) begin() {
	s.begun.Store(true)
	t, err := s.client.targets.enter(s.name)
	if err != nil {
		defer close(s.decided)
		s.err = refusal(err)
		s.settle(true)
		return
	}
	s.target, s.hedger = t, s.client.streamHedger(t, s.method)
	go s.run()
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
	options := []hedgedlimit.CallOption[*streamAttempt]{
		hedgedlimit.Key[*streamAttempt](s.method), hedgedlimit.Discard((*streamAttempt).discard),
	}
	if s.single {
		options = append(options, hedgedlimit.NoHedge[*streamAttempt]())
	}
	winner, err := hedgedlimit.Do(s.ctx, s.hedger.Hedger, s.attempt, options...)
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
		w.publish()
	}
}

// wait returns when the call is decided, with its error if it failed. It panics if an
// attempt did. A call that gets no request is never decided, and ends with its context.
func (s *serverStream) wait() error {
	select {
	case <-s.decided:
	case <-s.ctx.Done():
		if !s.begun.Load() {
			return refusal(s.ctx.Err())
		}
		<-s.decided // soon: Do looks at the context, too
	}
	if s.panicked {
		panic(s.value)
	}
	return s.err
}

// RecvMsg receives what the winner does.
func (s *serverStream) RecvMsg(m any) error {
	if err := s.wait(); err != nil {
		return err
	}
	err := s.winner.stream.RecvMsg(m)
	if s.ctx.Err() == context.DeadlineExceeded { //nolint:errorlint // the bare sentinel
		return explained(s.ctx, err)
	}
	// Its cancellation may be our own, after the end.
	return explained(s.caller, err)
}

// Header waits for the response headers. As in gRPC, RecvMsg tells the error if there are
// none.
func (s *serverStream) Header() (metadata.MD, error) {
	if s.wait() != nil {
		return nil, nil
	}
	return s.winner.stream.Header()
}

// Trailer returns the trailers of the winner, or of the attempt that decided a failed
// call. It must be called after RecvMsg has returned an error.
func (s *serverStream) Trailer() metadata.MD {
	select {
	case <-s.decided:
	default:
		return nil
	}
	switch {
	case s.winner != nil:
		return s.winner.stream.Trailer()
	case s.failed != nil:
		return s.failed.trailer
	}
	return nil
}

// Context returns the context of the winner, and that of the call before there is one.
func (s *serverStream) Context() context.Context {
	select {
	case <-s.decided:
		if s.winner != nil {
			return s.winner.stream.Context()
		}
	default:
	}
	return s.ctx
}

// streamAttempt is one attempt. Its permit is held from before it begins until gRPC tells
// that it has ended.
type streamAttempt struct {
	// Immutable once the stream is opened.
	call    *serverStream
	release func(permit.Outcome)
	ctx     *attemptContext
	cancel  context.CancelFunc
	stream  grpc.ClientStream

	cells cells // written by gRPC before OnFinish

	mu sync.Mutex // a leaf
	// Guarded by mu.

	ended bool // with err
	err   error
	byCtx bool // err says that the context has ended
	won   bool
}

// attempt runs one attempt until its response headers, which are its latency: it is the
// function of hedgedlimit.Do.
func (s *serverStream) attempt(ctx context.Context, a hedgedlimit.Attempt) (*streamAttempt, error) {
	w := &streamAttempt{call: s, release: a.Hold()}
	answered := false
	defer func() {
		if answered {
			return
		}
		// It has failed, or something panics. What was opened ends by the context.
		if w.cancel != nil {
			w.cancel()
		}
		if w.stream == nil {
			w.end(nil)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	attempt, free := s.client.attempt(ctx, s.method, a.Number())
	w.ctx, w.cancel = attempt, func() { free(); cancel() }
	stream, err := s.open(attempt, w.cells.options(s.options, grpc.OnFinish(w.end))...)
	if err == nil {
		w.stream = stream
		err = w.send()
	}
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	answered = true
	return w, nil
}

// send sends the request and waits for the response headers. It returns the status of an
// attempt that has ended without.
func (w *streamAttempt) send() error {
	if !w.call.empty {
		// io.EOF means that the stream has ended, and the status follows.
		if err := w.stream.SendMsg(w.call.request); err != nil && err != io.EOF { //nolint:errorlint // the bare value, by contract
			return err
		}
	}
	if err := w.stream.CloseSend(); err != nil {
		return err
	}
	header, err := w.stream.Header()
	if err != nil || header != nil {
		return err
	}
	// Header tells of no error, but has ended the stream if there is one.
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *streamAttempt) failed(ctx context.Context, err error) error {
	e := &attemptError{err: err, cells: &w.cells, outcome: streamOutcome(status.Code(err), w.ctx.local())}
	if e.outcome == permit.Ignored {
		// No answer in time, or none because the caller has left.
		switch o := outcome(ctx, status.Code(err), true); o {
		case permit.Expired, permit.Canceled:
			e.outcome = o
		}
	}
	s := w.call
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	e.order = s.failures
	return e
}

// end is told by gRPC that the stream has ended, perhaps twice.
func (w *streamAttempt) end(err error) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return
	}
	w.ended, w.err = true, err
	w.byCtx = w.ctx != nil && byContext(w.ctx, err) // before the release ends it
	won := w.won
	w.mu.Unlock()
	w.release(streamOutcome(status.Code(err), w.ctx != nil && w.ctx.local()))
	if won {
		w.publish()
	}
}

// publish ends the call of a winner that has ended.
func (w *streamAttempt) publish() {
	s := w.call
	if !w.byCtx {
		s.target.ended(w.err, &w.cells, s.hedger)
	}
	w.cells.publish(s.options)
	w.cancel()
	s.cancel()
	finish(s.options, w.err)
}

// discard ends a loser that was answered.
func (w *streamAttempt) discard() { w.cancel() }
