package hedgedlimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// call is one call of Do. The goroutine of the caller owns it: it alone launches
// attempts and decides the call, so two of them can never be launched for one
// reason, or one after the decision. See the package comment for its states.
type call struct {
	// Immutable.
	hedger      *Hedger
	ctx         context.Context
	maxAttempts int
	invoke      func(context.Context, Attempt) error
	discard     func(number int)

	// Owned by the goroutine of the caller.

	attempts []*attempt // all that were launched, by number
	running  int        // Invariant: running == attempts launched − reports seen.
	hedged   bool       // a hedge was sent
	timer    *time.Timer

	// wake holds a token if there may be reports that the caller has not seen.
	wake chan struct{}

	// mu is a leaf but for attempt.mu.
	mu sync.Mutex
	// Guarded by mu.

	// decided never becomes false again. An attempt that finds it false hands
	// its end to the caller, one that finds it true sees to its end by itself:
	// each result is owned by exactly one side.
	decided bool
	reports []*attempt // in the order of their coming, not yet seen
}

// decision is how a call ends.
type decision struct {
	winner     *attempt // nil unless the call succeeded
	err        error
	panicked   bool // with panicValue, to be raised again in the caller
	panicValue any
	ctxEnded   bool
}

// minRearm keeps a delay of next to nothing from asking the gates again and again
// without a pause, while each answer is no.
const minRearm = time.Millisecond

// do runs the call and returns the number of the winner, or an error. It panics
// if an attempt did before the call was decided.
func (c *call) do() (winner int, err error) {
	h := c.hedger
	h.counts.calls.Add(1)
	p, err := h.config.Limiter.Acquire(c.ctx, limiter.Primary)
	if err != nil {
		h.counts.refused.Add(1)
		return 0, err
	}

	decided := false
	defer func() {
		if c.timer != nil {
			c.timer.Stop()
		}
		if decided {
			return
		}
		// The user's delay, budget or context has panicked or called Goexit:
		// attempts that run must not wait for a caller who will not come.
		v := recover()
		if len(c.attempts) == 0 {
			h.counts.refused.Add(1) // not even the primary was launched
		} else {
			h.counts.failed.Add(1)
		}
		c.lock()
		c.settle(decision{})
		if v != nil {
			h.panicked(v)
			panic(v)
		}
	}()
	c.launch(limiter.Primary, p)
	h.config.Budget.Deposit(time.Now())
	d := c.loop()
	decided = true

	switch {
	case d.winner != nil:
		h.counts.succeeded.Add(1)
	case d.ctxEnded:
		h.counts.ctxEnd.Add(1)
	default:
		h.counts.failed.Add(1)
	}
	c.settle(d)
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
		timeout := false
		select {
		case <-c.wake:
		case <-c.timeout():
			timeout = true
		case <-c.ctx.Done():
		}
		// Whatever woke us, and select chooses at random if it is several things:
		// reports and the context come first, so that no attempt is launched for
		// a call that need not go on.
		failed, d, decided := c.look()
		if decided {
			return d
		}
		for ; failed > 0; failed-- {
			if d, decided := c.next(); decided {
				return d
			}
			timeout = false // the cadence begins anew
		}
		if timeout {
			c.hedge()
		}
	}
}

// look takes the reports that have come in, and decides the call if they or the
// context do. Otherwise it returns how many attempts have failed since.
func (c *call) look() (failed int, d decision, decided bool) {
	ctxErr := c.ctxErr() // outside the lock: the context may be the user's code
	c.mu.Lock()
	defer c.mu.Unlock()
	reports := c.reports
	c.reports = nil
	// Those who report from here on find the lock held, and then the verdict.
	var fatal *attempt
	for _, t := range reports {
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
		d.err, d.ctxEnded = ctxErr, true
	default:
		return len(reports), decision{}, false
	}
	c.decided = true
	return 0, d, true
}

// ctxErr is the error of the caller's context. One whose deadline has passed counts
// as ended: its own timer may be about to fire, and that of an attempt that drains
// has fired before it.
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
	for _, t := range c.reports {
		t.seen = true
		c.running--
	}
	c.reports = nil
}

// next starts the next attempt after a failure. With none running this is a
// retry, and without it the call has failed.
func (c *call) next() (d decision, decided bool) {
	if c.running > 0 {
		c.hedge()
		return decision{}, false
	}
	err := c.retry()
	if err == nil {
		return decision{}, false
	}
	// No attempt runs and none can start. Nothing can be reported any more.
	c.lock()
	if ctxErr := c.ctxErr(); ctxErr != nil {
		return decision{err: ctxErr, ctxEnded: true}, true
	}
	return decision{err: c.errorLocked()}, true
}

// hedge sends a hedge if all gates say yes, and counts a skip otherwise. A skip
// uses up no attempt and no budget, and the delay is armed again.
func (c *call) hedge() {
	if len(c.attempts) >= c.maxAttempts {
		c.disarm()
		return
	}
	h := c.hedger
	now := time.Now()
	late := c.tooLate(now)
	paid := !late && h.config.Budget.Withdraw(now)
	h.counts.due.Add(1) // after the user's code, which may not return
	switch {
	case late:
		c.skip(SkipDeadline)
		return
	case !paid:
		c.skip(SkipBudget)
		return
	}
	p, ok := h.config.Limiter.TryAcquire(limiter.Hedge)
	if !ok {
		h.counts.skipped[SkipPermit].Add(1)
		h.config.Budget.Refund(now)
		c.arm(minRearm)
		return
	}
	if !c.hedged {
		c.hedged = true
		h.counts.hedged.Add(1)
	}
	c.launch(limiter.Hedge, p)
	c.arm(0)
}

func (c *call) skip(reason Skip) {
	c.hedger.counts.skipped[reason].Add(1)
	c.arm(minRearm)
}

// errNoAttempt is the answer of retry if no attempt can start. It never leaves
// the package.
var errNoAttempt = errors.New("hedgedlimit: no attempt can start")

// retry sends an attempt after a failure, with none running. Somebody waits for
// it and has nothing else, so it may wait for its permit as a primary may.
func (c *call) retry() error {
	if len(c.attempts) >= c.maxAttempts {
		return errNoAttempt
	}
	h := c.hedger
	now := time.Now()
	late := c.tooLate(now)
	paid := !late && h.config.Budget.Withdraw(now)
	h.counts.due.Add(1) // as in hedge
	switch {
	case late:
		h.counts.skipped[SkipDeadline].Add(1)
		return errNoAttempt
	case !paid:
		h.counts.skipped[SkipBudget].Add(1)
		return errNoAttempt
	}
	p, err := h.config.Limiter.Acquire(c.ctx, limiter.Retry)
	if err != nil {
		h.counts.skipped[SkipPermit].Add(1)
		h.config.Budget.Refund(time.Now())
		return err
	}
	c.launch(limiter.Retry, p)
	c.arm(0)
	return nil
}

// tooLate reports whether an attempt that starts now could not be expected to
// answer before the caller's deadline.
func (c *call) tooLate(now time.Time) bool {
	deadline, ok := c.ctx.Deadline()
	if !ok {
		return false
	}
	usual, known := c.hedger.config.Delay.expected()
	if !known {
		usual = 0
	}
	return deadline.Sub(now) <= usual
}

// arm sets the timer for the next hedge, not before atLeast, if there may be one.
func (c *call) arm(atLeast time.Duration) {
	if len(c.attempts) >= c.maxAttempts {
		c.disarm()
		return
	}
	d, ok := c.hedger.config.Delay.next(time.Now(), len(c.attempts))
	switch {
	case !ok:
		c.disarm()
	case c.timer == nil:
		c.timer = time.NewTimer(max(d, atLeast))
	default:
		c.timer.Reset(max(d, atLeast))
	}
}

func (c *call) disarm() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// timeout returns the channel of the timer, nil if none was ever set.
func (c *call) timeout() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

// settle sees to the attempts of a decided call: the winner ends its run, all
// others learn that they have lost, and results that nobody takes are discarded,
// in a goroutine of the attempt's, so that the caller does not wait.
func (c *call) settle(d decision) {
	now := time.Now()
	drain := c.hedger.config.Losers.drain
	if d.ctxEnded {
		drain = 0
	}
	for _, t := range c.attempts {
		if t == d.winner {
			continue
		}
		t.lose(now, drain, !d.ctxEnded)
		if t.seen && !t.failed() {
			go t.discard()
		}
	}
	if d.winner != nil {
		c.hedger.counts.won[d.winner.kind].Add(1)
		d.winner.win()
	}
}
