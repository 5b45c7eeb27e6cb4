package grpcmw

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// A Server limits how many handlers of a grpc.Server run at once, by a limit that adapts.
// It must be made by NewServer, may be used by any number of servers and goroutines, and
// starts none.
type Server struct {
	// Immutable after NewServer.
	gate    *gate.Gate
	exempt  func(fullMethod string) bool
	reports bool
	// The answer to all that is refused, shared so that a refusal makes nothing.
	trailer  metadata.MD
	refusals refusals
}

// NewServer returns a Server. Without options it has a limiter of its own, under which 64
// calls may wait, each for 100 ms at most, and the newest first once the oldest has waited
// for half of that. A server should rather refuse than let a client wait longer than its
// next server would take. On a bad option it returns nil and an error that names it.
func NewServer(opts ...ServerOption) (*Server, error) {
	o, err := newServerOptions(opts)
	if err != nil {
		return nil, err
	}
	return &Server{
		gate:     gate.New(o.limiter, o.maxExtra),
		exempt:   o.exempt,
		reports:  o.reports,
		trailer:  pushbackTrailer(o.pushback),
		refusals: refusalsWith(o.refusalCode),
	}, nil
}

// ServerOptions returns both interceptors for a grpc.Server:
//
//	server, err := grpcmw.NewServer()
//	…
//	s := grpc.NewServer(server.ServerOptions()...)
//
// Interceptors that are chained before them run outside of the limit and see refusals;
// those after run inside, under the permit.
func (s *Server) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.UnaryInterceptor()),
		grpc.ChainStreamInterceptor(s.StreamInterceptor()),
	}
}

// UnaryInterceptor returns the interceptor for unary calls; streams need the other one, and
// go unlimited without it.
//
// The permit is released when the handler has returned, also by a panic, whose value goes
// on unchanged, or by runtime.Goexit, and never before. What it costs is in
// BenchmarkServer: without AcceptReports it allocates nothing for a first attempt, and for
// its refusal no more than grpc-go does to send the trailer.
func (s *Server) UnaryInterceptor() grpc.UnaryServerInterceptor { return s.unary }

// StreamInterceptor returns the interceptor for streams; see UnaryInterceptor. The stream
// is passed on as it is, unless AcceptReports gives it another context.
func (s *Server) StreamInterceptor() grpc.StreamServerInterceptor { return s.stream }

func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if s.passes(info.FullMethod) {
		return handler(ctx, request)
	}
	p, why := s.gate.Enter(ctx, kind(ctx))
	if why != gate.None {
		if why != gate.Closed {
			// It fails only outside of a grpc.Server, where there is nobody to tell.
			_ = grpc.SetTrailer(ctx, s.trailer)
		}
		return nil, s.refusals[why]
	}
	// Runs after the permit has been released: so Close returns after that too.
	defer s.gate.Leave()
	inner, said := s.reported(ctx)
	learnt := permit.Ignored // stays so if the handler does not return
	defer func() { p.Release(said.End(learnt)) }()
	answer, err := handler(inner, request)
	learnt = served(ctx, err)
	return answer, err
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if s.passes(info.FullMethod) {
		return handler(srv, ss)
	}
	ctx := ss.Context()
	p, why := s.gate.Enter(ctx, kind(ctx))
	if why != gate.None {
		if why != gate.Closed {
			ss.SetTrailer(s.trailer.Copy()) // An interceptor outside may add to it.
		}
		return s.refusals[why]
	}
	defer s.gate.Leave() // as in unary
	inner, said := s.reported(ctx)
	// How long a stream was open is no latency, however it has ended.
	defer func() { p.Release(said.End(permit.Ignored)) }()
	if said != nil {
		ss = &reportingStream{ServerStream: ss, ctx: inner}
	}
	return handler(srv, ss)
}

// passes reports whether the calls of a method need no permit, and counts them.
func (s *Server) passes(fullMethod string) bool {
	if !alwaysExempt(fullMethod) && (s.exempt == nil || !s.exempt(fullMethod)) {
		return false
	}
	s.gate.Exempt()
	return true
}

// kind is limiter.Hedge for a call that is a hedge or a retry: gRPC's metadata does not tell
// which. A number of previous attempts that cannot be read is treated like none, so that
// nothing is gained by nonsense.
func kind(ctx context.Context) limiter.Kind {
	if previous, ok := parseAttempts(metadata.ValueFromIncomingContext(ctx, attemptsKey)); ok && previous > 0 {
		return limiter.Hedge
	}
	return limiter.Primary
}

// served is what a unary call teaches the limit whose handler has returned.
//
// A deadline that the client has set is its own leaving, only told beforehand: were it a
// drop, a client that allows one millisecond could have the limit lowered for all. The
// client's cancellation, which it sends at the same time, may be here first besides.
//
// A handler says RESOURCE_EXHAUSTED for the quota of one client, and UNAVAILABLE for what
// it depends on. Neither tells what this server can do, and both are quick: as successes
// they would raise the limit, as overloads have one client or one dependency lower it for
// all.
func served(ctx context.Context, err error) permit.Outcome {
	switch ctxErr := ctx.Err(); {
	case errors.Is(ctxErr, context.DeadlineExceeded) && !endedByClient(ctx):
		return permit.Expired
	case ctxErr != nil:
		return permit.Canceled
	}
	switch status.Code(err) {
	case codes.ResourceExhausted, codes.Unavailable:
		return permit.Ignored
	}
	return permit.Success
}

// endedByClient reports whether the context that gRPC has made for a call has ended, by the
// client's deadline or its cancellation. ctx may have an earlier deadline of the server's
// own. That of a stream which is not grpc-go's cannot be had; it counts as the client's.
func endedByClient(ctx context.Context) bool {
	call, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ Context() context.Context })
	return !ok || call.Context().Err() != nil
}

// Close refuses all further calls with UNAVAILABLE, and waits until those inside have
// ended, also those that wait for a permit, which are served as ever. It returns nil then,
// or ctx.Err() if ctx ends before; the Server stays closed, and Close may be called again
// to go on waiting. Exempt calls pass and are not waited for, so that a health check can
// say that the server is about to go. A limiter that was given is not closed, nor is the
// grpc.Server. Clients that may go elsewhere are best told by the GracefulStop of that, before
// or beside Close: they send nothing more, and nobody need be refused. A refusal by Close asks
// for no pushback.
//
// The release of the last permit synchronizes before the return of a Close that returns
// nil.
func (s *Server) Close(ctx context.Context) error { return s.gate.Close(ctx) }

// ServerStats is a snapshot of a Server.
type ServerStats struct {
	// Limiter is the limiter's, also that of others if it is shared.
	Limiter limiter.Stats
	// Inside is how many calls are being served or wait, without exempt ones.
	Inside int
	// Exempt counts the calls that needed no permit.
	Exempt uint64
	// Refused counts the calls that were refused.
	Refused Refusals
}

// Refusals counts calls that no handler has seen, by reason.
type Refusals struct {
	// Full: the limit had no room, and none came about in time, or would have before the
	// call's deadline.
	Full uint64
	// ExtraFull: a hedge or retry found no permit free beyond the reserve.
	ExtraFull uint64
	// ExtraShare: a hedge or retry was one too many for MaxExtra.
	ExtraShare uint64
	// Expired: the call's deadline had passed when it came, or passed while it waited.
	Expired uint64
	// Gone: the client cancelled before that, or its word that its deadline has passed
	// came before the server's own clock had said so.
	Gone uint64
	// Closed: the Server was closed, or its limiter.
	Closed uint64
}

// Stats returns a snapshot; its parts are read one after the other. It never fails and
// may be called at any time, also after Close.
func (s *Server) Stats() ServerStats {
	g := s.gate.Stats()
	return ServerStats{Limiter: g.Limiter, Inside: g.Inside, Exempt: g.Exempt, Refused: Refusals(g.Refused)}
}
