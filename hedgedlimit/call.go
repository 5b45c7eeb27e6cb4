package hedgedlimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// call is one call of Do. The goroutine of the caller owns it: it alone launches
// attempts and decides the call, so two of them can never be launched for one
// reason, or one after the decision. See the package comment for its states.
//
// A call is used again when it is over; see record for why nobody can touch it
// then. So it has no constructor: begin makes it ready, and reset leaves it so.
type call struct {
	// Immutable while the record serves one call.
	hedger      *Hedger
	ctx         context.Context // the caller's
	layer       *layer          // parent of the attempts' contexts; nil before launch
	delay       Delay
	work        worker
	maxAttempts int
	noHedge     bool // no hedge is ever due: held back, or retry mode
	heldBack    bool
	began       time.Time // set only if somebody will ask

	// Owned by the goroutine of the caller.

	attempts []*attempt // all that were launched, by number
	running  int        // Invariant: running == attempts launched − reports seen.
	hedged   bool       // a hedge was sent
	frozen   bool       // the other side asked for no further attempt
	passed   bool       // the win gate has let the hedge to come through
	shut     bool       // no hedge may be sent any more; retries may
	backoffs int        // since the call began, or since the last pushback
	timer    *time.Timer
	armed    bool      // the timer is set
	due      time.Time // when it counts; an older tick does not
	// notBefore is when the other side has asked for the next attempt at the earliest.
	notBefore time.Time
	why       Start    // of the attempt that the timer is for
	skips     *skipLog // nil unless an observer is set
	end       decision // set when decided, for the observer

	// wake holds a token if there may be reports, or a tick, that the caller has not
	// seen. It is sent to under mu and only while the call is undecided.
	wake chan struct{}
	// refs counts who may still touch the record: the caller, each attempt until its
	// end, its goroutine, and each timer that is set or whose function runs.
	refs atomic.Int32
	// waited is the delay that the timer was set to for a hedge last, in ns; 0 before.
	waited atomic.Int64

	// mu is a leaf. It guards what follows and the state of the attempts. It is never
	// reset: whoever unlocked it last may still be leaving Unlock.
	mu         sync.Mutex
	generation uint32 // of the record; an Attempt of an older one has ended
	// decided never becomes false again in one generation. An attempt that finds it
	// false hands its end to the caller, one that finds it true sees to its end by
	// itself: each result is owned by exactly one side.
	decided     bool
	ticked      bool
	first, last *attempt // reports in the order of their coming, not yet seen

	primary attempt
	slot    [1]*attempt // attempts begins in it
	tick    func()      // c.onTick, made once
	main    func()      // c.primary.begin, made once
}

// decision is how a call ends.
type decision struct {
	winner     *attempt // nil unless the call succeeded
	err        error
	panicked   bool // with panicValue, to be raised again in the caller
	panicValue any
	ctxEnded   bool
	canceled   bool // the context ended by a cancellation, not by its deadline
}

// do runs the call and returns the number of the winner, or an error. It panics
// if an attempt did before the call was decided.
func (c *call) do(key string) (winner int, err error) {
	h := c.hedger
	h.counts.calls.Add(1)
	decided := false
	policy := LoserPolicy{} // Cancel, should the choice not come to its end
	defer func() {
		c.disarm()
		if decided {
			return
		}
		// The user's delay, budget, Rand or context has panicked or called Goexit:
		// attempts that run must not wait for a caller who will not come.
		v := recover()
		if len(c.attempts) == 0 {
			h.counts.refused.Add(1) // not even the primary was launched
		} else {
			h.counts.failed.Add(1)
		}
		c.lock()
		c.end.panicked, c.end.panicValue = v != nil, v
		c.settle(decision{canceled: true}, policy)
		if v != nil {
			h.panicked(v)
			panic(v)
		}
	}()
	c.prepare(key)
	p, err := h.config.Limiter.Acquire(c.ctx, limiter.Primary)
	if err != nil {
		decided = true
		h.counts.refused.Add(1)
		c.end.err = err
		return 0, err
	}
	c.wake = make(chan struct{}, 1)
	c.launch(limiter.Primary, p, StartFirst)
	d := c.loop()
	if len(c.attempts) > 1 || d.winner == nil {
		policy = c.losers()
	}
	decided = true

	c.end = d
	switch {
	case d.winner != nil:
		h.counts.succeeded.Add(1)
	case d.ctxEnded:
		h.counts.ctxEnd.Add(1)
	default:
		h.counts.failed.Add(1)
	}
	if h.holdback != nil {
		h.holdback.observe(c.heldBack, time.Now(), c.primary.granted, d)
	}
	c.settle(d, policy)
	switch {
	case d.winner != nil:
		return d.winner.number, nil
	case d.panicked:
		panic(d.panicValue)
	}
	return 0, d.err
}

// loop waits for what comes next until the call is decided.
func (c *call) loop() decision {
	c.arm(0)
	for {
		select {
		case <-c.wake:
		case <-c.ctx.Done():
		}
		// Whatever woke us, and select chooses at random if it is several things:
		// reports and the context come first, so that no attempt is launched for
		// a call that need not go on.
		failed, ticked, d, decided := c.look()
		if decided {
			return d
		}
		for t := failed; t != nil; t = t.next {
			if t.pushed {
				c.pushedBack(t.pushback)
			}
		}
		for t := failed; t != nil; t = t.next {
			if d, decided := c.failure(t); decided {
				return d
			}
			ticked = false // the cadence begins anew
		}
		if ticked && c.isDue() {
			if d, decided := c.timeout(); decided {
				return d
			}
		}
	}
}

// look takes the reports that have come in, and decides the call if they or the
// context do. Otherwise it returns those that have failed since, as a list, and
// whether the timer has ticked.
func (c *call) look() (failed *attempt, ticked bool, d decision, decided bool) {
	ctxErr := c.ctxErr() // outside the lock: the context may be the user's code
	c.mu.Lock()
	defer c.mu.Unlock()
	failed, ticked = c.first, c.ticked
	c.first, c.last, c.ticked = nil, nil, false
	// Those who report from here on find the lock held, and then the verdict.
	var fatal *attempt
	for t := failed; t != nil; t = t.next {
		t.seen = true
		c.running--
		switch {
		case !t.failed():
			if d.winner == nil || t.number < d.winner.number {
				d.winner = t
			}
		case t.panicked || t.verdict != NonFatal:
			if fatal == nil || t.number < fatal.number {
				fatal = t
			}
		}
	}
	switch {
	case d.winner != nil:
	case fatal != nil:
		d.err, d.panicked, d.panicValue = c.errorLocked(), fatal.panicked, fatal.panicValue
	case ctxErr != nil:
		d = contextEnded(ctxErr)
	default:
		return failed, ticked, decision{}, false
	}
	c.decided = true
	return nil, false, d, true
}

// contextEnded is the decision of a call whose context has.
func contextEnded(err error) decision {
	return decision{err: err, ctxEnded: true, canceled: err != context.DeadlineExceeded} //nolint:errorlint // the bare sentinel
}

// ctxErr is the error of the caller's context. One whose deadline has passed counts
// as ended: its own timer may be about to fire.
func (c *call) ctxErr() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := c.ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// errorLocked is the error of a call whose attempts have failed: the bare error
// of one, or all of them in the order of their numbers.
func (c *call) errorLocked() error {
	var errs []error
	for _, t := range c.attempts {
		if t.seen && t.err != nil {
			errs = append(errs, t.err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return &AttemptsError{errs: errs}
}

// lock decides the call by the caller's own word. Reports that were not looked at
// are taken over: what they hand in is the caller's to see to.
func (c *call) lock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decided = true
	for t := c.first; t != nil; t = t.next {
		t.seen = true
		c.running--
	}
	c.first, c.last = nil, nil
}

// failure goes on after an attempt that failed, NonFatal. With none running and
// none that can start, the call has failed.
func (c *call) failure(t *attempt) (d decision, decided bool) {
	left := len(c.attempts) < c.maxAttempts && !c.frozen
	wait := time.Duration(0)
	if !c.notBefore.IsZero() {
		wait = max(0, time.Until(c.notBefore))
	}
	switch {
	case !left && c.running > 0:
		return decision{}, false
	case !left:
		return c.fail()
	case t.pushed || wait > 0:
		return c.pause(wait, StartPushback)
	case c.running > 0:
		c.hedge(StartFailure)
		return decision{}, false
	case c.hedger.config.Retry != nil:
		c.backoffs++
		return c.pause(c.hedger.config.Retry.wait(c.backoffs, c.hedger.config.Rand()), StartBackoff)
	}
	return c.retryOrFail(StartFailure)
}

// pushedBack takes in what the other side has said: no more attempts, or none before a
// time. All that was said in one instant holds before anything is sent.
func (c *call) pushedBack(wait time.Duration) {
	if wait < 0 {
		c.frozen = true
		c.disarm()
		return
	}
	c.backoffs = 0
	if until := time.Now().Add(wait); until.After(c.notBefore) {
		c.notBefore = until
	}
}

// pause waits before the next attempt. With none running a wait into which the
// deadline falls is none: the call fails at once.
func (c *call) pause(wait time.Duration, why Start) (d decision, decided bool) {
	now := time.Now()
	if c.running == 0 && c.tooLate(now.Add(wait)) {
		c.hedger.counts.due.Add(1)
		c.skipped(SkipDeadline, now)
		return c.fail()
	}
	c.set(now, wait, why)
	return decision{}, false
}

// timeout does what the timer was set for.
func (c *call) timeout() (d decision, decided bool) {
	if c.running > 0 {
		c.hedge(c.why)
		return decision{}, false
	}
	return c.retryOrFail(c.why)
}

func (c *call) retryOrFail(why Start) (d decision, decided bool) {
	if c.retry(why) {
		return decision{}, false
	}
	return c.fail()
}

// fail ends a call of which no attempt runs and none can start. Nothing can be
// reported any more.
func (c *call) fail() (d decision, decided bool) {
	c.lock()
	if ctxErr := c.ctxErr(); ctxErr != nil {
		return contextEnded(ctxErr), true
	}
	return decision{err: c.errorLocked()}, true
}

// settle sees to the attempts of a decided call: the winner ends its run, all
// others learn that they have lost, and results that nobody takes are discarded,
// in a goroutine of the attempt's, so that the caller does not wait.
func (c *call) settle(d decision, policy LoserPolicy) {
	var now time.Time
	for _, t := range c.attempts {
		if t.kind == limiter.Hedge && !d.canceled && !d.panicked {
			c.hedger.config.Gates.decided(t == d.winner && !t.marked)
		}
		if t == d.winner {
			continue
		}
		if now.IsZero() {
			now = time.Now()
		}
		t.lose(now, policy, !d.ctxEnded)
		if t.seen && !t.failed() {
			go t.discard()
		}
	}
	if d.winner != nil {
		c.hedger.counts.won[d.winner.kind].Add(1)
		d.winner.win()
	}
}
