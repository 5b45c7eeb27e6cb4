package hedgedlimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// An Attempt tells the function what it is run as. It is a small value and may be
// copied; its methods may be called from any goroutine.
type Attempt struct {
	attempt *attempt
}

// Number is 1 for the primary, 2 for the attempt after it, and so on.
func (a Attempt) Number() int { return a.attempt.number }

// Kind is limiter.Primary, limiter.Hedge or limiter.Retry.
func (a Attempt) Kind() limiter.Kind { return a.attempt.kind }

// Grant tells what the ledger showed when this attempt took its permit.
func (a Attempt) Grant() permit.Grant { return a.attempt.grant }

// Hold keeps the attempt from ending when its function returns: its permit stays
// out, and its context stays alive, until the returned function has been called.
// Use it for work that goes on after that, such as a response whose body is still
// to be read. The outcome given to release is what the limit learns if the
// function succeeded; the latency is that of the function.
//
// Hold must be called before the function returns. It may be called several
// times; the attempt ends after the last release, and the first outcome other
// than Success decides. Calling release again does nothing. A Hold that is never
// released keeps its permit for ever, also if the function fails or panics:
// whoever takes one must see to its end.
func (a Attempt) Hold() (release func(permit.Outcome)) {
	t := a.attempt
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == 0 {
		panic("hedgedlimit: Hold after the attempt has ended")
	}
	t.holds++
	var once sync.Once
	return func(o permit.Outcome) {
		once.Do(func() { t.drop(o) })
	}
}

// attempt is one execution of a call's function.
//
// It ends when holds has come down to 0; then, and only then, its permit is
// released. One hold is the run itself. It is dropped when fn has failed, when
// the caller has taken the result, or when the result has been discarded.
type attempt struct {
	// Immutable after launch.
	call    *call
	number  int
	kind    limiter.Kind
	permit  limiter.Permit
	grant   permit.Grant
	granted time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// detach cuts a drained loser off from the caller's cancellation; nil if the
	// context is the caller's child. It is set if Losers drains.
	detach func() bool

	// Owned by the goroutine of the caller.
	seen bool // its report has been taken

	// Written by the goroutine of the attempt before it reports, and read by
	// others only after: the lock of the call orders the two.
	err        error
	verdict    Verdict
	panicked   bool
	panicValue any

	// mu is a leaf; it may be taken while call.mu is held.
	mu sync.Mutex
	// Guarded by mu.

	holds    int            // Invariant: holds > 0 ⇔ the permit is held.
	outcome  permit.Outcome // of fn
	held     permit.Outcome // of the holds: the first that is not Success, or Success
	returned time.Time      // when fn returned; zero while it runs
	decided  time.Time      // when the call was decided without it; zero before
	beaten   bool           // it was decided for another reason than the end of the caller's context
	canceled time.Time      // when its context was cancelled because it was beaten; zero before
	won      bool
	drain    *time.Timer // cancels a loser that drains too long
}

// main is the goroutine of the attempt. What follows fn is deferred, so that it
// happens after a panic and runtime.Goexit too.
func (t *attempt) main() {
	defer t.report()
	t.run()
}

// run calls fn and notes how it ended.
func (t *attempt) run() {
	finished := false
	defer func() {
		switch v := recover(); {
		case v != nil:
			t.panicked, t.panicValue = true, v
			t.call.hedger.panicked(v)
		case !finished:
			t.err, t.verdict = ErrGoexit, Fatal
		}
	}()
	// If fn, or a classifier after it, does not return normally, its end is noted
	// with nothing learnt.
	o := permit.Ignored
	defer func() { t.noteReturn(o) }()
	t.err = t.call.invoke(t.ctx, Attempt{attempt: t})
	if t.err == nil {
		o = permit.Success
	} else {
		t.verdict = t.call.hedger.config.Classify(t.err)
		o = t.call.hedger.config.Limiter.Classify(t.err)
	}
	finished = true
}

// noteReturn notes that fn has returned and shows the latency to the delay.
func (t *attempt) noteReturn(o permit.Outcome) {
	now := time.Now()
	callerErr := t.call.ctxErr() // outside the lock: the context may be the user's code
	t.mu.Lock()
	t.returned = now
	switch {
	case o == permit.Success:
		// However late, it is a full sample.
	case !t.canceled.IsZero():
		// It was stopped by us: whatever error it made of that says nothing about
		// the other side.
		o = permit.Canceled
	case t.beaten:
		// A loser that ran into the caller's deadline while it was drained: the
		// call had its answer in time.
		if o == permit.Expired {
			o = permit.Canceled
		}
	case callerErr == nil || o == permit.Overload:
	case errors.Is(callerErr, context.DeadlineExceeded):
		// Whatever it was that the attempt called this: the call was too slow.
		o = permit.Expired
	case o == permit.Ignored:
		o = permit.Canceled
	}
	t.outcome = o
	latency, censored := t.latencyLocked()
	t.mu.Unlock()
	if t.kind == limiter.Primary {
		t.call.hedger.config.Delay.observe(now, latency, censored)
	}
}

// latencyLocked returns the latency of an attempt whose function has returned,
// and whether it is only a lower bound. t.mu must be held.
func (t *attempt) latencyLocked() (latency time.Duration, censored bool) {
	end := t.returned
	if t.outcome == permit.Canceled && !t.canceled.IsZero() {
		end = t.canceled // from there on it was not service any more
	}
	return end.Sub(t.granted), t.outcome != permit.Success
}

// report ends the run. An attempt that failed is over, so its permit comes back
// before the caller hears of it: the next attempt may need it.
func (t *attempt) report() {
	defer t.handOver() // also if a callback of the user calls Goexit
	if t.failed() {
		t.drop(permit.Success)
	}
}

// handOver hands the end of fn to the caller's goroutine, or sees to it here if the
// call was decided before.
func (t *attempt) handOver() {
	c := t.call
	c.mu.Lock()
	if !c.decided {
		c.reports = append(c.reports, t)
		c.mu.Unlock()
		select {
		case c.wake <- struct{}{}:
		default: // The caller has not looked since the last one: it will see both.
		}
		return
	}
	c.mu.Unlock()
	if !t.failed() {
		t.discard()
	}
}

// failed reports whether fn ended with anything but a result.
func (t *attempt) failed() bool { return t.err != nil || t.panicked }

// discard disposes of the result of a loser, and ends the run then.
func (t *attempt) discard() {
	defer t.drop(permit.Success) // also if the user's function calls Goexit
	t.call.hedger.guard(func() { t.call.discard(t.number) })
}

// drop gives one hold back, and ends the attempt if it was the last.
func (t *attempt) drop(o permit.Outcome) {
	t.mu.Lock()
	if t.held == permit.Success {
		t.held = o
	}
	t.holds--
	last := t.holds == 0
	t.mu.Unlock()
	if last {
		t.end()
	}
}

// end releases the permit. Nothing of the attempt runs any more, and nothing of
// it changes: holds is 0, and so stays.
func (t *attempt) end() {
	t.mu.Lock()
	drain := t.drain
	latency, _ := t.latencyLocked()
	outcome := t.outcome
	if outcome == permit.Success {
		outcome = t.held
	}
	if outcome >= permit.NumOutcomes {
		outcome = permit.Ignored // as the ledger takes it
	}
	event := AttemptEvent{
		Number: t.number, Kind: t.kind,
		Won: t.won, Lost: !t.decided.IsZero(), Outcome: outcome, Grant: t.grant,
		Granted: t.granted, Returned: t.returned, Decided: t.decided,
	}
	t.mu.Unlock()
	if drain != nil {
		drain.Stop()
	}
	h := t.call.hedger
	// Both may reach into the caller's context, which may be the user's code: a
	// panic there must not keep the permit.
	h.guard(func() {
		if t.detach != nil {
			t.detach()
		}
	})
	h.guard(func() { t.cancel(nil) }) // frees what hangs on the context
	event.Ended = time.Now()
	// Counted first: who finds nothing in flight finds the counts complete.
	h.counts.ended[t.kind][event.Outcome].Add(1)
	t.permit.ReleaseAfter(event.Outcome, latency)
	if h.config.OnAttempt != nil {
		h.guard(func() { h.config.OnAttempt(event) })
	}
}

// win ends the run of the attempt whose result the call returns.
func (t *attempt) win() {
	t.mu.Lock()
	t.won = true
	t.mu.Unlock()
	t.drop(permit.Success)
}

// lose tells an attempt that the call was decided without it. If it has not ended
// yet, its context is cancelled when drain is over, at once if that is 0. Beaten is
// false if the end of the caller's context decided the call, which ends that of the
// attempt without more ado. It is called once at most, by the goroutine of the
// caller.
func (t *attempt) lose(now time.Time, drain time.Duration, beaten bool) {
	t.mu.Lock()
	if t.holds == 0 {
		t.mu.Unlock()
		return // It failed, and is over.
	}
	t.decided, t.beaten = now, beaten
	if drain > 0 {
		t.drain = time.AfterFunc(drain, t.stop)
	}
	t.mu.Unlock()
	t.call.hedger.counts.lost[t.kind].Add(1)
	t.permit.Abandon()
	switch {
	case !beaten:
		// The end of the caller's context reaches it by itself, and with its own
		// cause.
	case drain == 0:
		t.stop()
	default:
		t.call.hedger.guard(func() { t.detach() }) // as in end
	}
}

// stop cancels the context of a beaten loser. Cancelling is not the end of its
// work.
func (t *attempt) stop() {
	t.mu.Lock()
	if t.returned.IsZero() {
		t.canceled = time.Now()
	}
	t.mu.Unlock()
	// Runs what users hung on the context: no lock is held.
	t.call.hedger.guard(func() { t.cancel(ErrLost) })
}

// launch starts the goroutine of an attempt under a permit already taken. If the
// caller's context, which may be the user's code, panics, nothing is started and
// what was taken for the attempt is given back.
func (c *call) launch(kind limiter.Kind, p limiter.Permit) {
	launched := false
	defer func() {
		if launched {
			return
		}
		p.Release(permit.Ignored)
		if kind != limiter.Primary {
			c.hedger.counts.skipped[SkipPermit].Add(1)
			c.hedger.config.Budget.Refund(time.Now())
		}
	}()
	t := &attempt{
		call: c, number: len(c.attempts) + 1, kind: kind,
		permit: p, grant: p.Grant(), granted: time.Now(),
		holds: 1, held: permit.Success,
	}
	t.newContext()
	c.attempts = append(c.attempts, t)
	c.running++
	c.hedger.counts.started[kind].Add(1)
	launched = true
	go t.main()
}

// newContext makes the context of the attempt. Its deadline is the caller's, and
// it ends with the caller's context. Under Drain it must be able to outlive a
// cancellation by the caller after the decision, so it is no child, but is told.
func (t *attempt) newContext() {
	parent := t.call.ctx
	if t.call.hedger.config.Losers.drain == 0 {
		t.ctx, t.cancel = context.WithCancelCause(parent)
		return
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	t.ctx, t.cancel = ctx, cancel
	if deadline, ok := parent.Deadline(); ok {
		timed, stop := context.WithDeadline(ctx, deadline)
		t.ctx = timed
		t.cancel = func(cause error) { cancel(cause); stop() }
	}
	t.detach = context.AfterFunc(parent, func() {
		deadline, ok := parent.Deadline()
		if ok && parent.Err() == context.DeadlineExceeded && !time.Now().Before(deadline) { //nolint:errorlint // the sentinel itself
			return // The attempt's own timer says so, and says it as a deadline.
		}
		cancel(context.Cause(parent))
	})
}
