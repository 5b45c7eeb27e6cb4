package httpmw

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/permit"
)

type reportKey struct{}

// report is what the next handler said of one request. Zero: nothing yet.
type report struct {
	// word is 0, one more than an outcome, or reportOver. It never changes again after
	// that.
	word atomic.Uint32
}

const reportOver = ^uint32(0)

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
	x, ok := ctx.Value(reportKey{}).(*report)
	if !ok || o >= permit.NumOutcomes {
		return false
	}
	for {
		old := x.word.Load()
		if old == reportOver {
			return false
		}
		if x.word.CompareAndSwap(old, uint32(o)+1) {
			return true
		}
	}
}

// outcome ends the report, and returns what was said, or else if that is nothing. x may
// be nil.
func (x *report) outcome(otherwise permit.Outcome) permit.Outcome {
	if x == nil {
		return otherwise
	}
	if word := x.word.Swap(reportOver); word != 0 {
		return permit.Outcome(word - 1)
	}
	return otherwise
}
