package grpcmw

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// stream is the interceptor of streams.
func (c *Client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	t, err := c.targets.enter(targetOf(cc))
	if err != nil {
		err = refusal(err)
		finish(opts, err)
		return nil, err
	}
	defer t.leave()
	r := c.streamRoute(t, method, desc)
	caller, cancel := ctx, context.CancelFunc(func() {})
	if r.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
	}
	open := func(ctx context.Context, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		if s == nil && err == nil {
			return nil, errNilStream
		}
		return s, err
	}
	if !r.once {
		return newServerStream(ctx, caller, cancel, c, t.name, method, open, opts), nil
	}
	s := &plainStream{target: t, hedger: r.hedger, cancel: cancel}
	return s.begin(ctx, c, method, open, opts)
}

// opener makes one stream.
type opener func(context.Context, ...grpc.CallOption) (grpc.ClientStream, error)

// plainStream is the work of a stream that is sent once. The caller gets gRPC's own
// stream; all that is ours is to be told of its end, which comes in one of these ways: the
// streamer fails, RecvMsg returns an error or io.EOF, or the only reply of a client's
// stream, SendMsg or Header fail, the context ends, or the channel is closed. gRPC tells
// of each of them by OnFinish, and of some of them twice.
type plainStream struct {
	// Immutable once the stream is opened.
	target  *target
	hedger  *hedger // of its method; nil if that has no policy
	cancel  context.CancelFunc
	permit  limiter.Permit
	attempt *attemptContext

	seen cells // written by gRPC before OnFinish
	once sync.Once
}

// begin opens the stream under a permit.
func (s *plainStream) begin(ctx context.Context, c *Client, method string, open opener, opts []grpc.CallOption) (_ grpc.ClientStream, err error) {
	opened := false
	defer func() {
		if !opened { // it was refused, or has failed, or something panics
			s.once.Do(func() { s.close(permit.Ignored) })
		}
	}()
	if s.permit, err = s.target.limiter.Acquire(ctx, limiter.Primary); err != nil {
		err = refusal(err)
		finish(opts, err)
		return nil, err
	}
	attempt, cancel := c.attempt(ctx, method, 0)
	timeout := s.cancel
	s.attempt, s.cancel = attempt, func() { cancel(); timeout() }
	// First ours, so that who is told by the caller's finds the permit back.
	options := append([]grpc.CallOption{grpc.OnFinish(s.end)}, s.seen.besides(opts)...)
	stream, err := open(attempt, options...)
	if err != nil {
		s.end(err)
		return nil, explained(ctx, err)
	}
	opened = true
	return stream, nil
}

// end is told by gRPC that the stream has ended.
func (s *plainStream) end(err error) {
	s.once.Do(func() {
		learnt := permit.Ignored
		defer func() { s.close(learnt) }() // also if a classifier panics
		learnt = streamOutcome(status.Code(err), s.attempt.local())
		if !byContext(s.attempt, err) {
			s.target.ended(err, &s.seen, s.hedger)
		}
	})
}

// close gives back what the stream holds. How long it ran is no latency, so only a refusal
// teaches the limit.
func (s *plainStream) close(learnt permit.Outcome) {
	s.cancel()
	s.permit.Release(learnt)
}
