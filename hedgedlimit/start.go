package hedgedlimit

import (
	"time"

	"github.com/holdfast-go/holdfast/limiter"
)

// minRearm keeps a delay of next to nothing from asking the gates again and again
// without a pause, while each answer is no.
const minRearm = time.Millisecond

// Start is why an attempt was started.
type Start uint8

const (
	// StartFirst: it is the primary.
	StartFirst Start = iota
	// StartDelay: no answer had come within the delay.
	StartDelay
	// StartFailure: another attempt had failed.
	StartFailure
	// StartBackoff: another had failed, and the back-off was over.
	StartBackoff
	// StartPushback: another had failed, and the time that the other side had asked
	// for was over.
	StartPushback
)

// String returns the lower-case name of s. A value that is no reason is "invalid".
func (s Start) String() string {
	names := [...]string{"first", "delay", "failure", "backoff", "pushback"}
	if int(s) >= len(names) {
		return "invalid"
	}
	return names[s]
}

// hedge sends a hedge if all gates say yes, and counts a skip otherwise. A skip
// uses up no attempt and no budget, and the delay is armed again unless the no is
// final.
func (c *call) hedge(why Start) {
	if !c.mayHedge() {
		c.disarm()
		return
	}
	h := c.hedger
	now := time.Now()
	reason, ok := c.ask(now)
	h.counts.due.Add(1) // after the user's code, which may not return
	if !ok {
		c.skipped(reason, now)
		c.rearm(reason)
		return
	}
	p, ok := h.config.Limiter.TryAcquire(limiter.Hedge)
	if !ok {
		c.skipped(SkipPermit, now)
		h.config.Budget.Refund(now)
		h.config.Gates.unsent(now)
		c.rearm(SkipPermit)
		return
	}
	if !c.launch(limiter.Hedge, p, why) {
		h.config.Gates.unsent(now)
		return
	}
	h.config.Gates.sent(now)
	c.passed = false
	if !c.hedged {
		c.hedged = true
		h.counts.hedged.Add(1)
	}
	c.arm(0)
}

// mayHedge reports whether a hedge can still come to be due.
func (c *call) mayHedge() bool {
	return len(c.attempts) < c.maxAttempts && !c.noHedge && !c.shut && !c.frozen
}

// ask asks the gates that stand before the permit. If the answer is yes, one is
// withdrawn from the budget.
func (c *call) ask(now time.Time) (reason Skip, ok bool) {
	h := c.hedger
	l := h.config.Limiter
	if !c.layer.room(c.maxAttempts) {
		return SkipAttempts, false
	}
	if c.tooLate(now) {
		return SkipDeadline, false
	}
	if reason, ok := h.config.Gates.room(now, l.LastPressure(), l.InFlight(), l.Limit()); !ok {
		return reason, false
	}
	// One draw for each hedge: with one for each time that it is due, twenty draws
	// of 1/32 would let half of them through.
	sent := false
	defer func() {
		if !sent {
			h.config.Gates.unsent(now)
		}
	}()
	if !c.passed && !h.config.Gates.pays(h.config.Rand) {
		return SkipWin, false
	}
	c.passed = true
	if !h.config.Budget.Withdraw(now) {
		return SkipBudget, false
	}
	sent = true
	return 0, true
}

// rearm sets the timer after a skip, once for each delay.
func (c *call) rearm(reason Skip) {
	if reason == SkipWin || reason == SkipAttempts {
		c.shut = true // final for this call
		c.disarm()
		return
	}
	c.arm(minRearm)
}

// retry sends an attempt after a failure, with none running, and reports whether
// it did. Somebody waits for it and has nothing else, so it may wait for its permit
// as a primary may, and the gates that spare others are not asked.
func (c *call) retry(why Start) bool {
	h := c.hedger
	now := time.Now()
	late, room := c.tooLate(now), c.layer.room(c.maxAttempts)
	paid := room && !late && h.config.Budget.Withdraw(now)
	h.counts.due.Add(1) // as in hedge
	switch {
	case !room:
		c.skipped(SkipAttempts, now)
		return false
	case late:
		c.skipped(SkipDeadline, now)
		return false
	case !paid:
		c.skipped(SkipBudget, now)
		return false
	}
	granted := false
	defer func() {
		if !granted { // no permit, or the user's context has panicked
			c.skipped(SkipPermit, now)
			h.config.Budget.Refund(time.Now())
		}
	}()
	p, err := h.config.Limiter.Acquire(c.ctx, limiter.Retry)
	if err != nil {
		return false
	}
	granted = true
	if !c.launch(limiter.Retry, p, why) {
		return false
	}
	c.arm(0)
	return true
}

// skipped counts an attempt that was due and not sent.
func (c *call) skipped(reason Skip, now time.Time) {
	c.hedger.counts.skipped[reason].Add(1)
	if c.skips != nil {
		c.skips.add(SkipEvent{Number: len(c.attempts) + 1, Reason: reason, At: now})
	}
}

// tooLate reports whether an attempt that starts at that time could not be expected
// to answer before the caller's deadline.
func (c *call) tooLate(now time.Time) bool {
	deadline, ok := c.ctx.Deadline()
	if !ok {
		return false
	}
	usual, known := c.delay.expected()
	if !known {
		usual = 0
	}
	return deadline.Sub(now) <= usual
}

// arm sets the timer for the next hedge, not before atLeast, if there may be one.
func (c *call) arm(atLeast time.Duration) {
	if !c.mayHedge() {
		c.disarm()
		return
	}
	// The primary was granted next to now, and saves the first reading of the clock.
	now := c.primary.granted
	if len(c.attempts) > 1 || atLeast > 0 {
		now = time.Now()
	}
	d, ok := c.delay.next(now, len(c.attempts))
	if !ok {
		c.disarm()
		return
	}
	c.waited.Store(int64(d))
	c.set(now, max(d, atLeast), StartDelay)
}

// set sets the timer. A tick of what it was set to before is told by its time.
func (c *call) set(now time.Time, d time.Duration, why Start) {
	c.due, c.why, c.armed = now.Add(d), why, true
	c.refs.Add(1) // first: the function may give it back before this has returned
	switch {
	case c.timer == nil:
		c.timer = time.AfterFunc(d, c.tick)
	case c.timer.Reset(d):
		c.refs.Add(-1) // it was set, and has one; never the last: the caller has one
	}
}

// disarm takes the timer back.
func (c *call) disarm() {
	if c.timer != nil && c.timer.Stop() {
		c.refs.Add(-1) // never the last: the caller has one
	}
	c.armed = false
}

// isDue reports whether a tick is that of the timer as it is set now.
func (c *call) isDue() bool { return c.armed && !time.Now().Before(c.due) }

// onTick is the function of the timer.
func (c *call) onTick() {
	c.mu.Lock()
	if !c.decided {
		c.ticked = true
		c.nudgeLocked()
	}
	c.mu.Unlock()
	c.unref()
}

// nudgeLocked wakes the caller. c.mu must be held, and the call undecided.
func (c *call) nudgeLocked() {
	select {
	case c.wake <- struct{}{}:
	default: // The caller has not looked since the last one: it will see both.
	}
}
