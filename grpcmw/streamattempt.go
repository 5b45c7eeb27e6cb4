package grpcmw

import (
	"context"
	"io"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// streamAttempt is one attempt of a serverStream. Its permit is held from before it begins
// until its stream has ended.
type streamAttempt struct {
	openStream

	// Immutable once the stream is opened.
	call    *serverStream
	release func(permit.Outcome)

	// Guarded by mu.

	ended bool // with last
	last  error
	byCtx bool // last says that the context has ended
	won   bool
}

// attempt runs one attempt until its response headers, which are its latency: it is the
// function of hedgedlimit.Do.
func (s *serverStream) attempt(ctx context.Context, a hedgedlimit.Attempt) (*streamAttempt, error) {
	w := &streamAttempt{
		openStream: openStream{cc: s.opener.cc, watched: s.opener.watched, replies: true},
		call:       s, release: a.Hold(),
	}
	w.end = w.finish
	parent, stop := context.WithCancel(ctx)
	attempt, free := s.client.attempt(parent, s.opener.cc, s.opener.method, a.Number())
	w.ctx, w.cancel = attempt, func() { free(); stop() }
	answered := false
	defer func() {
		if !answered { // it has failed, or something panics
			w.cancel()
			w.settle(nil)
		}
	}()
	if err := s.opener.open(&w.openStream, w.cells.options(s.options)); err != nil {
		return nil, w.failed(ctx, err, new(cells)) // what was opened below, if anything, has its own end
	}
	if err := w.send(); err != nil {
		return nil, w.failed(ctx, err, &w.cells)
	}
	answered = true
	return w, nil
}

// send sends the request and waits for the response headers. It returns the status of an
// attempt that has ended without.
func (w *streamAttempt) send() error {
	if !w.call.empty {
		// io.EOF means that the stream has ended, and the status follows.
		if err := w.SendMsg(w.call.request); err != nil && err != io.EOF { //nolint:errorlint // the bare value, by contract
			return err
		}
	}
	if err := w.CloseSend(); err != nil {
		return err
	}
	header, err := w.Header()
	if err != nil || header != nil {
		return err
	}
	// Header tells of no error, but has ended the stream if there is one.
	w.mu.Lock()
	told, err := w.told > 0, w.err
	w.mu.Unlock()
	switch {
	case told:
		return err
	case !w.lost():
		return nil // A stream that an interceptor inside has made up, without headers.
	}
	// gRPC has ended the stream in a goroutine of its own, which has yet to tell. No message
	// can come.
	if err := w.RecvMsg(new(emptypb.Empty)); err != nil && err != io.EOF { //nolint:errorlint // as above
		return err
	}
	if err := w.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return errClosing
}

func (w *streamAttempt) failed(ctx context.Context, err error, c *cells) error {
	code, local := codeOf(err), w.ctx.local()
	e := &attemptError{err: err, cells: c, late: late(w.ctx, err), outcome: streamOutcome(code, local)}
	if e.outcome == permit.Ignored {
		// No answer in time, or none because the caller has left.
		switch o := outcome(ctx, code, true); o {
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

// finish sees to the end of the attempt's stream, and if it has won to that of the call.
func (w *streamAttempt) finish(err error) (then func()) {
	byCtx := byContext(w.ctx, err) // before the release ends it
	w.mu.Lock()
	w.ended, w.last, w.byCtx = true, err, byCtx
	won := w.won
	w.mu.Unlock()
	w.release(streamOutcome(codeOf(err), w.ctx.local()))
	if won {
		return w.publish()
	}
	return nil
}

// publish ends the call of a winner that has ended, and returns what tells the caller.
func (w *streamAttempt) publish() (then func()) {
	s := w.call
	if !w.byCtx {
		s.target.ended(w.last, &w.cells, s.hedger)
	}
	w.cells.publish(s.options)
	s.cancel()
	return func() { finish(s.options, w.last) }
}

// discard ends a loser that was answered.
func (w *streamAttempt) discard() { w.cancel() }
