package hedgedlimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/permit"
)

// LoserPolicy says what happens to the attempts that still run when the call has
// been decided. Whatever it says, each of them holds its permit until its work
// has ended. The zero value is Cancel.
//
// When it is the caller's own context that ends, all attempts are cancelled
// under every policy: the caller does not want the work any more.
type LoserPolicy struct {
	kind   loserKind
	bound  time.Duration
	choice *choice // of chooses only; a pointer, so that policies stay comparable
}

// choice is the user's function of ChooseLosers.
type choice struct {
	choose func(delay time.Duration) LoserPolicy
}

type loserKind uint8

const (
	cancels loserKind = iota
	drains
	lingers
	chooses
)

// Cancel cancels the context of a loser at once.
func Cancel() LoserPolicy { return LoserPolicy{} }

// Drain lets a loser finish by itself for at most bound after the call was
// decided, and cancels it then. Use it where cancelling does harm: over HTTP/1 it
// costs the connection, and a server that ignores cancellation goes on working
// anyway, unseen. The caller's deadline still bounds a loser that is drained; the
// caller's cancellation after the decision does not reach it.
func Drain(bound time.Duration) LoserPolicy { return LoserPolicy{kind: drains, bound: bound} }

// Linger cancels a loser at once, and goes on holding its permit for as long as the
// other side can be expected to go on working, at most for bound after the call was
// decided. Use it for servers that ignore cancellation and whose connection is
// cheap: what they still work on then counts as in flight, though nothing of it
// runs here. A loser that returns a result all the same has ended then.
//
// What is expected is the median of what is left, among the primaries of the past
// that had taken as long; without a learnt delay, and beyond what it has seen, it is
// bound. Lingering is an estimate: it is no latency and teaches nothing.
func Linger(bound time.Duration) LoserPolicy { return LoserPolicy{kind: lingers, bound: bound} }

// ChooseLosers lets choose say what happens to the losers of a call when that has been
// decided: for what is known of the other side only once it has answered, such as the
// protocol that it speaks. Delay is the hedge delay that the call used last, and 0 if
// it used none. Choose is called once for a call that has losers, in the goroutine of
// the caller, and besides in that of an attempt which runs into the end of the caller's
// context; it must be safe for concurrent use. A policy that New would refuse, or that
// is a choice itself, counts as Cancel. So does a panic, which ends in OnPanic.
//
// Its attempts cost what those of Drain do: they must be able to outlive the caller.
func ChooseLosers(choose func(delay time.Duration) LoserPolicy) LoserPolicy {
	return LoserPolicy{kind: chooses, choice: &choice{choose}}
}

// String tells the policy in words.
func (p LoserPolicy) String() string {
	switch p.kind {
	case drains:
		return fmt.Sprintf("drain for at most %v", p.bound)
	case lingers:
		return fmt.Sprintf("cancel and linger for at most %v", p.bound)
	case chooses:
		return "chosen when the call is decided"
	}
	return "cancel"
}

// mayDrain reports whether a loser may have to outlive a cancellation by the caller.
func (p LoserPolicy) mayDrain() bool { return p.kind == drains || p.kind == chooses }

func (p LoserPolicy) validate() error {
	name := [...]string{drains: "Drain", lingers: "Linger"}
	switch {
	case p.kind == chooses && p.choice.choose == nil:
		return errors.New("hedgedlimit: Losers: the function of ChooseLosers is nil")
	case (p.kind == drains || p.kind == lingers) && p.bound <= 0:
		return fmt.Errorf("hedgedlimit: Losers: %s bound %v is not positive", name[p.kind], p.bound)
	}
	return nil
}

// losers returns the policy of a call that is being decided: Config.Losers, or what its
// function says. No lock may be held.
func (c *call) losers() (p LoserPolicy) {
	h := c.hedger
	if h.config.Losers.kind != chooses {
		return h.config.Losers
	}
	h.guard(func() {
		if chosen := h.config.Losers.choice.choose(time.Duration(c.waited.Load())); chosen.kind != chooses && chosen.validate() == nil {
			p = chosen
		}
	})
	return p
}

// win ends the run of the attempt whose result the call returns.
func (t *attempt) win() {
	t.call.mu.Lock()
	t.won = true
	t.dropLocked(permit.Success)
}

// lose tells an attempt that the call was decided without it. If it has not ended
// yet, it is dealt with as the policy says. Beaten is false if the end of the
// caller's context decided the call, which ends that of the attempt without more
// ado. It is called once at most, by the goroutine of the caller.
func (t *attempt) lose(now time.Time, policy LoserPolicy, beaten bool) {
	c := t.call
	drained := policy.kind == drains && beaten
	rest := t.rest(now, policy) // outside the lock: the delay has one of its own
	bound := policy.bound
	if drained {
		bound = t.untilDeadline(now, bound) // the same: the context may be the user's code
	}
	c.mu.Lock()
	if t.holds == 0 {
		c.mu.Unlock()
		return // It failed, and is over.
	}
	t.decided, t.beaten = t.instant(now), beaten
	switch {
	case drained:
		c.refs.Add(1)
		t.timer = time.AfterFunc(bound, t.drained)
	case t.returned == 0:
		t.lingerLocked(rest)
	}
	c.mu.Unlock()
	c.hedger.counts.lost[t.kind].Add(1)
	t.permit.Abandon()
	switch {
	case !beaten:
		// The end of the caller's context reaches it by itself, and with its own
		// cause.
	case drained:
		if t.detach != nil {
			c.hedger.guard(func() { t.detach() }) // as in end
		}
	default:
		t.stop(ErrLost)
	}
}

// untilDeadline cuts bound off at the deadline of the caller, which does not reach the
// attempt any more when it has been detached.
func (t *attempt) untilDeadline(now time.Time, bound time.Duration) time.Duration {
	t.call.hedger.guard(func() {
		if deadline, ok := t.ctx.Deadline(); ok {
			bound = min(bound, deadline.Sub(now))
		}
	})
	return bound
}

// rest is for how long the permit of an attempt that is cut short now is held beyond
// its work here, and 0 if it is not.
func (t *attempt) rest(now time.Time, policy LoserPolicy) time.Duration {
	if policy.kind != lingers {
		return 0
	}
	if d, known := t.call.delay.rest(now.Sub(t.granted)); known {
		return min(d, policy.bound)
	}
	return policy.bound
}

// lingerLocked lets the permit be held for the rest, which may be none. call.mu must be
// held, and holds be above 0.
func (t *attempt) lingerLocked(rest time.Duration) {
	if rest <= 0 || t.lingers {
		return
	}
	t.call.refs.Add(1)
	t.holds++
	t.lingers = true
	t.timer = time.AfterFunc(rest, t.lingered)
}

// lost reports whether the call was decided without the attempt: what is to be held is
// held already then.
func (t *attempt) lost() bool {
	t.call.mu.Lock()
	defer t.call.mu.Unlock()
	return t.decided != 0
}

// stop cancels the context of a beaten loser. Cancelling is not the end of its
// work.
func (t *attempt) stop(cause error) {
	c := t.call
	c.mu.Lock()
	if t.returned == 0 {
		t.canceled = t.instant(time.Now())
	}
	c.mu.Unlock()
	// Runs what users hung on the context: no lock is held.
	c.hedger.guard(func() { t.cancel(cause) })
}

// drained is the function of the timer of a loser that drains.
func (t *attempt) drained() {
	defer t.call.unref()
	cause := ErrLost
	if t.untilDeadline(time.Now(), 1) <= 0 {
		cause = context.DeadlineExceeded // which bounds it still
	}
	t.stop(cause)
}

// lingered is the function of the timer of a loser that lingers.
func (t *attempt) lingered() {
	defer t.call.unref()
	t.drop(permit.Success)
}

// stopLingerLocked ends the linger of a loser that has answered. The run's own hold
// is still there, so this is not the last. call.mu must be held.
func (t *attempt) stopLingerLocked() {
	if t.lingers && t.timer.Stop() {
		t.lingers = false
		t.holds--
		t.call.refs.Add(-1) // never the last: the attempt has one
	}
}
