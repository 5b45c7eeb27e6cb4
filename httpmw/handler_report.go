package httpmw

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/gate"
	"github.com/holdfast-go/holdfast/permit"
)

type reportKey struct{}

// Report says what the limit should learn from the request with this context, in the
// place of what its end would teach: Ignored for an answer from a cache or a stream of
// events, whose duration is no latency; Overload if what the handler depends on has
// refused. It may be called from any goroutine until the handler returns; of several
// reports the last counts, and it counts after a panic too.
//
// It returns false, and nothing is changed, if the context is not that of a request under
// a Handler with AcceptReports, if that has ended, or if o is no outcome. Of nested
// Handlers the innermost with AcceptReports is told.
func Report(ctx context.Context, o permit.Outcome) bool {
	x, _ := ctx.Value(reportKey{}).(*gate.Report)
	return x.Say(o)
}
