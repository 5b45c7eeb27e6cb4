package hedgedlimit

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// An Attempt tells the function what it is run as. It is a small value and may be
// copied and kept; its methods may be called from any goroutine.
type Attempt struct {
	call       *call // whose lock guards all that attempt points to
	attempt    *attempt
	generation uint32 // of the record that both are in; see record
	number     int
	permit     limiter.Permit
}

// Number is 1 for the primary, 2 for the attempt after it, and so on.
func (a Attempt) Number() int { return a.number }

// Kind is limiter.Primary, limiter.Hedge or limiter.Retry.
func (a Attempt) Kind() limiter.Kind { return a.permit.Kind() }

// Grant tells what the ledger showed when this attempt took its permit.
func (a Attempt) Grant() permit.Grant { return a.permit.Grant() }

// Hold keeps the attempt from ending when its function returns: its permit stays
// out, and its context stays alive unless it fails or loses, until the returned function
// has been called.
// Use it for work that goes on after that, such as a response whose body is still
// to be read. The outcome given to release is what the limit learns if the
// function succeeded; the latency is that of the function, or ends at Answered.
//
// Hold must be called before the function returns. It may be called several
// times; the attempt ends after the last release, and the first outcome other
// than Success decides. Calling release again does nothing. A Hold that is never
// released keeps its permit for ever, also if the function fails or panics:
// whoever takes one must see to its end. It allocates once.
func (a Attempt) Hold() (release func(permit.Outcome)) {
	// A call that has taken the record over writes all of attempt, but under the lock.
	c, t := a.call, a.attempt
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != a.generation || t.holds == 0 {
		panic("hedgedlimit: Hold after the attempt has ended")
	}
	t.holds++
	if t.open == nil {
		t.open = t.openRoom[:0]
	}
	word, bit := t.taken/64, uint64(1)<<(t.taken%64)
	t.taken++
	if word == len(t.open) {
		t.open = append(t.open, 0)
	}
	t.open[word] |= bit
	// A flag of its own, such as a sync.Once, would be a second allocation.
	generation := a.generation
	return func(o permit.Outcome) {
		c.mu.Lock()
		if c.generation != generation || t.open[word]&bit == 0 {
			c.mu.Unlock()
			return
		}
		t.open[word] &^= bit
		t.dropLocked(o)
	}
}

// attempt is one execution of a call's function.
//
// It ends when holds has come down to 0; then, and only then, its permit is
// released. One hold is the run itself. It is dropped when fn has failed, when
// the caller has taken the result, or when the result has been discarded. One is
// the linger of a loser.
type attempt struct {
	call *call // immutable

	// Immutable after launch.
	number  int
	kind    limiter.Kind
	why     Start
	permit  limiter.Permit
	granted time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// detach cuts a drained loser off from the caller's cancellation; nil if the
	// context ends with the caller's in any case. It is set if Losers may drain.
	detach func() bool

	// Owned by the goroutine of the caller.
	seen bool // its report has been taken

	// Written by the goroutine of the attempt before it reports, and read by
	// others only after: the lock of the call orders the two.
	verdict    Verdict
	panicked   bool
	pushed     bool // the other side said when to come again: pushback
	pushback   time.Duration
	err        error
	panicValue any

	// Guarded by call.mu.

	beaten   bool // it was decided for another reason than the end of the caller's context
	won      bool
	marked   bool           // its result is a failure: MarkFailed
	lingers  bool           // one of the holds is that of timer
	outcome  permit.Outcome // of fn; while it runs, that of MarkFailed
	held     permit.Outcome // of the holds: the first that is not Success, or Success
	final    permit.Outcome // with which the permit was released
	holds    int            // Invariant: holds > 0 ⇔ the permit is held.
	returned instant        // when fn returned; 0 while it runs
	answered instant        // when the other side had answered; 0 if that is when fn returned
	decided  instant        // when the call was decided without it; 0 before
	canceled instant        // when its context was cancelled because it was beaten; 0 before
	ended    instant        // when it ended, if it lost or somebody is to be told; 0 before
	timer    *time.Timer    // cancels a loser that drains too long, or ends its linger
	next     *attempt       // in the list of reports; the caller's once it has looked
	taken    int            // how often Hold has been called
	open     []uint64       // a bit for each call of Hold, in their order, set until its release is called
	openRoom [1]uint64      // open begins in it
}

// instant is a time since the grant of an attempt in ns, and 1 more, so that 0 is
// none. It takes a third of the room of a time.Time.
type instant int64

func (t *attempt) instant(at time.Time) instant { return instant(max(at.Sub(t.granted), 0)) + 1 }

// at returns the time of an instant, and the zero Time of none.
func (t *attempt) at(i instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return t.granted.Add(time.Duration(i - 1))
}

// resetLocked forgets everything but the call. call.mu must be held.
func (t *attempt) resetLocked() { *t = attempt{call: t.call} }

// launch starts the goroutine of an attempt under a permit already taken. If the
// caller's context or the budget, which may be the user's code, panic, or another
// layer has used the last attempt up meanwhile, nothing is started, what was taken for
// it is given back, and a skip is counted.
func (c *call) launch(kind limiter.Kind, p limiter.Permit, why Start) bool {
	h := c.hedger
	t := &c.primary
	launched, taken, reason := false, false, SkipPermit
	defer func() {
		if launched {
			return
		}
		p.Release(permit.Ignored)
		if t.cancel != nil {
			t.dropContext()
		}
		if taken {
			c.layer.give()
		}
		if kind != limiter.Primary {
			now := time.Now()
			c.skipped(reason, now)
			h.config.Budget.Refund(now)
		}
	}()
	if kind == limiter.Primary {
		c.layer = newLayer(c.ctx, h)
	} else {
		if taken = c.layer.take(c.maxAttempts); !taken {
			reason = SkipAttempts
			return false
		}
		c.work.reserve()
		t = &attempt{call: c}
	}
	t.number, t.kind, t.why = len(c.attempts)+1, kind, why
	t.permit, t.granted = p, p.GrantedAt()
	t.holds, t.held = 1, permit.Success
	t.newContext()
	if kind == limiter.Primary && c.layer.pays {
		h.config.Budget.Deposit(t.granted) // before the end of the attempt can be told
	}
	c.attempts = append(c.attempts, t)
	c.running++
	h.counts.started[kind].Add(1)
	c.refs.Add(2) // one for its goroutine, one until its end
	launched = true
	if kind == limiter.Primary {
		h.config.Gates.started(t.granted, p.Grant().InFlight)
		go c.main()
	} else {
		go t.begin()
	}
	return true
}

// begin is the goroutine of the attempt. It has a small frame, and nothing else is on the
// stack when that grows.
func (t *attempt) begin() {
	t.call.hedger.depth.grow()
	t.main()
}

// main calls fn and sees to the end of the attempt. What follows fn is deferred, so that it
// happens after a panic and runtime.Goexit too.
func (t *attempt) main() {
	defer t.call.unref()
	defer t.report()
	t.run()
}

// run calls fn and notes how it ended.
func (t *attempt) run() {
	finished := false
	h := t.call.hedger
	defer func() {
		switch v := recover(); {
		case v != nil:
			t.panicked, t.panicValue = true, v
			h.panicked(v)
		case !finished:
			t.err, t.verdict = ErrGoexit, Fatal
		}
	}()
	// If fn, or a classifier after it, does not return normally, its end is noted
	// with nothing learnt.
	o := permit.Ignored
	defer func() { t.noteReturn(o) }()
	var here byte
	before := address(&here)
	t.err = t.call.work.invoke(t.ctx, Attempt{t.call, t, t.call.generation, t.number, t.permit})
	h.depth.observe(before, address(&here))
	if t.err == nil {
		o = permit.Success
	} else {
		t.verdict = h.config.Classify(t.err)
		if h.config.Pushback != nil {
			t.pushback, t.pushed = h.config.Pushback(t.err)
		}
		o = h.config.Limiter.Classify(t.err)
	}
	finished = true
}

// noteReturn notes that fn has returned and shows the latency to all who learn.
func (t *attempt) noteReturn(o permit.Outcome) {
	c := t.call
	now := time.Now()
	var callerErr error
	// Outside the lock: the context may be the user's code. If it panics the result is
	// still somebody's to take or to discard.
	c.hedger.guard(func() { callerErr = c.ctxErr() })
	rest := time.Duration(0)
	if callerErr != nil && !t.lost() {
		rest = t.rest(now, c.losers())
	}
	c.mu.Lock()
	t.returned = t.instant(now)
	if t.marked && o == permit.Success {
		o = t.outcome
	}
	switch {
	case o == permit.Success:
		// However late, it is a full sample, and nothing of it goes on elsewhere.
		t.stopLingerLocked()
	case t.canceled != 0:
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
	if o == permit.Expired || o == permit.Canceled {
		// The caller has left in the instant in which the call is to be decided.
		t.lingerLocked(rest)
	}
	t.outcome = o
	canceled := t.canceled != 0
	latency, censored := t.latencyLocked()
	c.mu.Unlock()
	h := c.hedger
	switch {
	case o != permit.Canceled && o != permit.Expired:
		h.config.Gates.answered()
	case o == permit.Canceled && t.kind == limiter.Primary && !canceled:
		h.config.Gates.left()
	}
	if t.kind == limiter.Primary {
		c.delay.observe(now, latency, censored)
		h.config.Gates.observe(now, latency, censored, h.config.Limiter.Limit())
	}
	// One that the caller or its deadline has ended says nothing about the other side.
	byCaller := o == permit.Canceled || o == permit.Expired && callerErr != nil
	if h.follower != nil && !canceled && !byCaller {
		h.guard(func() { h.follower.Answered(now, t.answer()) })
	}
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
		if c.last == nil {
			c.first = t
		} else {
			c.last.next = t
		}
		c.last = t
		c.nudgeLocked()
		c.mu.Unlock()
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
	t.call.hedger.guard(func() { t.call.work.discard(t.number) })
}

// drop gives one hold back, and ends the attempt if it was the last.
func (t *attempt) drop(o permit.Outcome) {
	t.call.mu.Lock()
	t.dropLocked(o)
}

// dropLocked is drop by somebody who holds call.mu, and lets go of it.
func (t *attempt) dropLocked(o permit.Outcome) {
	if t.held == permit.Success {
		t.held = o
	}
	t.holds--
	if t.holds > 0 {
		t.call.mu.Unlock()
		return
	}
	timer := t.timer
	latency, _ := t.latencyLocked()
	t.final = t.outcome
	if t.final == permit.Success {
		t.final = t.held
	}
	if t.final >= permit.NumOutcomes {
		t.final = permit.Ignored // as the ledger takes it
	}
	t.call.mu.Unlock()
	t.end(timer, latency)
}

// end releases the permit. Nothing of the attempt runs any more, and nothing of
// it changes but by this: holds is 0, and so stays, and lose does not touch it then.
func (t *attempt) end(timer *time.Timer, latency time.Duration) {
	c := t.call
	h := c.hedger
	defer c.unref()
	if timer != nil && timer.Stop() {
		c.refs.Add(-1) // never the last: the attempt has one
	}
	t.dropContext()
	if t.decided != 0 || h.config.OnAttempt != nil || h.config.Observer != nil {
		t.ended = t.instant(time.Now())
	}
	if t.decided != 0 {
		h.counts.overhang.Add(uint64(t.ended - t.decided))
	}
	// Counted first: who finds nothing in flight finds the counts complete.
	h.counts.ended[t.kind][t.final].Add(1)
	if h.follower != nil && (t.kind != limiter.Primary || c.layer.pays) {
		h.guard(func() { h.follower.Ended(time.Now(), t.kind != limiter.Primary) })
	}
	t.permit.ReleaseAfter(t.final, latency)
	if h.config.OnAttempt != nil {
		h.guard(func() { h.config.OnAttempt(t.event()) })
	}
}
