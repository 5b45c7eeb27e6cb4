package grpcmw

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// streams returns the interceptor of streams. Watched tells that the StatsHandler is
// installed in the same channels.
func (c *Client) streams(watched bool) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
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
		o := opener{cc: cc, desc: desc, method: method, streamer: streamer, watched: watched}
		if !r.once {
			return newServerStream(apart(ctx, cc, method), caller, cancel, c, t.name, o, opts), nil
		}
		return o.openPlain(ctx, cancel, c, t, r.hedger, opts)
	}
}

// opener makes streams of one method. It is immutable.
type opener struct {
	cc       *grpc.ClientConn
	desc     *grpc.StreamDesc
	method   string
	streamer grpc.Streamer
	watched  bool
}

// open makes one stream, and takes it to s if there is no error.
func (o opener) open(s *openStream, opts []grpc.CallOption) error {
	stream, err := o.streamer(s.ctx, o.desc, o.cc, o.method, append(opts, grpc.OnFinish(s.finished))...)
	switch {
	case err != nil:
		return err
	case stream == nil:
		return errNilStream
	}
	s.opened(stream)
	return nil
}

// plainStream is a stream that is sent once. It holds a permit until it ends. What the
// caller's options point to is written by gRPC, but OnFinish is told here, when the permit
// is back.
type plainStream struct {
	openStream

	// Immutable once opened.
	target  *target
	hedger  *hedger // of its method; nil if that has no policy
	permit  limiter.Permit
	options []grpc.CallOption // the caller's
}

// openPlain opens a stream under a permit. It calls cancel when the stream has ended.
func (o opener) openPlain(ctx context.Context, cancel context.CancelFunc, c *Client, t *target, h *hedger, opts []grpc.CallOption) (_ grpc.ClientStream, err error) {
	p, err := t.limiter.Acquire(ctx, limiter.Primary)
	if err != nil {
		cancel()
		err = refusal(err)
		finish(opts, err)
		return nil, err
	}
	s := &plainStream{
		openStream: openStream{cc: o.cc, watched: o.watched, replies: o.desc.ServerStreams},
		target:     t, hedger: h, permit: p, options: slices.Clone(opts),
	}
	s.end = s.ended
	parent, stop := context.WithCancel(ctx)
	attempt, free := c.attempt(parent, o.cc, o.method, 0)
	s.ctx, s.cancel = attempt, func() { free(); stop(); cancel() }
	returned := false
	defer func() {
		if !returned { // something panics
			s.once.Do(func() { p.Release(permit.Ignored) })
			s.cancel()
		}
	}()
	err = o.open(&s.openStream, withoutFinish(s.cells.besides(opts)))
	returned = true
	if err != nil {
		explained := explained(ctx, err)
		s.over(err)
		return nil, explained
	}
	return s, nil
}

// ended gives the permit back. How long a stream ran is no latency, so only a refusal teaches
// the limit.
func (s *plainStream) ended(err error) (then func()) {
	learnt := permit.Ignored
	defer func() { s.permit.Release(learnt) }() // also if a classifier panics
	learnt = streamOutcome(codeOf(err), s.ctx.local())
	if !byContext(s.ctx, err) {
		s.target.ended(err, &s.cells, s.hedger)
	}
	return func() { finish(s.options, err) }
}
