package gate

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/permit"
)

// A Report is what a handler says of its own request. The zero value says nothing yet.
// All methods may be called from any number of goroutines.
type Report struct {
	// word is 0, one more than an outcome, or over. It never changes again after that.
	word atomic.Uint32
}

const over = ^uint32(0)

// Say notes o in the place of what was said before. It is false, and changes nothing, if
// the report has ended or o is no outcome. x may be nil, which has ended.
func (x *Report) Say(o permit.Outcome) bool {
	if x == nil || o >= permit.NumOutcomes {
		return false
	}
	for {
		old := x.word.Load()
		if old == over {
			return false
		}
		if x.word.CompareAndSwap(old, uint32(o)+1) {
			return true
		}
	}
}

// End ends the report, and returns what was said last, or else otherwise. x may be nil,
// which has said nothing.
func (x *Report) End(otherwise permit.Outcome) permit.Outcome {
	if x == nil {
		return otherwise
	}
	if word := x.word.Swap(over); word != 0 {
		return permit.Outcome(word - 1)
	}
	return otherwise
}
