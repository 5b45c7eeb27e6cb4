package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/permit"
)

type reportKey struct{}

// Report says what the limit should learn from the call with this context, in the place
// of what its end would teach: Success for a stream whose duration is a latency; Ignored
// for an answer from a cache; Overload if the handler could not do its work because this
// server, or what all its calls depend on, can take no more. It may be called from any
// goroutine until the handler returns; of several reports the last counts, and it counts
// after a panic too.
//
// It returns false, and nothing is changed, if the context is not that of a call under a
// Server with AcceptReports, if that has ended, or if o is no outcome. Of nested Servers
// the innermost with AcceptReports is told.
func Report(ctx context.Context, o permit.Outcome) bool {
	x, _ := ctx.Value(reportKey{}).(*gate.Report)
	return x.Say(o)
}

// reported returns ctx with a report, which is nil if none is wanted.
func (s *Server) reported(ctx context.Context) (context.Context, *gate.Report) {
	if !s.reports {
		return ctx, nil
	}
	said := new(gate.Report)
	return context.WithValue(ctx, reportKey{}, said), said
}

// reportingStream is a stream with another context.
type reportingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *reportingStream) Context() context.Context { return s.ctx }
