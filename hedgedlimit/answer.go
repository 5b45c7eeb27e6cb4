package hedgedlimit

import (
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// Answered ends the latency of the attempt now instead of when its function returns,
// which is what limit, delay and gates learn from. Use it where the function goes on
// with what is no service of the other side, such as reading the body of an answer
// that it is to keep. The first call counts; one after the function has returned does
// nothing. It costs a lock and no allocation.
func (a Attempt) Answered() {
	a.whileRunning(func(t *attempt) {
		if t.answered == 0 {
			t.answered = t.instant(time.Now())
		}
	})
}

// MarkFailed says that the result which the function is about to return is a failure
// of the other side all the same, and is returned because nothing better is to come.
// The call returns it like any other, but budgets and the win gate count the attempt
// as failed, and the outcome is what the limit learns, as from an error that
// limiter.Config.Classify calls so. The last call counts; one after the function has
// returned does nothing, and so does one whose function returns an error.
func (a Attempt) MarkFailed(o permit.Outcome) {
	a.whileRunning(func(t *attempt) { t.marked, t.outcome = true, o })
}

// whileRunning calls f under the lock of the call if the function of the attempt has
// not returned.
func (a Attempt) whileRunning(f func(*attempt)) {
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	if a.call.generation == a.generation && a.attempt.returned == 0 {
		f(a.attempt)
	}
}

// answer is what a budget learns of the attempt.
func (t *attempt) answer() Answer {
	switch {
	case t.marked && t.err == nil && !t.panicked:
		return AnswerNonFatal
	case !t.failed():
		return AnswerSuccess
	case t.pushed && t.pushback < 0:
		return AnswerNonFatal // the other side is overloaded, whatever the error is
	case t.panicked || t.verdict != NonFatal:
		return AnswerFatal
	}
	return AnswerNonFatal
}

// latencyLocked returns the latency of an attempt whose function has returned,
// and whether it is only a lower bound. call.mu must be held.
func (t *attempt) latencyLocked() (latency time.Duration, censored bool) {
	end := t.returned
	if t.outcome == permit.Canceled && t.canceled != 0 {
		end = t.canceled // from there on it was not service any more
	}
	if t.answered != 0 {
		end = min(end, t.answered)
	}
	return time.Duration(end - 1), t.outcome != permit.Success
}
